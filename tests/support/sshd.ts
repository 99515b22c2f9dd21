import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'bun:test';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { freePort } from './free-port.ts';
import { until } from './until.ts';
import { watchOver } from './watchdog.ts';

/** An sshd of Debian's package openssh-server on a free loopback port. It ends after the tests of the file. */
export interface Sshd {
  host: string;
  port: number;
  /** The only user that may log in. */
  username: string;
  /** `SHA256:…` of its host key. */
  fingerprint: string;
  /** Authorizes the key from now on. */
  authorize(public_key: string): void;
  /** Number of open logins. */
  logins(): number;
  /** Ends the server and every login at once. */
  kill(): Promise<void>;
  /** Starts it again on the same port. `key`: `new` creates another host key. */
  restart(key: 'same' | 'new'): Promise<void>;
}

const program = Bun.which('sshd', { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` });

/** Why the tests cannot run, or null. */
export const sshdMissing = program ? null : 'the Debian package openssh-server is not installed';
if (sshdMissing) {
  if (process.env.CI === 'true') throw new Error(`Tests need sshd, but ${sshdMissing}`);
  console.warn(`Tests with SSH tunnels are SKIPPED: ${sshdMissing}`);
}

/**
 * Call it at the top level of a file. `settings`: further lines of sshd_config, such as `AllowTcpForwarding no`.
 * Without sshd the result is empty, and the tests are skipped.
 */
export async function startSshd(settings: string[] = []): Promise<Sshd> {
  if (!program) return {} as Sshd;
  const { server, close } = await openSshd(settings);
  afterAll(close);
  return server;
}

/** The same for a place that closes itself. It needs sshd. */
export async function openSshd(settings: string[] = []): Promise<{ server: Sshd; close(): Promise<void> }> {
  const home = mkdtempSync('/tmp/data-pipelines-sshd-');
  // A folder that sshd needs as root, and that the package's service would create.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const port = await freePort();
  writeFileSync(join(home, 'authorized_keys'), '');
  const paths = { hostKey: join(home, 'host_key'), config: join(home, 'sshd_config') };
  writeFileSync(paths.config, configOf({ home, port, settings }));
  let child: Bun.Subprocess | null = null;
  const server: Sshd = {
    host: '127.0.0.1',
    port,
    // Not from the environment, where it may be missing.
    username: Bun.spawnSync(['id', '-un']).stdout.toString().trim(),
    fingerprint: makeHostKey(paths.hostKey),
    authorize: (key) => writeFileSync(join(home, 'authorized_keys'), `${key}\n`, { flag: 'a' }),
    logins: () => (child ? descendants(child.pid).length : 0),
    kill: async () => {
      if (!child) return;
      for (const pid of [child.pid, ...descendants(child.pid)]) end(pid);
      await child.exited;
      child = null;
    },
    restart: async (key) => {
      await server.kill();
      if (key === 'new') server.fingerprint = makeHostKey(paths.hostKey);
      child = Bun.spawn([program ?? 'sshd', '-D', '-e', '-f', paths.config], {
        stdio: ['ignore', 'ignore', process.env.TEST_SSHD_LOG ? 'inherit' : 'ignore'],
      });
      watchOver(child, home);
      await until(() => listens(port));
    },
  };
  await server.restart('same');
  const close = async () => {
    await server.kill();
    rmSync(home, { recursive: true, force: true });
  };
  return { server, close };
}

const configOf = ({ home, port, settings }: { home: string; port: number; settings: string[] }) =>
  [
    ...settings,
    'ListenAddress 127.0.0.1',
    `Port ${port}`,
    `HostKey ${home}/host_key`,
    `AuthorizedKeysFile ${home}/authorized_keys`,
    `PidFile ${home}/pid`,
    'UsePAM no',
    'StrictModes no',
    'PasswordAuthentication no',
    'PermitRootLogin prohibit-password',
    'LogLevel DEBUG1',
    '',
  ].join('\n');

/** @returns its fingerprint */
function makeHostKey(path: string): string {
  rmSync(path, { force: true });
  const { private_key, fingerprint } = generateSshKey('host');
  writeFileSync(path, private_key, { mode: 0o600 });
  return fingerprint;
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}

function descendants(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

function parentOf(pid: string): number | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^PPid:\s*(\d+)/m.exec(status)?.[1]);
  } catch {
    return null;
  }
}

const listens = (port: number) =>
  Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).then(
    (socket) => {
      socket.end();
      return true;
    },
    () => false,
  );
