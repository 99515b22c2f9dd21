import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'bun:test';
import { selfSigned } from './certificates.ts';
import { freePort } from './free-port.ts';
import { childrenOf } from './processes.ts';
import { until } from './until.ts';
import { watchOver } from './watchdog.ts';

/** ProFTPD of Debian's packages proftpd-core and proftpd-mod-crypto on a free loopback port. */
export interface Ftpd {
  host: string;
  port: number;
  /** The only user. */
  username: string;
  password: string;
  /** Absolute path of the user's home, where a login starts. */
  home: string;
  /** Certificate in PEM, which is its own authority; empty without TLS. */
  certificate: string;
  /** What the server has logged of commands and replies. */
  log(): string;
  /** Number of open logins. */
  logins(): number;
  /** Stops the processes of all logins, which then neither send nor answer. */
  freeze(): void;
  /** Ends the server and every login at once. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
}

interface FtpdOptions {
  /** Default: none. */
  tls?: 'explicit' | 'implicit';
  /** Further lines of proftpd.conf. */
  settings?: string[];
}

const program = Bun.which('proftpd', { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` });

/** Why the tests cannot run, or null. */
export const ftpdMissing = program ? null : 'the Debian packages proftpd-core and proftpd-mod-crypto are not installed';
if (ftpdMissing) {
  if (process.env.CI === 'true') throw new Error(`Tests need proftpd, but ${ftpdMissing}`);
  console.warn(`Tests with FTP are SKIPPED: ${ftpdMissing}`);
}

const PASSWORD = 'p4ss word';

/** Call it at the top level of a file. Without proftpd the result is empty, and the tests are skipped. */
export async function startFtpd(options: FtpdOptions = {}): Promise<Ftpd> {
  if (!program) return {} as Ftpd;
  const { server, close } = await openFtpd(options);
  afterAll(close);
  return server;
}

/** The same for a place that closes itself. It needs proftpd. */
export async function openFtpd(options: FtpdOptions = {}): Promise<{ server: Ftpd; close(): Promise<void> }> {
  const folder = mkdtempSync('/tmp/data-pipelines-ftpd-');
  // A user without the rights of root, whom the server has to be able to refuse a file.
  const isRoot = process.getuid?.() === 0;
  const [user, group] = isRoot ? ['nobody', 'nogroup'] : [idOf('-un'), idOf('-gn')];
  const [home, port] = [join(folder, 'home'), await freePort()];
  chmodSync(folder, 0o755);
  mkdirSync(home);
  const hash = Bun.spawnSync(['openssl', 'passwd', '-5', PASSWORD]).stdout.toString().trim();
  const ids = [idOf('-u', user), idOf('-g', user)].join(':');
  writeFileSync(join(folder, 'users'), `loader:${hash}:${ids}:loader:${home}:/bin/sh\n`, { mode: 0o600 });
  const { key, cert } = options.tls ? selfSigned('IP:127.0.0.1') : { key: '', cert: '' };
  writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 });
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'commands.log'), '');
  const config = join(folder, 'proftpd.conf');
  writeFileSync(config, configOf({ folder, port, user, group }, options));
  let child: Bun.Subprocess | null = null;
  const server: Ftpd = {
    host: '127.0.0.1',
    port,
    username: 'loader',
    password: PASSWORD,
    home,
    certificate: cert,
    log: () => readFileSync(join(folder, 'commands.log'), 'utf8'),
    logins: () => (child ? childrenOf(child.pid, 'proftpd').length : 0),
    freeze: () => {
      for (const pid of child ? childrenOf(child.pid, 'proftpd') : []) send(pid, 'SIGSTOP');
    },
    kill: async () => {
      if (!child) return;
      for (const pid of [child.pid, ...childrenOf(child.pid, 'proftpd')]) send(pid, 'SIGKILL');
      await child.exited;
      child = null;
    },
    restart: async () => {
      await server.kill();
      child = Bun.spawn([program ?? 'proftpd', '--nodaemon', '--quiet', '--config', config], {
        stdio: ['ignore', 'ignore', process.env.TEST_FTPD_LOG ? 'inherit' : 'ignore'],
      });
      watchOver(child, folder);
      await until(() => answers(port));
      await until(() => server.logins() === 0);
    },
  };
  await server.restart();
  const close = async () => {
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  return { server, close };
}

interface Running {
  folder: string;
  port: number;
  user: string;
  group: string;
}

const configOf = ({ folder, port, user, group }: Running, { tls, settings = [] }: FtpdOptions) =>
  [
    ...(tls ? ['LoadModule mod_tls.c'] : []),
    'ServerName test',
    'ServerType standalone',
    'DefaultServer on',
    'DefaultAddress 127.0.0.1',
    `Port ${port}`,
    'SocketBindTight on',
    'UseIPv6 off',
    'UseReverseDNS off',
    `User ${user}`,
    `Group ${group}`,
    'AuthOrder mod_auth_file.c',
    `AuthUserFile ${folder}/users`,
    'RequireValidShell off',
    `PidFile ${folder}/pid`,
    `ScoreboardFile ${folder}/scoreboard`,
    `SystemLog ${folder}/system.log`,
    'LogFormat commands "%r -> %s %S"',
    `ExtendedLog ${folder}/commands.log ALL commands`,
    'WtmpLog off',
    'TransferLog none',
    '<IfModule mod_delay.c>',
    'DelayEngine off',
    '</IfModule>',
    '<IfModule mod_auth_pam.c>',
    'AuthPAM off',
    '</IfModule>',
    ...(tls
      ? [
          'TLSEngine on',
          `TLSLog ${folder}/tls.log`,
          'TLSProtocol TLSv1.2 TLSv1.3',
          `TLSECCertificateFile ${folder}/cert.pem`,
          `TLSECCertificateKeyFile ${folder}/key.pem`,
          'TLSRequired on',
          ...(tls === 'implicit' ? ['TLSOptions UseImplicitSSL'] : []),
        ]
      : []),
    ...settings,
    '',
  ].join('\n');

const idOf = (...flags: string[]) =>
  Bun.spawnSync(['id', ...flags])
    .stdout.toString()
    .trim();

function send(pid: number, signal: 'SIGSTOP' | 'SIGKILL'): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already exited.
  }
}

const answers = (port: number) =>
  Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).then(
    (socket) => {
      socket.end();
      return true;
    },
    () => false,
  );
