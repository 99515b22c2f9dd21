import { createHash, randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Binaries, EmbeddedPostgresError, installBinaries, moveUnlessThere } from './embedded-binaries.ts';
import { readOrMakeKeyFile } from '../server/platform/key-file.ts';

/** PostgreSQL refuses to run as root. The server then runs as `nobody`, which may have no access to DATA_DIR. */
const ROOT_BASE = '/var/lib/data-pipelines';

/** The user that the server runs as; null for the user of this process. */
export type Owner = { uid: number; gid: number } | null;

/** An initialized cluster, running or not. */
export interface Cluster {
  /** Folder of all the files below. Kept as long as the databases. */
  home: string;
  /** PostgreSQL's own data directory. */
  data: string;
  log: string;
  /** Stores the port of the last start, which the next start tries first. */
  portFile: string;
  password: string;
  owner: Owner;
  binaries: Binaries;
}

/**
 * Finds or creates the cluster of `dataDir`. Safe when several processes do so at once.
 * @throws EmbeddedPostgresError
 */
export async function prepareCluster(
  dataDir: string,
  options: { ephemeral: boolean; clusters?: string },
): Promise<Cluster> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const owner = process.getuid?.() === 0 ? nobody() : null;
  const base = owner ? ROOT_BASE : join(dataDir, 'postgres');
  const binaries = installBinaries(base);
  const clusters = options.clusters ?? join(base, 'clusters');
  const home = owner || options.clusters ? join(clusters, clusterName(dataDir)) : base;
  mkdirSync(home, { recursive: true, mode: 0o755 });
  const cluster: Cluster = {
    home,
    data: join(home, 'data'),
    log: join(home, 'server.log'),
    portFile: join(home, 'port'),
    password: readOrMakeKeyFile(join(home, 'password')),
    owner,
    binaries,
  };
  if (!existsSync(cluster.data)) await initialise(cluster, options);
  const major = readFileSync(join(cluster.data, 'PG_VERSION'), 'utf8').trim();
  if (major !== binaries.major) {
    throw new EmbeddedPostgresError(
      `The databases in ${cluster.data} were created by PostgreSQL ${major}, but the embedded version is ${binaries.major}`,
    );
  }
  return cluster;
}

/**
 * Derived from the path and a random name kept in DATA_DIR. So a DATA_DIR that was deleted and created again does not get
 * the old databases, encrypted with a lost SECRET_KEY, and a copied one does not share them.
 */
function clusterName(dataDir: string): string {
  const name = readOrMakeKeyFile(join(dataDir, 'postgres.cluster'));
  return createHash('sha256')
    .update(`${realpathSync(dataDir)}\0${name}`)
    .digest('hex')
    .slice(0, 24);
}

async function initialise(cluster: Cluster, { ephemeral }: { ephemeral: boolean }): Promise<void> {
  const draft = `${cluster.data}.draft-${randomBytes(6).toString('hex')}`;
  const passwordFile = `${draft}.password`;
  mkdirSync(draft, { mode: 0o700 });
  writeFileSync(passwordFile, cluster.password, { mode: 0o600, flag: 'wx' });
  if (cluster.owner) {
    chownSync(draft, cluster.owner.uid, cluster.owner.gid);
    chownSync(passwordFile, cluster.owner.uid, cluster.owner.gid);
  }
  try {
    const { initdb } = cluster.binaries;
    const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
    const access = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
    // Synced before its first use: after a power failure the folder would look initialized, with files missing.
    const sync = ephemeral ? ['--no-sync'] : [];
    const child = Bun.spawn([initdb, '-D', draft, ...sync, '--no-instructions', ...locale, ...access], {
      ...cluster.owner,
      cwd: cluster.home,
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    });
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new EmbeddedPostgresError(`initdb failed (${code}): ${(err || out).trim().slice(-2000)}`);
    moveUnlessThere(draft, cluster.data);
  } finally {
    rmSync(passwordFile, { force: true });
    rmSync(draft, { recursive: true, force: true });
  }
}

function nobody(): { uid: number; gid: number } {
  const ask = (flag: string) => Number(Bun.spawnSync(['id', flag, 'nobody']).stdout.toString().trim() || '65534');
  return { uid: ask('-u'), gid: ask('-g') };
}
