import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { isAlive } from '../support/processes.ts';
import { until } from '../support/until.ts';

const folder = temporaryFolder();
const dataDir = join(folder, 'data');
const homes = new Set<string>();
afterAll(() => homes.forEach((home) => rmSync(home, { recursive: true, force: true })));

const ask = async <T>(url: string, question: (sql: postgres.Sql) => Promise<T>): Promise<T> => {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await question(sql);
  } finally {
    await sql.end();
  }
};
const show = (url: string, name: string) =>
  ask(url, async (sql) => (await sql.unsafe(`show ${name}`))[0]?.[name] as string);

/** Sessions by which processes keep the server running. */
const holders = (url: string) =>
  ask(url, async (sql) => {
    const [row] = await sql`
      select count(*)::int as count from pg_stat_activity where application_name = 'data-pipelines holder'`;
    return row!.count as number;
  });

/** Directory of the cluster, and the process number of its server. */
async function look(url: string) {
  const data = await show(url, 'data_directory');
  homes.add(dirname(data));
  return { data, pid: Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]) };
}

/** Another process that holds the server; `end` closes its standard input. */
async function holder(directory: string, kind = '') {
  const script = join(import.meta.dir, '../support/hold-postgres.ts');
  const child = Bun.spawn([process.execPath, script, directory, kind], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { value } = await child.stdout.getReader().read();
  return { child, url: new TextDecoder().decode(value).trim(), end: () => (child.stdin.end(), child.exited) };
}

describe('a running server', () => {
  let server: EmbeddedPostgres;
  beforeAll(async () => {
    server = await startEmbeddedPostgres({ dataDir });
    await look(server.url('postgres'));
  });
  afterAll(() => server.stop());

  test('is configured for the service: UTF-8, logical decoding, durable commits', async () => {
    const url = server.url('pipelines');
    expect(await show(url, 'server_encoding')).toBe('UTF8');
    expect(await show(url, 'wal_level')).toBe('logical');
    expect(await show(url, 'fsync')).toBe('on');
    expect(await show(url, 'max_slot_wal_keep_size')).toBe('16GB');
    expect(await show(url, 'TimeZone')).toBe('UTC');
  });

  test('is reached over loopback only, and with its password only', async () => {
    expect(await show(server.url('postgres'), 'listen_addresses')).toBe('127.0.0.1');
    const wrong = new URL(server.url('postgres'));
    wrong.password = 'guess';
    await expect(ask(wrong.href, (sql) => sql`select 1`)).rejects.toThrow('password authentication failed');
  });

  test('lets the warehouse role create tables there and keeps it out of the control database', async () => {
    const { host, port, database, username, password } = server.warehouse;
    const url = (name: string) => `postgres://${username}:${password}@${host}:${port}/${name}`;
    await ask(url(database), (sql) => sql`create table probe as select 1 as one`);
    await ask(url(database), (sql) => sql`drop table probe`);
    await expect(ask(url('pipelines'), (sql) => sql`select 1`)).rejects.toThrow('permission denied for database');
  });

  // Its session may be listed for a while after the process has ended, so the list itself cannot show this.
  test('is no longer marked as used by a process before that process closes its session', async () => {
    const url = server.url('postgres');
    const { data } = await look(url);
    const logged = () => readFileSync(join(dirname(data), 'server.log'), 'utf8');
    const setting = (sql: postgres.Sql) => sql`alter system set log_statement = 'all'`;
    await ask(url, async (sql) => [await setting(sql), await sql`select pg_reload_conf()`]);
    await until(async () => (await show(url, 'log_statement')) === 'all');
    const other = await startEmbeddedPostgres({ dataDir });
    expect(await holders(url)).toBe(2);
    await other.stop();
    expect(await holders(url)).toBe(1);
    expect(logged()).toContain("set application_name = ''");
    await ask(url, async (sql) => [await sql`alter system reset log_statement`, await sql`select pg_reload_conf()`]);
  });
});

describe('after a stop', () => {
  test('the server is gone; the next start has the same data, port and password', async () => {
    const first = await startEmbeddedPostgres({ dataDir });
    const { pid } = await look(first.url('postgres'));
    await ask(first.url('pipelines'), (sql) => sql`create table kept as select 'kept' as word`);
    await first.stop();
    // A process that has given back its memory still takes a moment to end.
    await until(() => !isAlive(pid), { timeout_ms: 5000, what: 'the server is gone' });
    const second = await startEmbeddedPostgres({ dataDir });
    expect(second.url('pipelines')).toBe(first.url('pipelines'));
    expect(second.previousPort).toBe(second.port);
    const [row] = await ask(second.url('pipelines'), (sql) => sql`select word from kept`);
    expect(row?.word).toBe('kept');
    await second.stop();
  });

  test('a port in use is replaced, and the change is logged', async () => {
    const first = await startEmbeddedPostgres({ dataDir });
    await first.stop();
    using taken = Bun.listen({ hostname: '127.0.0.1', port: first.port, socket: { data: () => {} } });
    const second = await startEmbeddedPostgres({ dataDir });
    expect(taken.port).toBe(first.port);
    expect(second.port).not.toBe(first.port);
    expect(second.previousPort).toBe(first.port);
    expect(await show(second.url('postgres'), 'port')).toBe(String(second.port));
    await second.stop();
  });

  test('a PID file of an unrelated process does not prevent the start', async () => {
    const first = await startEmbeddedPostgres({ dataDir });
    const { data } = await look(first.url('postgres'));
    const file = readFileSync(join(data, 'postmaster.pid'), 'utf8');
    await first.stop();
    writeFileSync(join(data, 'postmaster.pid'), file.replace(/^\d+/, String(process.pid)));
    const second = await startEmbeddedPostgres({ dataDir });
    expect((await look(second.url('postgres'))).pid).not.toBe(process.pid);
    await second.stop();
  });
});

describe('after kill -9', () => {
  test('of the service, the running server is reused and can be stopped', async () => {
    const other = await holder(dataDir);
    const before = await look(other.url);
    other.child.kill('SIGKILL');
    await other.child.exited;
    expect(isAlive(before.pid)).toBeTrue();
    const server = await startEmbeddedPostgres({ dataDir });
    expect(await look(server.url('pipelines'))).toEqual(before);
    await server.stop();
    expect(existsSync(join(before.data, 'postmaster.pid'))).toBeFalse();
  });

  test('of the server itself, it is started again on the same port with what was committed', async () => {
    const server = await startEmbeddedPostgres({ dataDir });
    const { pid } = await look(server.url('postgres'));
    const url = server.url('pipelines');
    await ask(url, (sql) => sql`create table again as select generate_series(1, 1000) as n`);
    process.kill(pid, 'SIGKILL');
    const count = () => ask(url, async (sql) => (await sql`select count(*)::int as rows from again`)[0]?.rows);
    let rows: unknown = null;
    await until(async () => {
      rows = await count().catch(() => null);
      return rows !== null;
    });
    expect(rows).toBe(1000);
    expect((await look(url)).pid).not.toBe(pid);
    await server.stop();
  });

  test('of the server itself the next start recovers what was committed', async () => {
    const first = await startEmbeddedPostgres({ dataDir });
    const { pid } = await look(first.url('postgres'));
    await ask(first.url('pipelines'), (sql) => sql`create table survives as select generate_series(1, 1000) as n`);
    process.kill(pid, 'SIGKILL');
    await until(() => !isAlive(pid));
    const second = await startEmbeddedPostgres({ dataDir });
    const [row] = await ask(second.url('pipelines'), (sql) => sql`select count(*)::int as rows from survives`);
    expect(row?.rows).toBe(1000);
    await second.stop();
    await first.stop();
  });
});

test('processes that start at once share one server, and the last one out stops it', async () => {
  const shared = join(folder, 'shared');
  const [one, two] = await Promise.all([holder(shared), holder(shared)]);
  expect(one.url).toBe(two.url);
  const { data } = await look(one.url);
  await one.end();
  expect(await show(two.url, 'port')).toBe(new URL(two.url).port);
  await two.end();
  expect(existsSync(join(data, 'postmaster.pid'))).toBeFalse();
});

test('a DATA_DIR that was deleted gets empty databases that work, not old ones whose keys are lost', async () => {
  const lost = join(folder, 'lost');
  const first = await startEmbeddedPostgres({ dataDir: lost });
  await look(first.url('postgres'));
  await ask(first.url('pipelines'), (sql) => sql`create table old as select 1 as one`);
  await first.stop();
  rmSync(lost, { recursive: true });
  const second = await startEmbeddedPostgres({ dataDir: lost });
  await look(second.url('postgres'));
  const [row] = await ask(second.url('pipelines'), (sql) => sql`select to_regclass('old')::text as old`);
  expect(row?.old).toBeNull();
  await second.stop();
});

test('an ephemeral server and its files go with the process, even with one that is killed', async () => {
  const other = await holder(join(folder, 'ephemeral'), 'ephemeral');
  const { pid, data } = await look(other.url);
  other.child.kill('SIGKILL');
  await until(() => !isAlive(pid) && !existsSync(dirname(data)));
});

test('the cluster of a temporary DATA_DIR that is gone is removed by a later start', async () => {
  const gone = join(folder, 'gone');
  const first = await startEmbeddedPostgres({ dataDir: gone });
  const { data } = await look(first.url('postgres'));
  await first.stop();
  rmSync(gone, { recursive: true });
  const second = await startEmbeddedPostgres({ dataDir });
  expect(existsSync(data)).toBeFalse();
  await second.stop();
});
