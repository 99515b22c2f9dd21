import { createServer, type Server, type Socket } from 'node:net';
import { beforeAll, expect, test } from 'bun:test';
import {
  AuthenticationError,
  ConfigurationError,
  RetryableError,
  TimeoutError,
} from '../../server/connectors/contract/errors.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { PgSession, withSession } from '../../server/connectors/postgres/connection/session.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { startSshd } from '../support/sshd.ts';
import { until } from '../support/until.ts';
import * as my from './mysql-support.ts';
import {
  backends,
  destinationConfig,
  moveStream,
  requestOf,
  sourceConfig,
  streamNamed,
  targetOf,
  twoDatabases,
} from './postgres-support.ts';
import { describeTunnel, through } from './tunnel-support.ts';
import { errorOf } from './unreachable.ts';

const sides = twoDatabases();
const mysqlSide = my.mysqlDatabase();
const [sshd, closedSshd] = [await startSshd(), await startSshd(['AllowTcpForwarding no'])];
beforeAll(async () => {
  const { sql } = sides.source;
  await sql`create table items as select id::int, repeat(md5(id::text), 10) note from generate_series(1, 20000) id`;
  if (!mariaDbMissing)
    await mysqlSide.sql('create table items (id int primary key); insert into items values (1), (2)');
});

type More = Parameters<typeof through>[2];

/** The error of a check through such a tunnel. */
async function refused(more: More & { settings?: object; at?: typeof sshd } = {}) {
  const tunnel = through(more.at ?? sshd, sourceConfig(sides.source, more.settings), more);
  const error = await errorOf(postgresSource.check(tunnel.ctx));
  await tunnel.close();
  return { error, entries: tunnel.entries };
}

/** The same in a run. */
async function refusedInRun(more: More & { settings?: object; at?: typeof sshd } = {}) {
  const tunnel = through(more.at ?? sshd, sourceConfig(sides.source, more.settings), more);
  const error = await errorOf(withSession(tunnel.ctx, { phase: 'run' }, async () => {}));
  await tunnel.close();
  return error;
}

async function listener(answer: (socket: Socket) => void): Promise<{ port: number; server: Server }> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as { port: number }).port };
}

describeTunnel('through a tunnel', () => {
  test('PostgreSQL: check, discovery and rows by every lane', async () => {
    const { sql } = sides.source;
    const from = through(sshd, sourceConfig(sides.source));
    const to = through(sshd, destinationConfig(sides.destination));
    expect((await postgresSource.check(from.ctx)).checks.map(({ status }) => status)).toEqual(['passed', 'passed']);
    expect((await postgresSource.discover(from.ctx)).map(({ name }) => name)).toEqual(['items']);
    const stream = await streamNamed(sides.source, 'items');
    const [there] = await sql`select count(*)::int n, md5(string_agg(note, '' order by id)) hash from items`;
    expect(there!.n).toBe(20_000);
    for (const lane of ['rows', 'pgcopy-binary', 'pgcopy-text'] as const) {
      const target = { ...targetOf(stream), table: lane, stream_id: lane };
      await moveStream({ from: from.ctx, to: to.ctx, request: requestOf(stream), target, lane });
      const [copied] = await sides.destination.sql`
        select count(*)::int n, md5(string_agg(note, '' order by id)) hash from ${sides.destination.sql(lane)}`;
      expect({ ...copied }).toEqual({ ...there });
    }
    expect([from.pinned, to.pinned]).toEqual([[sshd.fingerprint], [sshd.fingerprint]]);
    await Promise.all([from.close(), to.close()]);
    await until(() => sshd.logins() === 0);
  });

  test.skipIf(mariaDbMissing !== null)('MySQL: check, discovery and rows, in plain text and with TLS', async () => {
    const { ca } = mysqlSide.server;
    const verified = { host: 'localhost', ssl_mode: 'verify-full', ssl_ca: ca } as const;
    for (const settings of [{}, { ssl_mode: 'prefer' }, verified] as const) {
      const { ctx, close } = through(sshd, my.sourceConfig(mysqlSide, settings));
      expect((await mysqlSource.check(ctx)).checks.map(({ status }) => status)).toEqual(['passed', 'passed']);
      const [stream] = await mysqlSource.discover(ctx);
      expect((await my.readAll(ctx, requestOf(stream!))).rows).toEqual([['1'], ['2']]);
      await close();
    }
    const wrongName = through(sshd, my.sourceConfig(mysqlSide, { ...verified, host: '127.0.0.1' }));
    expect((await errorOf(mysqlSource.check(wrongName.ctx))).code).toBe('certificate_invalid');
    await wrongName.close();
    await until(() => sshd.logins() === 0);
  });

  test('all connections share one login', async () => {
    const { ctx, close, entries } = through(sshd, sourceConfig(sides.source, { ssl_mode: 'disable' }));
    const sessions = await Promise.all([1, 2, 3].map(() => PgSession.open(ctx, { phase: 'run' })));
    const logins = entries.filter(({ url }) => url.startsWith('ssh://'));
    expect(logins).toHaveLength(1);
    expect(logins[0]).toMatchObject({ method: 'CONNECT', url: `ssh://127.0.0.1:${sshd.port}`, status: 200 });
    expect(await backends(sides.source)).toBe(3);
    await Promise.all(sessions.map((session) => session.close()));
    await close();
    await until(() => sshd.logins() === 0);
  });

  test('a login that ended is repeated', async () => {
    const { ctx, close, entries } = through(sshd, sourceConfig(sides.source));
    await withSession(ctx, { phase: 'run' }, async () => {});
    await sshd.restart('same');
    await until(async () => {
      const worked = await withSession(ctx, { phase: 'run' }, async () => {}).catch(() => false);
      return worked !== false;
    });
    expect(entries.filter(({ url, status }) => url.startsWith('ssh://') && status === 200)).toHaveLength(2);
    await close();
  });
});

describeTunnel('a login that is refused', () => {
  test('by key or user is an authentication error whose message omits the key', async () => {
    const { private_key } = generateSshKey('stranger');
    for (const more of [{ key: private_key }, { username: 'nobody-of-that-name' }]) {
      const { error, entries } = await refused(more);
      expect(error).toBeInstanceOf(AuthenticationError);
      expect(error.code).toBe('ssh_login_refused');
      expect(JSON.stringify([error.message, entries])).not.toContain(private_key.split('\n')[2]!);
      const login = entries.find(({ url }) => url.startsWith('ssh://'));
      expect(login).toMatchObject({ url: `ssh://127.0.0.1:${sshd.port}`, code: 'ssh_login_refused' });
    }
  });

  test('a server with a changed host key is rejected before the login', async () => {
    const host_key = `SHA256:${'A'.repeat(43)}`;
    const { error } = await refused({ host_key });
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.code).toBe('ssh_host_key_changed');
    expect(error.message).toContain(sshd.fingerprint);
    expect(error.message).toContain(host_key);
    const known = through(sshd, sourceConfig(sides.source), { host_key: sshd.fingerprint });
    await postgresSource.check(known.ctx);
    expect(known.pinned).toEqual([]);
    await known.close();
  });

  test('a closed port is a configuration error in a check and retryable in a run', async () => {
    const { server, port } = await listener(() => {});
    await new Promise((resolve) => server.close(resolve));
    const { error } = await refused({ port });
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.code).toBe('ssh_unreachable');
    expect(await refusedInRun({ port })).toBeInstanceOf(RetryableError);
  });

  test('a silent server is a timeout; another protocol is a lost connection', async () => {
    const silent = await listener(() => {});
    const { error } = await refused({ port: silent.port, settings: { connect_timeout_seconds: 1 } });
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.code).toBe('ssh_timeout');
    silent.server.close();
    const web = await listener((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect((await refused({ port: web.port })).error.code).toBe('ssh_connection_lost');
    web.server.close();
  });
});

describeTunnel('a connection that the SSH server does not make', () => {
  test('because forwarding is disabled is a configuration error', async () => {
    const { error } = await refused({ at: closedSshd });
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.code).toBe('ssh_forward_refused');
  });

  test('because the port is closed is a configuration error in a check and retryable in a run', async () => {
    const { server, port } = await listener(() => {});
    await new Promise((resolve) => server.close(resolve));
    const { error } = await refused({ settings: { port } });
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.code).toBe('connection_refused');
    expect(error.message).toContain(`127.0.0.1:${port} from the SSH server`);
    expect(await refusedInRun({ settings: { port } })).toBeInstanceOf(RetryableError);
  });

  test('because the address is always blocked', async () => {
    for (const host of ['169.254.169.254', '[fd00:ec2::254]', 'metadata.google.internal.', '0.0.0.0', '2852039166']) {
      const { error } = await refused({ settings: { host } });
      expect(error).toBeInstanceOf(ConfigurationError);
      expect([host, error.code]).toEqual([host, 'address_not_allowed']);
    }
  });

  test('because it is the control database, by any name for this machine', async () => {
    const { port, database } = sides.source.server;
    const rules = { control: `postgres://u@localhost:${port}/${database}` };
    for (const host of ['127.0.0.1', 'localhost', 'LOCALHOST.', '127.9.9.9', '::1', '::ffff:127.0.0.1', '2130706433']) {
      expect([host, (await refused({ rules, settings: { host } })).error.code]).toEqual([host, 'address_not_allowed']);
    }
    const beside = through(sshd, sourceConfig(sides.destination), { rules });
    expect((await postgresSource.check(beside.ctx)).checks[0]).toMatchObject({ status: 'passed' });
    await beside.close();
  });
});

describeTunnel('the end of a tunnel', () => {
  test('a stop in the middle ends the statement on the server and the login, within four seconds', async () => {
    const { ctx, abort } = through(sshd, sourceConfig(sides.source));
    const session = await PgSession.open(ctx, { phase: 'run' });
    const waiting = errorOf(session.query('select pg_sleep(60)', { slow: true }));
    await until(async () => (await backends(sides.source, 'active')) === 1);
    const reason = new Error('stop');
    const begun = performance.now();
    abort.abort(reason);
    expect(await waiting).toBe(reason as never);
    await session.close();
    await until(async () => (await backends(sides.source)) === 0);
    await until(() => sshd.logins() === 0);
    expect(performance.now() - begun).toBeLessThan(4000);
  });

  test('a stop during the login ends it', async () => {
    const { server, port } = await listener(() => {});
    const { ctx, abort, close } = through(sshd, sourceConfig(sides.source), { port });
    const checking = errorOf(postgresSource.check(ctx));
    const reason = new Error('stop');
    abort.abort(reason);
    expect(await checking).toBe(reason as never);
    await close();
    server.close();
  });

  test('a server that dies during a read is a lost connection', async () => {
    const { ctx, close } = through(sshd, sourceConfig(sides.source));
    const stream = await streamNamed(sides.source, 'items');
    const { chunks } = await postgresSource.copy!(ctx, requestOf(stream), 'pgcopy-text');
    const reading = (async () => {
      for await (const _ of chunks) await sshd.kill();
    })();
    const error = await errorOf(reading);
    expect(error).toBeInstanceOf(RetryableError);
    expect(error.code).toBe('connection_lost');
    await close();
    await until(async () => (await backends(sides.source)) === 0);
    await sshd.restart('same');
  });
});
