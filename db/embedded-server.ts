import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { EmbeddedPostgresError } from './embedded-binaries.ts';
import type { Cluster } from './embedded-cluster.ts';

const START_SECONDS = 30;
const STOP_SECONDS = 30;
const LOG_KEEP_BYTES = 10_000_000;

/** WAL that the server keeps for a replication slot at most. */
const MAX_SLOT_WAL_MB = 16 * 1024;

/** Passed with `-c` instead of in a file, so that an upgrade of the service changes them. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  // TCP only: the path of a socket can be too long, and `nobody` may have no write access to its folder.
  'unix_socket_directories=',
  'wal_level=logical',
  'max_connections=200',
  'shared_buffers=256MB',
  'maintenance_work_mem=256MB',
  'work_mem=16MB',
  'max_wal_size=4GB',
  'checkpoint_timeout=15min',
  'wal_compression=on',
  // A CDC consumer that no longer reads would fill the disk. Beyond this its slot is invalid, and its streams are read again.
  `max_slot_wal_keep_size=${MAX_SLOT_WAL_MB}MB`,
  'jit=off',
  'timezone=UTC',
  'log_timezone=UTC',
  'log_min_messages=warning',
];
const EPHEMERAL_SETTINGS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  // Compressing the pages of new databases took 6 % of the server's processor time in the tests.
  'wal_compression=off',
  'max_wal_size=1GB',
  'shared_buffers=128MB',
  // The files of tests that run at the same time keep a slot for each of their connections.
  'max_replication_slots=60',
  'max_wal_senders=60',
];

/** The content of postmaster.pid. */
export interface Postmaster {
  pid: number;
  port: number;
  ready: boolean;
}

/**
 * Starts the cluster's server, or finds one that is already running: left over from a killed process, or started by another
 * process at the same time.
 * @throws EmbeddedPostgresError after 30 s, with the end of the server's log
 */
export async function startServer(
  cluster: Cluster,
  options: { ephemeral: boolean; port?: number },
): Promise<Postmaster> {
  const deadline = Date.now() + START_SECONDS * 1000;
  const logStart = rotateLog(cluster.log);
  let pid: number | null = null;
  for (let refused = 0; Date.now() < deadline; ) {
    const running = livePostmaster(cluster);
    if (running?.ready) return running;
    if (!running && pid === null) {
      pid = await spawnServer(cluster, { ...options, port: options.port ?? (await choosePort(cluster, refused > 0)) });
    } else if (pid !== null && !isPostmasterOf(cluster, pid)) {
      const tail = logTail(cluster.log, logStart);
      pid = null;
      refused += 1;
      // Both are temporary: another process was faster, or the port was taken after the kernel assigned it.
      if (!/lock file|could not (bind|create any TCP)/.test(tail) || refused > 20) {
        throw new EmbeddedPostgresError(`The embedded PostgreSQL does not start:\n${tail}`);
      }
    }
    await Bun.sleep(10);
  }
  if (pid !== null && isPostmasterOf(cluster, pid)) process.kill(pid, 'SIGKILL');
  throw new EmbeddedPostgresError(
    `The embedded PostgreSQL in ${cluster.data} was not ready after ${START_SECONDS} s:\n${logTail(cluster.log, logStart)}`,
  );
}

/** Stops the server, whichever process started it. Open transactions are rolled back; committed ones are on disk. */
export async function stopServer(cluster: Cluster): Promise<void> {
  const running = livePostmaster(cluster);
  if (!running) return;
  process.kill(running.pid, 'SIGINT');
  const deadline = Date.now() + STOP_SECONDS * 1000;
  while (isPostmasterOf(cluster, running.pid)) {
    // SIGQUIT is like a crash, from which PostgreSQL recovers at the next start.
    if (Date.now() > deadline) process.kill(running.pid, 'SIGQUIT');
    await Bun.sleep(Date.now() > deadline ? 500 : 10);
  }
}

/**
 * A shell in between detaches the server: it must outlive this process, and `bun test` kills all child processes of a test
 * that times out, which would include the database of all tests.
 * @returns the process id
 */
async function spawnServer(cluster: Cluster, options: { port: number; ephemeral: boolean }): Promise<number> {
  writeFileSync(cluster.portFile, String(options.port));
  const settings = options.ephemeral ? [...SETTINGS, ...EPHEMERAL_SETTINGS] : SETTINGS;
  const command = [cluster.binaries.postgres, '-D', cluster.data, '-p', String(options.port)];
  const log = openSync(cluster.log, 'a');
  try {
    const shell = Bun.spawn(
      ['/bin/sh', '-c', '"$@" >&2 & echo "$!"', 'sh', ...command, ...settings.flatMap((setting) => ['-c', setting])],
      {
        ...cluster.owner,
        cwd: cluster.data,
        env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
        stdio: ['ignore', 'pipe', log],
        // Its own session: Ctrl-C on the terminal must reach the server only through us, after the work is put down.
        detached: true,
      },
    );
    return Number(await new Response(shell.stdout).text());
  } finally {
    closeSync(log);
  }
}

/** The port of the last start if it is free, because configured connectors use it; otherwise one from the kernel. */
async function choosePort(cluster: Cluster, lastWasTaken: boolean): Promise<number> {
  const last = lastPort(cluster);
  if (last && !lastWasTaken && (await listenOn(last))) return last;
  const fresh = await listenOn(0);
  if (!fresh) throw new EmbeddedPostgresError('No port is free on 127.0.0.1');
  return fresh;
}

/** The port of the last start; null before the first. */
export function lastPort(cluster: Cluster): number | null {
  return Number(readIfThere(cluster.portFile)) || null;
}

function listenOn(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(null));
    probe.listen(port, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' ? (address?.port ?? null) : null));
    });
  });
}

export const isRunning = (cluster: Cluster): boolean => livePostmaster(cluster) !== null;

/** Null if no server runs. Removes the pid file of a dead one, because its pid may belong to any process by now. */
function livePostmaster(cluster: Cluster): Postmaster | null {
  const path = join(cluster.data, 'postmaster.pid');
  const lines = readIfThere(path)?.split('\n') ?? [];
  const pid = Number(lines[0]);
  // A file that is being written lacks its later lines; it belongs to a live server.
  if (!pid) return null;
  if (!isPostmasterOf(cluster, pid)) {
    if (Number(readIfThere(path)?.split('\n')[0]) === pid) rmSync(path, { force: true });
    return null;
  }
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' };
}

function isPostmasterOf(cluster: Cluster, pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const command = readIfThere(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ') ?? commandByPs(pid);
  return command.includes(`-D ${cluster.data} `);
}

const commandByPs = (pid: number) =>
  Bun.spawnSync(['ps', '-ww', '-o', 'command=', '-p', String(pid)]).stdout.toString();

function rotateLog(path: string): number {
  const size = sizeOf(path);
  if (size < LOG_KEEP_BYTES) return size;
  renameSync(path, `${path}.1`);
  return 0;
}

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

const logTail = (path: string, from: number) =>
  (readIfThere(path) ?? '').slice(from).trim().split('\n').slice(-20).join('\n') || '(its log is empty)';

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
