import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'bun:test';
import postgres from 'postgres';
import { prepareCluster } from '../../db/embedded-cluster.ts';
import { fastFolder } from './fast-folder.ts';
import { freePort } from './free-port.ts';
import { childrenOf, isAlive } from './processes.ts';
import type { OwnServer } from './postgres.ts';
import { until } from './until.ts';
import { watchOver } from './watchdog.ts';

export interface KillablePostgres extends Pick<OwnServer, 'url'> {
  host: string;
  port: number;
  /** Ends all of its processes at once (SIGKILL) and starts it again, at the same port. */
  restart(): Promise<void>;
}

/** What was committed is there after SIGKILL. A power failure is not what is tested. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'wal_level=logical',
  'fsync=off',
  'shared_buffers=64MB',
  'max_prepared_transactions=4',
  // Each connection of a file keeps its slot.
  'max_replication_slots=40',
];

/** A PostgreSQL with a database `bank`, for the tests of one file. `more`: settings of the server. */
export async function startKillablePostgres(more: readonly string[] = []): Promise<KillablePostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'data-pipelines-test-'));
  const clusters = join(fastFolder(), 'data-pipelines-clusters');
  const cluster = await prepareCluster(folder, { ephemeral: true, clusters });
  const [host, port] = ['127.0.0.1', await freePort()];
  const url = (database: string) => `postgres://postgres:${cluster.password}@${host}:${port}/${database}`;
  const start = async () => {
    const settings = [...SETTINGS, ...more].flatMap((setting) => ['-c', setting]);
    const server = Bun.spawn([cluster.binaries.postgres, '-D', cluster.data, '-p', String(port), ...settings], {
      ...cluster.owner,
      cwd: cluster.data,
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'ignore', openSync(cluster.log, 'a')],
    });
    watchOver(server, cluster.home);
    const answers = async () => {
      if (server.exitCode !== null) throw new Error(`PostgreSQL ended: ${readFileSync(cluster.log, 'utf8')}`);
      const probe = postgres(url('postgres'), { max: 1, onnotice: () => {} });
      return probe`select 1`.then(
        () => probe.end().then(() => true),
        () => probe.end().then(() => false),
      );
    };
    await until(answers, { timeout_ms: 60_000, what: 'PostgreSQL answers' });
    return server;
  };
  const kill = async (server: Bun.Subprocess) => {
    // Nothing is started meanwhile.
    server.kill('SIGSTOP');
    const children = childrenOf(server.pid, '');
    for (const pid of children) process.kill(pid, 'SIGKILL');
    server.kill('SIGKILL');
    await server.exited;
    await until(() => !children.some(isAlive));
  };
  let running = await start();
  afterAll(async () => {
    await kill(running);
    for (const path of [cluster.home, folder]) rmSync(path, { recursive: true, force: true });
  });
  const admin = postgres(url('postgres'), { max: 1, onnotice: () => {} });
  await admin`create database bank`;
  await admin.end();
  return {
    host,
    port,
    url,
    async restart() {
      await kill(running);
      running = await start();
    },
  };
}

/** A session of its own for each look: those that were open end with their server. */
export async function onBank<Result>(
  server: KillablePostgres,
  work: (sql: postgres.Sql) => Promise<Result>,
): Promise<Result> {
  const sql = postgres(server.url('bank'), { max: 1, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 0 });
  }
}
