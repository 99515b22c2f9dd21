import { createHmac } from 'node:crypto';
import { rmSync } from 'node:fs';
import postgres from 'postgres';
import { EmbeddedPostgresError } from './embedded-binaries.ts';
import { type Cluster, prepareCluster } from './embedded-cluster.ts';
import { removeOrphans } from './embedded-orphans.ts';
import { type ClusterLog, SILENT, watchCluster } from './embedded-watch.ts';
import type { ServiceRole } from './service-role.ts';
import { lastPort, startServer, stopServer } from './embedded-server.ts';

export { EmbeddedPostgresError };

/** Access to a database with a role of its own. */
export interface DatabaseAccess {
  host: string;
  port: number;
  database: string;
  username: string;
  password: string;
}

export interface EmbeddedPostgres {
  port: number;
  /** The port of the previous start; differs from `port` if that one was taken. Null at the first start. */
  previousPort: number | null;
  /** The role with which the service uses the control database: see service-role.ts. */
  service: ServiceRole & { url: string };
  /** URL of a database for the superuser. The control database is `pipelines`. */
  url(database: string): string;
  /** An empty database for the demo. Its role has no access to the control database. */
  warehouse: DatabaseAccess;
  /** Stops the server unless another process of this service still uses it. An ephemeral cluster is deleted, too. */
  stop(): Promise<void>;
}

const CONTROL_DATABASE = 'pipelines';
const WAREHOUSE = 'warehouse';
const SERVICE = 'pipelines_service';
/** Every process that uses the server keeps a connection with this name open. The last process stops the server. */
const HOLDER = 'data-pipelines holder';
const LOCK = 7_300_001;

/**
 * Starts the embedded PostgreSQL of `dataDir`, or uses the one already running there, with the databases `pipelines` and
 * `warehouse`. It listens on 127.0.0.1 only, requires a password, and uses a port that the kernel assigns.
 * `ephemeral`: for tests; does not survive a power failure, and is deleted with the process. Any other server is started
 * again if it dies.
 * @throws EmbeddedPostgresError
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string;
  ephemeral?: boolean;
  /** Folder for the files of the cluster that is not derived from `dataDir`, such as one in memory. */
  clusters?: string;
  log?: ClusterLog;
}): Promise<EmbeddedPostgres> {
  const ephemeral = options.ephemeral ?? false;
  const cluster = await prepareCluster(options.dataDir, { ephemeral, clusters: options.clusters }).catch(
    explainFolders,
  );
  removeOrphans(cluster, options.dataDir);
  const previousPort = lastPort(cluster);
  const { port, pid } = await startServer(cluster, { ephemeral });
  const watchdog = ephemeral ? spawnWatchdog(cluster, pid) : null;
  const url = (database: string) => `postgres://postgres:${cluster.password}@127.0.0.1:${port}/${database}`;
  const holder = openHolder(url('postgres'));
  const warehouse = warehouseOf(cluster, port);
  try {
    await ensureDatabases(holder, warehouse.password);
  } catch (error) {
    const reason = (error as Error).message;
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL (process ${pid}) does not accept connections: ${reason}. See ${cluster.log}`,
    );
  }
  const watch = ephemeral ? null : watchCluster(cluster, { port, holder, log: options.log ?? SILENT });
  return {
    port,
    previousPort,
    url,
    warehouse,
    service: serviceOf(cluster, port),
    stop: async () => {
      await watch?.stop();
      if (await isLastHolder(holder)) await stopServer(cluster);
      else await letGo(holder);
      await holder.end({ timeout: 0 });
      if (!ephemeral) return;
      watchdog?.kill();
      rmSync(cluster.home, { recursive: true, force: true });
    },
  };
}

const openHolder = (url: string): postgres.Sql =>
  postgres(url, {
    max: 1,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: 10,
    onnotice: () => {},
    connection: { application_name: HOLDER },
  });

const warehouseOf = (cluster: Cluster, port: number): DatabaseAccess => ({
  host: '127.0.0.1',
  port,
  database: WAREHOUSE,
  username: WAREHOUSE,
  password: passwordOf(cluster, WAREHOUSE),
});

const serviceOf = (cluster: Cluster, port: number): EmbeddedPostgres['service'] => {
  const password = passwordOf(cluster, SERVICE);
  return {
    name: SERVICE,
    password,
    url: `postgres://${SERVICE}:${password}@127.0.0.1:${port}/${CONTROL_DATABASE}`,
  };
};

const passwordOf = (cluster: Cluster, role: string) =>
  createHmac('sha256', cluster.password).update(role).digest('hex');

function explainFolders(error: NodeJS.ErrnoException): never {
  if (!error.syscall) throw error;
  throw new EmbeddedPostgresError(`The embedded PostgreSQL cannot access its folders: ${error.message}`);
}

async function ensureDatabases(holder: postgres.Sql, warehousePassword: string): Promise<void> {
  await holder`select pg_advisory_lock(${LOCK})`;
  const present = (await holder`select datname from pg_database`).map((row) => row.datname as string);
  if (!present.includes(CONTROL_DATABASE)) {
    await holder.unsafe(`create database ${CONTROL_DATABASE}`);
    await holder.unsafe(`revoke all on database ${CONTROL_DATABASE}, postgres from public`);
  }
  if (!present.includes(WAREHOUSE)) {
    const [role] = await holder`select 1 from pg_roles where rolname = ${WAREHOUSE}`;
    if (!role) await holder.unsafe(`create role ${WAREHOUSE} login password '${warehousePassword}'`);
    await holder.unsafe(`create database ${WAREHOUSE} owner ${WAREHOUSE}`);
  }
  await holder`select pg_advisory_unlock(${LOCK})`;
}

/** The lock serializes processes that end at the same time. It is released with the connection. */
async function isLastHolder(holder: postgres.Sql): Promise<boolean> {
  try {
    await holder`select pg_advisory_lock(${LOCK})`;
    // The session of a process that was just killed is listed until its backend notices.
    for (let look = 0; look < 10; look += 1) {
      const others = await holder`
        select 1 from pg_stat_activity where application_name = ${HOLDER} and pid <> pg_backend_pid()`;
      if (others.length === 0) return true;
      await Bun.sleep(50);
    }
    return false;
  } catch {
    // The server is not reachable any more, so nothing uses it.
    return true;
  }
}

/** A busy server lists a session for a while after its end, and the process that ends next would take it for a user. */
const letGo = (holder: postgres.Sql): Promise<unknown> => holder`set application_name = ''`.catch(() => {});

/** Removes the server and its files when this process ends, however it ends: then standard input closes. */
function spawnWatchdog(cluster: Cluster, pid: number): Bun.Subprocess {
  const script = 'cat > /dev/null; kill -QUIT "$0" && while kill -0 "$0"; do sleep 0.1; done; rm -rf "$1"';
  const child = Bun.spawn(['/bin/sh', '-c', script, String(pid), cluster.home], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  child.unref();
  return child;
}
