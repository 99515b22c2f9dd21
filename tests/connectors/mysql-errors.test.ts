import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { ConnectorContext } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, DataError, RetryableError } from '../../server/connectors/contract/errors.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import { connectorError } from '../../server/connectors/mysql/connection/failures.ts';
import { MysqlSession, withSession } from '../../server/connectors/mysql/connection/session.ts';
import type { MysqlSourceConfig } from '../../server/connectors/mysql/connection/settings.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { describeMysql, destinationConfig, mysqlDatabase, sourceConfig, threads } from './mysql-support.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { until } from '../support/until.ts';
import { column, targetOf, type TestContext } from './postgres-support.ts';
import { testServerErrors } from './server-errors.ts';
import { errorOf, testUnreachable, withListener } from './unreachable.ts';

const user = `limited_${crypto.randomUUID().slice(0, 8)}`;
const limited = { username: user, password: 'right' };
const side = mysqlDatabase();
beforeAll(async () => {
  if (!side.sql) return;
  await side.sql(
    `create table secret (id int not null, tiny tinyint); create user ${user} identified by 'right';
     create database ${side.database}_closed; grant create temporary tables on ${side.database}.* to ${user}`,
  );
});
afterAll(async () => {
  if (!mariaDbMissing) await side.server.sql(`drop database ${side.database}_closed; drop user ${user}`);
});

const check = (more: Partial<MysqlSourceConfig>) => mysqlSource.check(sourceConfig(side, more).ctx);
const query = (ctx: ConnectorContext<MysqlSourceConfig>, sql: string) =>
  withSession(ctx, { phase: 'run' }, (session) => session.query(sql));

describeMysql('the check', () => {
  test('passes and reports version, tables and how rows are loaded', async () => {
    const { checks } = await check({});
    expect(checks.map(({ title, status }) => [title, status])).toEqual([
      ['Connection', 'passed'],
      ['Tables', 'passed'],
    ]);
    expect(checks[0]!.message).toMatch(/^MariaDB \d+/);
    const destination = await mysqlDestination.check(destinationConfig(side).ctx);
    expect(destination.checks.map(({ status }) => status)).toEqual(['passed', 'passed', 'passed']);
    expect(await mysqlSource.possibleValues!.database!(sourceConfig(side, { database: 'wrong' }).ctx)).toHaveProperty([
      side.database,
    ]);
  });

  testUnreachable({
    check,
    run: (wrong) => query(sourceConfig(side, wrong).ctx, 'select 1'),
    stoppable: (wrong) => {
      const { ctx, abort } = sourceConfig(side, wrong);
      return { checking: mysqlSource.check(ctx), abort };
    },
    accepts: (settings) => mysqlSource.config.safeParse(settings).success,
  });

  test('missing permissions fail the check', async () => {
    const { checks } = await check(limited);
    expect(checks.at(-1)).toMatchObject({ status: 'failed', message: expect.stringContaining('No table or view') });
    expect((await errorOf(check({ ...limited, database: `${side.database}_closed` }))).code).toBe('permission_denied');
    const { ctx } = destinationConfig(side, limited);
    expect((await errorOf(mysqlDestination.check(ctx))).code).toBe('permission_denied');
  });
});

describeMysql('TLS', () => {
  test('is checked for authority and host name according to ssl_mode', async () => {
    const { ca } = side.server;
    const secure = (more: Partial<MysqlSourceConfig>) =>
      withSession(sourceConfig(side, more).ctx, { phase: 'setup' }, async (session) => {
        const { rows } = await session.query("show status like 'Ssl_cipher'");
        return rows[0]![1] !== '';
      });
    expect(await secure({ ssl_mode: 'disable' })).toBe(false);
    expect(await secure({ ssl_mode: 'prefer' })).toBe(true);
    expect(await secure({ ssl_mode: 'require' })).toBe(true);
    expect(await secure({ ssl_mode: 'verify-ca', ssl_ca: ca })).toBe(true);
    expect(await secure({ ssl_mode: 'verify-full', ssl_ca: ca, host: 'localhost' })).toBe(true);
    for (const wrong of [
      { ssl_mode: 'verify-ca' as const },
      { ssl_mode: 'verify-full' as const, host: 'localhost' },
      { ssl_mode: 'verify-full' as const, ssl_ca: ca, host: '127.0.0.1' },
    ]) {
      const error = await errorOf(secure(wrong));
      expect(error).toBeInstanceOf(ConfigurationError);
      expect(error.code).toBe('certificate_invalid');
    }
  });

  test('that is required but missing is a configuration error; prefer continues without it', async () => {
    // The server's greeting without the TLS capability.
    await withListener(
      (socket) => socket.write(greetingWithoutTls()),
      async (port) => {
        for (const ssl_mode of ['require', 'verify-ca', 'verify-full'] as const) {
          expect((await errorOf(check({ port, ssl_mode }))).code).toBe('tls_not_supported');
        }
        expect((await errorOf(check({ port, ssl_mode: 'prefer', connect_timeout_seconds: 1 }))).code).toBe(
          'connection_timeout',
        );
      },
    );
  });
});

describeMysql('errors of the server', () => {
  testServerErrors({
    context: (more) => sourceConfig(side, more) as TestContext<never>,
    query,
    limited,
    sleeping: 'select sleep(30)',
    ending: 'kill connection_id()',
    connectorError,
    own: [
      ['a deadlock', "signal sqlstate '40001' set mysql_errno = 1213", RetryableError, 'deadlock'],
      ['a lock that nobody lets go', "signal sqlstate 'HY000' set mysql_errno = 1205", RetryableError, 'lock_timeout'],
      ['a full disk', "signal sqlstate 'HY000' set mysql_errno = 1021", RetryableError, 'server_out_of_resources'],
      [
        'a read-only server',
        "signal sqlstate 'HY000' set mysql_errno = 1290, message_text = 'running with the --read-only option'",
        RetryableError,
        'read_only_server',
      ],
      ['a read-only transaction', "signal sqlstate '25006' set mysql_errno = 1792", RetryableError, 'read_only_server'],
      [
        'an option of the server',
        "signal sqlstate 'HY000' set mysql_errno = 1290, message_text = 'running with the --secure-file-priv option'",
        ConfigurationError,
        'not_supported',
      ],
      ['a malformed value', "insert into secret values ('x', 1)", DataError, 'invalid_value'],
      ['a value out of range', 'insert into secret values (1, 1000)', DataError, 'value_out_of_range'],
      ['a null value', 'insert into secret values (null, 1)', DataError, 'null_value'],
    ],
  });

  test('a destination without permission to create tables is reported', async () => {
    const stream = { namespace: null, name: 't', fields: [], source_defined_primary_key: null } as never;
    const wanted = { ...targetOf(stream), columns: [column('id', 'integer')] };
    const opening = mysqlDestination.open(destinationConfig(side, limited).ctx, wanted);
    expect((await errorOf(opening)).code).toBe('permission_denied');
  });

  test('a killed connection is retryable', async () => {
    const broken = errorOf(query(sourceConfig(side).ctx, 'select sleep(20)'));
    await until(async () => (await threads(side, 'sleep(20)')) > 0);
    const [one] = await side.server.sql(
      `select id from information_schema.processlist where db = '${side.database}' and info = 'select sleep(20)'`,
    );
    await side.server.sql(`kill ${String(one!.id)}`);
    expect(await broken).toBeInstanceOf(RetryableError);
  });
});

/** The first packet of the protocol: version 10, the server's name, a salt, and capabilities without SSL (0x0800). */
function greetingWithoutTls(): Buffer {
  const capabilities = 0x0fffffff & ~0x0800;
  const body = Buffer.concat([
    Buffer.from('\x0a8.0.0\0', 'latin1'),
    Buffer.from([1, 0, 0, 0]),
    Buffer.from('12345678\0', 'latin1'),
    Buffer.from([capabilities & 255, (capabilities >> 8) & 255, 45, 2, 0]),
    Buffer.from([(capabilities >> 16) & 255, (capabilities >> 24) & 255, 21]),
    Buffer.alloc(10),
    Buffer.from('123456789012\0mysql_native_password\0', 'latin1'),
  ]);
  return Buffer.concat([Buffer.from([body.length, 0, 0, 0]), body]);
}

describeMysql('a session that waits', () => {
  test.each([
    ['a row', ['update held set n = 1', 'update held set n = 2'], /\.held$/, 1],
    ['a table', ['select n from held', 'alter table held add m int'], /table/, 0],
  ] as const)('for %s shows the lock and its holder', async (_, [holds, waits], on, holders) => {
    await side.sql('create table if not exists held (n int); replace into held values (0)');
    const { ctx } = destinationConfig(side);
    const [holder, waiter] = [
      await MysqlSession.open(ctx, { phase: 'run' }),
      await MysqlSession.open(ctx, { phase: 'run' }),
    ];
    await holder.query('begin');
    await holder.query(holds);
    const waiting = waiter.query(waits, { slow: true });
    let found = await waiter.look();
    await until(async () => (found = await waiter.look()).state === 'blocked');
    expect(waiter.waits()).toBe(true);
    expect(found).toMatchObject({ on: expect.stringMatching(on) });
    const shown = found.state === 'blocked' ? found.holders : [];
    expect(shown).toMatchObject(
      Array.from({ length: holders }, () => ({ user: 'tester', state: 'idle in transaction', statement: null })),
    );
    await holder.query('rollback');
    await waiting;
    expect((await waiter.look()).state).toBe('lost');
    await Promise.all([holder.close(), waiter.close()]);
  });
});
