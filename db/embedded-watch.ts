import type { Logger } from 'pino';
import type postgres from 'postgres';
import { type Periodic, periodic } from '../server/platform/periodic.ts';
import type { Cluster } from './embedded-cluster.ts';
import { isRunning, startServer } from './embedded-server.ts';

export type ClusterLog = Pick<Logger, 'warn' | 'error'>;
export const SILENT: ClusterLog = { warn: () => {}, error: () => {} };

const LOOK_EVERY_MS = 1_000;
const LOOK_AT_SLOTS_EVERY_MS = 60_000;
/** A slot with less room than this is about to be invalidated. */
const LITTLE_ROOM_BYTES = 4 * 1024 ** 3;

interface Watched {
  /** The port of the server, which every process has in its URL. */
  port: number;
  /** The connection that counts this process as a user of the server. */
  holder: postgres.Sql;
  log: ClusterLog;
}

/** Starts the server again when it has died, and warns of replication slots that hold back much WAL. */
export function watchCluster(cluster: Cluster, watched: Watched): { stop(): Promise<void> } {
  const { log } = watched;
  const loops: Periodic[] = [
    periodic(() => startAgain(cluster, watched), {
      every_ms: LOOK_EVERY_MS,
      onError: (error) => log.error({ err: error }, 'The embedded PostgreSQL could not be started again'),
    }),
    periodic(() => warnOfSlots(watched), {
      every_ms: LOOK_AT_SLOTS_EVERY_MS,
      onError: (error) => log.warn({ err: error }, 'The replication slots could not be read'),
    }),
  ];
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

async function startAgain(cluster: Cluster, { port, holder, log }: Watched): Promise<void> {
  if (isRunning(cluster)) return;
  log.error({ port }, 'The embedded PostgreSQL ended and is started again');
  await startServer(cluster, { ephemeral: false, port });
  await holder`select 1`;
}

async function warnOfSlots({ holder, log }: Watched): Promise<void> {
  const slots = await holder`
    select slot_name, wal_status, safe_wal_size from pg_replication_slots
    where wal_status in ('unreserved', 'lost') or safe_wal_size < ${LITTLE_ROOM_BYTES}`;
  for (const { slot_name, wal_status, safe_wal_size } of slots) {
    const lost = wal_status === 'lost';
    log.warn(
      { slot_name, wal_status, bytes_left: Number(safe_wal_size ?? 0) },
      lost
        ? 'A replication slot of the embedded PostgreSQL is invalid: it had kept too much WAL'
        : 'A replication slot of the embedded PostgreSQL keeps much WAL and will be invalidated. Run its connection, or delete it',
    );
  }
}
