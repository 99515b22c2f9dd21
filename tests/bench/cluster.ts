import { chownSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { processorSeconds } from './processor-seconds.ts';
import { scratchFolder } from './scratch.ts';
import { freePort } from '../support/free-port.ts';
import { watchOver } from '../support/watchdog.ts';

const BIN = '/usr/lib/postgresql/15/bin';

/**
 * A PostgreSQL 15 of Debian's packages (postgresql-15), so that psql and pg_dump of the same version can be measured
 * against it. Source and destination are two databases of it. Durable as it comes: fsync on.
 */
export interface Cluster {
  host: string;
  port: number;
  username: string;
  password: string;
  url(database: string): string;
  psql(database: string, sql: string): void;
  /** Runs a shell command with $SRC, $DST and $SUB as URLs; the seconds that it took. */
  time(command: string): number;
  /** The same with other URLs in `env`, and the processor seconds of the command itself. */
  run(command: string, env?: Record<string, string>): { seconds: number; processor: number };
  /** Processor seconds of the server so far. */
  seconds(): number;
  /** Its processes neither answer nor end any more. */
  pause(): void;
  stop(): Promise<void>;
}

/** `more`: settings of the server. */
export async function startCluster(more: string[] = []): Promise<Cluster> {
  if (!existsSync(`${BIN}/initdb`)) throw new Error('this bench needs the Debian package postgresql-15');
  const user = systemUser('postgres');
  const folder = scratchFolder();
  chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const port = await freePort();
  const pass = join(folder, 'password');
  await Bun.write(pass, 'bench');
  const as = { uid: user.uid, gid: user.gid, cwd: folder, stdout: 'ignore', stderr: 'inherit' } as const;
  const made = Bun.spawnSync(
    [`${BIN}/initdb`, '-D', data, '-U', 'bench', '-A', 'scram-sha-256', `--pwfile=${pass}`],
    as,
  );
  if (!made.success) throw new Error('initdb failed');
  const settings = [
    'shared_buffers=1GB',
    'max_wal_size=8GB',
    'checkpoint_timeout=30min',
    'listen_addresses=127.0.0.1',
    ...more,
  ];
  const server = Bun.spawn(
    [`${BIN}/postgres`, '-D', data, '-p', String(port), '-k', folder, ...settings.flatMap((one) => ['-c', one])],
    { ...as, stderr: 'ignore' },
  );
  watchOver(server);
  const url = (database: string) => `postgres://bench:bench@127.0.0.1:${port}/${database}`;
  const psql = (database: string, sql: string) => {
    const done = Bun.spawnSync(['psql', '-qX', '-v', 'ON_ERROR_STOP=1', url(database), '-c', sql], {
      stderr: 'inherit',
    });
    if (!done.success) throw new Error(`psql failed: ${sql}`);
  };
  const run: Cluster['run'] = (command, urls = {}) => {
    const begun = performance.now();
    const done = Bun.spawnSync(['bash', '-o', 'pipefail', '-c', command], {
      env: { ...process.env, SRC: url('src'), DST: url('dst'), SUB: url('sub'), ...urls },
      stderr: 'inherit',
    });
    if (!done.success) throw new Error(`failed: ${command}`);
    const processor = Number(done.resourceUsage.cpuTime.total) / 1e6;
    return { seconds: (performance.now() - begun) / 1000, processor };
  };
  const deadline = Date.now() + 30_000;
  while (!Bun.spawnSync(['psql', '-qX', url('postgres'), '-c', 'select 1']).success) {
    if (Date.now() > deadline) throw new Error('the cluster did not start');
    await Bun.sleep(50);
  }
  for (const database of ['src', 'dst']) psql('postgres', `create database ${database}`);
  return {
    host: '127.0.0.1',
    port,
    username: 'bench',
    password: 'bench',
    url,
    psql,
    time: (command) => run(command).seconds,
    run,
    seconds: () => processorSeconds(server.pid),
    pause: () => signalAll(server.pid, 'STOP'),
    async stop() {
      signalAll(server.pid, 'CONT');
      server.kill('SIGINT');
      await server.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function signalAll(pid: number, signal: 'STOP' | 'CONT'): void {
  Bun.spawnSync(['pkill', `-${signal}`, '-P', String(pid)]);
  Bun.spawnSync(['kill', `-${signal}`, String(pid)], { stderr: 'ignore' });
}

function systemUser(name: string): { uid: number; gid: number } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  if (!uid || !gid) throw new Error(`there is no user ${name}`);
  return { uid: Number(uid), gid: Number(gid) };
}
