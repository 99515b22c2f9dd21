import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { ConnectorContext } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, DataError, RetryableError } from '../../server/connectors/contract/errors.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { connectorError } from '../../server/connectors/postgres/connection/failures.ts';
import { withSession } from '../../server/connectors/postgres/connection/session.ts';
import type { PostgresSourceConfig } from '../../server/connectors/postgres/connection/settings.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { selfSigned } from '../support/certificates.ts';
import { startTlsFront } from '../support/postgres-tls.ts';
import {
  batchOf,
  column,
  destinationConfig,
  sourceConfig,
  targetOf,
  type TestContext,
  twoDatabases,
} from './postgres-support.ts';
import { testServerErrors } from './server-errors.ts';
import { readBatches, requestOf } from './reading.ts';
import { errorOf, testUnreachable, withListener } from './unreachable.ts';

const role = `limited_${crypto.randomUUID().slice(0, 8)}`;
const limited = { username: role, password: 'right' };
// Before the databases' own, which closes the connections.
afterAll(async () => {
  await sides.source.sql.unsafe(`drop owned by ${role}; drop role ${role}`);
});
const sides = twoDatabases();
beforeAll(async () => {
  await sides.source.sql.unsafe(
    `create role ${role} login password 'right'; create table secret (id int); create schema closed`,
  );
});

const check = (more: Partial<PostgresSourceConfig>) => postgresSource.check(sourceConfig(sides.source, more).ctx);
const query = (ctx: ConnectorContext<PostgresSourceConfig>, sql: string) =>
  withSession(ctx, { phase: 'run' }, (session) => session.query(sql));

describe('the check', () => {
  test('passes and reports version and tables', async () => {
    const { checks } = await check({});
    expect(checks.map(({ title, status }) => [title, status])).toEqual([
      ['Connection', 'passed'],
      ['Tables', 'passed'],
    ]);
    expect(checks[0]!.message).toMatch(/^PostgreSQL \d+/);
    const destination = await postgresDestination.check(destinationConfig(sides.destination).ctx);
    expect(destination.checks.map(({ status }) => status)).toEqual(['passed', 'passed']);
  });

  test('grants what a user lacks: of public, which only its owner may write since version 15, by statements', async () => {
    const { sql } = sides.source;
    const writes = async (schema: string) => {
      const { ctx } = destinationConfig(sides.source, { ...limited, schema });
      return (await postgresDestination.check(ctx)).checks.at(-1)!;
    };
    const nowhere = await writes('public');
    expect(nowhere).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('in the schema public'),
      fix: expect.stringContaining('one of the statements'),
    });
    expect(await check({ ...limited })).toMatchObject({
      checks: [{ status: 'passed' }, { status: 'failed', statements: expect.arrayContaining([expect.any(String)]) }],
    });
    await sql.unsafe(`create schema own authorization ${role}`);
    expect((await writes('public')).status).toBe('skipped');
    expect((await writes('own')).status).toBe('passed');
    expect((await writes('absent')).status).toBe('skipped');
    await sql.unsafe(nowhere.statements![0]!);
    expect((await writes('public')).status).toBe('passed');
    await sql.unsafe(`drop schema own; revoke all on schema public from ${role}`);
    const readable = (await check({ ...limited })).checks.at(-1)!;
    for (const statement of readable.statements!) await sql.unsafe(statement);
    expect((await check({ ...limited })).checks.at(-1)!.status).toBe('passed');
    await sql.unsafe(`revoke all on all tables in schema public from ${role}`);
  });

  testUnreachable({
    check,
    run: (wrong) => query(sourceConfig(sides.source, wrong).ctx, 'select 1'),
    stoppable: (wrong) => {
      const { ctx, abort } = sourceConfig(sides.source, wrong);
      return { checking: postgresSource.check(ctx), abort };
    },
    accepts: (settings) => postgresSource.config.safeParse(settings).success,
  });

  test('required TLS that the server lacks is a configuration error', async () => {
    await withListener(
      (socket) => socket.on('data', () => socket.write('N')),
      async (port) => {
        for (const ssl_mode of ['require', 'verify-ca', 'verify-full'] as const) {
          expect((await errorOf(check({ port, ssl_mode }))).code).toBe('tls_not_supported');
        }
      },
    );
  });

  test('ssl_mode decides whether authority and host name of a certificate are checked', async () => {
    const [one, other] = [selfSigned('DNS:localhost'), selfSigned('DNS:localhost')];
    const { port, stop } = await startTlsFront(sides.source.server, one);
    const ssl_ca = one.cert;
    for (const good of [
      { ssl_mode: 'prefer' },
      { ssl_mode: 'require' },
      { ssl_mode: 'verify-ca', ssl_ca },
      { ssl_mode: 'verify-full', ssl_ca, host: 'localhost' },
    ] as const) {
      expect((await check({ port, ...good })).checks[0]).toMatchObject({ status: 'passed' });
    }
    for (const wrong of [
      { ssl_mode: 'verify-ca' },
      { ssl_mode: 'verify-ca', ssl_ca: other.cert },
      { ssl_mode: 'verify-full', host: 'localhost' },
      { ssl_mode: 'verify-full', ssl_ca, host: '127.0.0.1' },
    ] as const) {
      const error = await errorOf(check({ port, ...wrong }));
      expect(error).toBeInstanceOf(ConfigurationError);
      expect(error.code).toBe('certificate_invalid');
    }
    stop();
  });

  test('missing, empty and inaccessible schemas fail the check', async () => {
    for (const [more, words] of [
      [{ schemas: ['public', 'absent'] }, 'Schema absent does not exist'],
      [{ schemas: ['closed'] }, 'No table or view'],
      [limited, 'No table or view'],
    ] as const) {
      const { checks } = await check({ ...more, schemas: 'schemas' in more ? [...more.schemas] : [] });
      expect(checks.at(-1)).toMatchObject({ status: 'failed', message: expect.stringContaining(words) });
    }
    const closed = destinationConfig(sides.source, { schema: 'closed' });
    const { checks } = await postgresDestination.check({ ...closed.ctx, config: { ...closed.ctx.config, ...limited } });
    expect(checks.at(-1)).toMatchObject({ status: 'failed', message: expect.stringContaining('closed') });
    const absent = destinationConfig(sides.source, { schema: 'absent' });
    const answer = await postgresDestination.check({ ...absent.ctx, config: { ...absent.ctx.config, ...limited } });
    expect(answer.checks.at(-1)).toMatchObject({ status: 'failed' });
  });

  test('databases and schemas are listed, databases even if the configured one is wrong', async () => {
    const { possibleValues } = postgresSource;
    const { database } = sides.source.server;
    expect(await possibleValues!.database!(sourceConfig(sides.source).ctx)).toHaveProperty([database]);
    expect(await possibleValues!.database!(sourceConfig(sides.source, { database: 'wrong' }).ctx)).toHaveProperty([
      database,
    ]);
    expect(Object.keys(await possibleValues!.schemas!(sourceConfig(sides.source).ctx))).toEqual(['closed', 'public']);
    expect(Object.keys(await postgresDestination.possibleValues!.schema!(destinationConfig(sides.source).ctx))).toEqual(
      ['closed', 'public'],
    );
  });
});

describe('errors of the server', () => {
  testServerErrors({
    context: (more) => sourceConfig(sides.source, more) as TestContext<never>,
    query,
    limited,
    sleeping: 'select pg_sleep(30)',
    ending: 'select pg_terminate_backend(pg_backend_pid())',
    connectorError,
    own: [
      ['a deadlock', "do $$ begin raise sqlstate '40P01'; end $$", RetryableError, 'deadlock'],
      [
        'a serialization failure',
        "do $$ begin raise sqlstate '40001'; end $$",
        RetryableError,
        'serialization_failure',
      ],
      ['a full disk', "do $$ begin raise sqlstate '53100'; end $$", RetryableError, 'server_out_of_resources'],
      ['a malformed value', "select 'x'::int", DataError, 'invalid_value'],
      [
        'a null value',
        'insert into secret select 1; alter table secret alter id set not null; insert into secret values (null)',
        DataError,
        'null_value',
      ],
      ['a type conflict', 'select 1 + point(1,1)', ConfigurationError, 'type_conflict'],
      ['a read-only server', 'begin read only; create table x (id int)', RetryableError, 'read_only_server'],
      ['an idle session', "do $$ begin raise sqlstate '57P05'; end $$", RetryableError, 'connection_lost'],
    ],
  });

  test('a destination without the right to create says so', async () => {
    const { ctx } = destinationConfig(sides.source, { schema: 'closed' });
    const narrow = { ...ctx, config: { ...ctx.config, ...limited } };
    const stream = { namespace: null, name: 't', fields: [], source_defined_primary_key: null } as never;
    const opening = postgresDestination.open(narrow, { ...targetOf(stream), columns: [column('id', 'integer')] });
    expect((await errorOf(opening)).code).toBe('permission_denied');
  });

  test.each([
    ['integer', '1', '99999999999999999999'],
    ['json', '{}', '[1,\n{"a": "\\u0000"}]'],
  ] as const)('a refused value of type %s names its row and column', async (type, good, refused) => {
    const stream = { namespace: null, name: 'ranged', fields: [], source_defined_primary_key: null } as never;
    const writer = await postgresDestination.open(destinationConfig(sides.destination).ctx, {
      ...targetOf(stream),
      columns: [column('n', type)],
    });
    await writer.write(batchOf([[good], [refused]]));
    const error = await errorOf(writer.finish(null));
    await writer.abort();
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toContain('row 2, column n');
  });

  test('untrusted certificates are a configuration error', () => {
    const place = { server: 'host:1', phase: 'run' as const };
    for (const code of [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'CERT_HAS_EXPIRED',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ]) {
      expect(connectorError(Object.assign(new Error('x'), { code }), place)).toMatchObject({
        code: 'certificate_invalid',
      });
    }
  });
});

describe('row-level security that hides rows', () => {
  beforeAll(async () => {
    await sides.source.sql.unsafe(`create table tenants (id int primary key, owner text);
      insert into tenants values (1, 'a'), (2, 'b');
      alter table tenants enable row level security;
      create policy own on tenants using (owner = 'a');
      grant select on tenants to ${role}`);
  });
  const read = async (more: Partial<PostgresSourceConfig>, incremental: boolean) => {
    const { ctx } = sourceConfig(sides.source, { ...limited, ...more });
    const stream = (await postgresSource.discover(ctx)).find(({ name }) => name === 'tenants')!;
    const cursor = incremental && { sync_mode: 'incremental' as const, cursor_field: ['id'] };
    const batches = await readBatches(postgresSource, ctx, requestOf(stream, cursor || {}));
    return batches.flatMap(({ rows }) => rows);
  };
  test.each([false, true])('fails the read (incremental: %p)', async (incremental) => {
    const error = await errorOf(read({}, incremental));
    expect([error?.constructor, error?.code]).toEqual([ConfigurationError, 'row_level_security']);
    expect(
      await read({ username: sides.source.server.username, password: sides.source.server.password }, incremental),
    ).toHaveLength(2);
  });
  test.each([false, true])('loads the visible rows by choice (incremental: %p)', async (incremental) => {
    expect(await read({ row_level_security: 'apply' }, incremental)).toEqual([['1', 'a']]);
  });
});
