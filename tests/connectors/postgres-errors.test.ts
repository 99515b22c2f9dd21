import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, setDefaultTimeout } from 'bun:test';
import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  DataError,
  RetryableError,
  SchemaChangedError,
  TimeoutError,
} from '../../server/connectors/errors.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { connectorError } from '../../server/connectors/postgres/failures.ts';
import { withSession } from '../../server/connectors/postgres/session.ts';
import type { PostgresSourceConfig } from '../../server/connectors/postgres/settings.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { batchOf, column, destinationConfig, sourceConfig, targetOf, twoDatabases } from './postgres-support.ts';

// The machine may be busy with other tests.
setDefaultTimeout(30_000);

const role = `limited_${crypto.randomUUID().slice(0, 8)}`;
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
const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error as ConnectorError,
  );
const failing = (sql: string, more: Partial<PostgresSourceConfig> = {}) =>
  errorOf(withSession(sourceConfig(sides.source, more).ctx, { phase: 'run' }, (session) => session.query(sql)));

/** A port that takes connections and does with them what `answer` says. */
async function listener(
  answer: (socket: import('node:net').Socket) => void,
): Promise<{ port: number; server: Server }> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as { port: number }).port };
}

describe('the check', () => {
  test('passes, and tells version and tables', async () => {
    const { checks } = await check({});
    expect(checks.map(({ title, status }) => [title, status])).toEqual([
      ['Connection', 'passed'],
      ['Tables', 'passed'],
    ]);
    expect(checks[0]!.message).toMatch(/^PostgreSQL \d+/);
    const destination = await postgresDestination.check(destinationConfig(sides.destination).ctx);
    expect(destination.checks.map(({ status }) => status)).toEqual(['passed', 'passed']);
  });

  test.each<[string, Partial<PostgresSourceConfig>, new (...args: never[]) => Error, string]>([
    ['password', { password: 'wrong-p4ssword' }, AuthenticationError, 'password_wrong'],
    ['user', { username: 'nobody-of-that-name' }, AuthenticationError, 'password_wrong'],
    ['database', { database: 'no such database' }, ConfigurationError, 'database_not_found'],
    ['host', { host: 'nowhere.invalid' }, ConfigurationError, 'host_not_found'],
  ])('a wrong %s is told by its class and code', async (_, more, type, code) => {
    const error = await errorOf(check(more));
    expect(error).toBeInstanceOf(type);
    expect(error.code).toBe(code);
    expect(error.message).not.toContain('wrong-p4ssword');
  });

  test('a port where nobody listens is a wrong setting in a check, and worth another attempt in a run', async () => {
    const { server, port } = await listener(() => {});
    await new Promise((resolve) => server.close(resolve));
    const inCheck = await errorOf(check({ port }));
    expect(inCheck).toBeInstanceOf(ConfigurationError);
    expect(inCheck.code).toBe('connection_refused');
    expect(await failing('select 1', { port })).toBeInstanceOf(RetryableError);
  });

  test('a server that accepts and says nothing is a timeout', async () => {
    const { server, port } = await listener(() => {});
    const error = await errorOf(check({ port, connect_timeout_seconds: 1 }));
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.code).toBe('connection_timeout');
    server.close();
  });

  test('a stop ends a connection attempt that hangs', async () => {
    const { server, port } = await listener(() => {});
    const { ctx, abort } = sourceConfig(sides.source, { port });
    const checking = errorOf(postgresSource.check(ctx));
    const reason = new Error('stop');
    abort.abort(reason);
    expect(await checking).toBe(reason as never);
    server.close();
  });

  test('TLS that is asked for and not there is a wrong setting', async () => {
    const { server, port } = await listener((socket) => socket.on('data', () => socket.write('N')));
    for (const ssl_mode of ['require', 'verify-ca', 'verify-full'] as const) {
      expect((await errorOf(check({ port, ssl_mode }))).code).toBe('tls_not_supported');
    }
    server.close();
  });

  test('schemas that are missing, empty or closed fail the check', async () => {
    const limited = { username: role, password: 'right' };
    for (const [more, words] of [
      [{ schemas: ['public', 'absent'] }, 'no schema absent'],
      [{ schemas: ['closed'] }, 'no table or view'],
      [limited, 'no table or view'],
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

  test('databases and schemas are listed, databases also while the one in the settings is wrong', async () => {
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

  test('a host cannot be a path to a socket of this machine', () => {
    expect(postgresSource.config.safeParse({ host: '/tmp', database: 'd', username: 'u' }).success).toBe(false);
  });
});

describe('errors of the server', () => {
  test.each<[string, string, new (...args: never[]) => Error, string]>([
    ['a missing table', 'select * from absent', SchemaChangedError, 'table_missing'],
    ['a missing column', 'select absent from secret', SchemaChangedError, 'column_missing'],
    ['a deadlock', "do $$ begin raise sqlstate '40P01'; end $$", RetryableError, 'deadlock'],
    ['a serialization failure', "do $$ begin raise sqlstate '40001'; end $$", RetryableError, 'serialization_failure'],
    ['a full disk', "do $$ begin raise sqlstate '53100'; end $$", RetryableError, 'server_out_of_resources'],
    ['a lost connection', 'select pg_terminate_backend(pg_backend_pid())', RetryableError, 'connection_lost'],
    ['a malformed value', "select 'x'::int", DataError, 'invalid_value'],
    [
      'a null value',
      'insert into secret select 1; alter table secret alter id set not null; insert into secret values (null)',
      DataError,
      'null_value',
    ],
    ['a type conflict', 'select 1 + point(1,1)', ConfigurationError, 'type_conflict'],
    ['a read-only session', 'begin read only; create table x (id int)', ConfigurationError, 'read_only_server'],
    ['a syntax error', 'selec', ConfigurationError, 'statement_refused'],
  ])('%s', async (_, sql, type, code) => {
    const error = await failing(sql);
    expect(error).toBeInstanceOf(type);
    expect(error.code).toBe(code);
  });

  test('a right that is missing', async () => {
    const error = await failing('select * from secret', { username: role, password: 'right' });
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.code).toBe('permission_denied');
  });

  test('a statement longer than the time it has', async () => {
    const error = await failing('select pg_sleep(30)', { statement_timeout_seconds: 1 });
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.code).toBe('statement_timeout');
  });

  test('a failed statement is recorded with its code', async () => {
    const { ctx, entries } = sourceConfig(sides.source);
    await errorOf(withSession(ctx, { phase: 'run' }, (session) => session.query('select * from absent')));
    expect(entries.at(-1)).toMatchObject({ method: 'QUERY', body: 'select * from absent', code: 'table_missing' });
  });

  test('a destination without the right to create says so', async () => {
    const { ctx } = destinationConfig(sides.source, { schema: 'closed' });
    const limited = { ...ctx, config: { ...ctx.config, username: role, password: 'right' } };
    const stream = { namespace: null, name: 't', fields: [], source_defined_primary_key: null } as never;
    const opening = postgresDestination.open(limited, { ...targetOf(stream), columns: [column('id', 'integer')] });
    expect((await errorOf(opening)).code).toBe('permission_denied');
  });

  test('a value out of range names its row and column', async () => {
    const stream = { namespace: null, name: 'ranged', fields: [], source_defined_primary_key: null } as never;
    const writer = await postgresDestination.open(destinationConfig(sides.destination).ctx, {
      ...targetOf(stream),
      columns: [column('n', 'integer')],
    });
    await writer.write(batchOf([['1'], ['99999999999999999999']]));
    const error = await errorOf(writer.finish(null));
    await writer.abort();
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toContain('row 2, column n');
  });

  test('certificates that are not trusted are a wrong setting, an error that nobody knows stays what it is', () => {
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
    const bug = new TypeError('x is not a function');
    expect(connectorError(bug, place)).toBe(bug);
  });
});
