import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import mysql from 'mysql2/promise';
import { selfSigned } from './certificates.ts';
import { freePort } from './free-port.ts';
import { isAlive } from './processes.ts';
import { until } from './until.ts';
import { watchOver } from './watchdog.ts';

/**
 * A MariaDB of Debian's package mariadb-server, with a separate data folder, on a free loopback port. All tests of a
 * process share one, which ends with it.
 */
export interface MariaDb {
  host: string;
  port: number;
  username: string;
  password: string;
  /** PEM of the authority that signed the server's certificate, which is for `localhost`. */
  ca: string;
  /** Runs statements as the administrator. */
  sql(statements: string, database?: string): Promise<Record<string, unknown>[]>;
  /** A separate connection, whose transactions stay open. */
  session(database: string): Promise<{ run(statement: string): Promise<unknown>; close(): Promise<void> }>;
  /** Creates an empty database and returns its name. */
  database(): Promise<string>;
}

const PATH = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`;
const server = Bun.which('mariadbd', { PATH });

/** Why the tests cannot run, or null. */
export const mariaDbMissing = server ? null : 'the Debian package mariadb-server is not installed';
if (mariaDbMissing) {
  if (process.env.CI === 'true') throw new Error(`Tests need MariaDB, but ${mariaDbMissing}`);
  console.warn(`Tests with MariaDB are SKIPPED: ${mariaDbMissing}`);
}

/** Followed by the ID of the process that created it. */
const FOLDERS = join(tmpdir(), 'data-pipelines-mariadb-');

let started: Promise<MariaDb> | null = null;
export const testMariaDb = (): Promise<MariaDb> => (started ??= startMariaDb());

/** No data outlives the tests, so the server does not wait for the disk and creates small log files. */
const EPHEMERAL = [
  '--innodb-flush-method=nosync',
  '--innodb-flush-log-at-trx-commit=0',
  '--innodb-log-file-size=16M',
  '--innodb-buffer-pool-size=64M',
  '--skip-innodb-doublewrite',
];

let logging: Promise<OwnMariaDb> | null = null;
/** As `testMariaDb`, with a binary log that change data capture can read. It has a server of its own. */
export const testBinlogServer = () =>
  (logging ??= startMariaDb([
    ...EPHEMERAL,
    '--log-bin=binlog',
    '--server-id=1',
    '--sync-binlog=0',
    '--binlog-format=ROW',
    '--binlog-row-metadata=FULL',
  ]));

export interface OwnMariaDb extends MariaDb {
  readonly pid: number;
  /** Ends it at once (SIGKILL) and starts it again, at the same port. What was committed is there. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** `settings`: further options of the server, such as `--innodb-buffer-pool-size=1G`. */
export async function startMariaDb(settings: string[] = []): Promise<OwnMariaDb> {
  const user = process.getuid?.() === 0 ? systemUser() : null;
  removeOrphans();
  const home = mkdtempSync(`${FOLDERS}${process.pid}-`);
  if (user) chownSync(home, user.uid, user.gid);
  const access = { host: '127.0.0.1', username: 'tester', password: `p4ss'w\\ord-${crypto.randomUUID()}` };
  const [port, ca] = [await freePort(), makeCertificate(home, user)];
  const connect = (database?: string) =>
    mysql.createConnection({
      host: access.host,
      user: access.username,
      password: access.password,
      port,
      database,
      multipleStatements: true,
    });
  const place = { home, user, port, access, settings };
  const start = async () => {
    const child = spawnServer(place);
    watchOver(child, home);
    const ready = async () => {
      if (child.exitCode !== null) throw new Error(`MariaDB ended: ${readFileSync(`${home}/log`, 'utf8')}`);
      return connect().then(
        (one) => one.end().then(() => true),
        () => false,
      );
    };
    await until(ready, { timeout_ms: 30_000, what: 'MariaDB answers' });
    return child;
  };
  install(place);
  let child = await start();
  const kill = () => {
    child.kill('SIGKILL');
    return child.exited;
  };
  const sql: MariaDb['sql'] = async (statements, database) => {
    const connection = await connect(database);
    try {
      const [rows] = await connection.query(statements);
      return rows as Record<string, unknown>[];
    } finally {
      connection.destroy();
    }
  };
  const database = async () => {
    const name = `t_${crypto.randomUUID().slice(0, 8)}`;
    await sql(`create database ${name}`);
    return name;
  };
  const session: MariaDb['session'] = async (name) => {
    const connection = await connect(name);
    return { run: (statement) => connection.query(statement), close: () => connection.end() };
  };
  const restart = async () => {
    await kill();
    child = await start();
  };
  const stop = async () => {
    await kill();
    rmSync(home, { recursive: true, force: true });
  };
  return {
    ...access,
    port,
    get pid() {
      return child.pid;
    },
    ca,
    sql,
    session,
    database,
    restart,
    stop,
  };
}

interface ServerPlace {
  home: string;
  user: { uid: number; gid: number } | null;
  port: number;
  access: { username: string; password: string };
  settings: string[];
}

/** What `mariadb-install-db` and the server have in common. */
const optionsOf = ({ home, settings }: ServerPlace) => [
  '--no-defaults',
  ...(settings.length > 0 ? settings : EPHEMERAL),
  `--datadir=${home}/data`,
  // Its own: a server that starts deletes the temporary files of all that share the folder.
  `--tmpdir=${home}/tmp`,
];

const processOf = ({ home, user }: ServerPlace) => ({ cwd: home, env: { ...process.env, PATH }, ...user });

function install(place: ServerPlace): void {
  const { home, user, access } = place;
  for (const folder of [join(home, 'data'), join(home, 'tmp')]) {
    mkdirSync(folder);
    if (user) chownSync(folder, user.uid, user.gid);
  }
  const quoted = access.password.replaceAll('\\', '\\\\').replaceAll("'", "''");
  const name = `'${access.username}'@'%'`;
  const statements = [
    `CREATE USER IF NOT EXISTS ${name} IDENTIFIED BY '${quoted}';`,
    `GRANT ALL ON *.* TO ${name} WITH GRANT OPTION;`,
  ];
  writeFileSync(join(home, 'access.sql'), statements.join('\n'));
  const options = [...optionsOf(place), '--auth-root-authentication-method=normal', '--skip-test-db'];
  const made = Bun.spawnSync(['mariadb-install-db', ...options], {
    ...processOf(place),
    stdout: 'ignore',
    stderr: 'pipe',
  });
  if (!made.success) throw new Error(`mariadb-install-db failed: ${made.stderr.toString()}`);
}

function spawnServer(place: ServerPlace): Bun.Subprocess {
  if (!server) throw new Error(mariaDbMissing ?? '');
  const { home, port } = place;
  const child = Bun.spawn(
    [
      server,
      ...optionsOf(place),
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${home}/socket`,
      `--pid-file=${home}/pid`,
      `--log-error=${home}/log`,
      `--init-file=${home}/access.sql`,
      `--ssl-key=${home}/key.pem`,
      `--ssl-cert=${home}/cert.pem`,
      '--skip-name-resolve',
      '--character-set-server=utf8mb4',
    ],
    { ...processOf(place), stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' },
  );
  child.unref();
  return child;
}

/** @returns the certificate, in PEM. */
function makeCertificate(home: string, user: ServerPlace['user']): string {
  const { key, cert } = selfSigned('DNS:localhost');
  for (const [name, pem] of Object.entries({ key, cert })) {
    const path = join(home, `${name}.pem`);
    writeFileSync(path, pem, { mode: 0o600 });
    if (user) chownSync(path, user.uid, user.gid);
  }
  return cert;
}

/** MariaDB does not run as root. */
function systemUser(): { uid: number; gid: number } {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  const line = ['mysql', 'nobody'].map((name) => lines.find((one) => one.startsWith(`${name}:`))).find(Boolean);
  const [, , uid, gid] = line?.split(':') ?? [];
  if (!uid || !gid) throw new Error('there is no user mysql and no nobody');
  return { uid: Number(uid), gid: Number(gid) };
}

/** Folders of processes that were killed together with their watchdog. */
function removeOrphans(): void {
  const prefix = basename(FOLDERS);
  for (const name of readdirSync(tmpdir()).filter((one) => one.startsWith(prefix))) {
    const pid = Number.parseInt(name.slice(prefix.length), 10);
    if (!isAlive(pid)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}
