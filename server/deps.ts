import type { Logger } from 'pino';
import { type DatabaseClock, startClock } from '../db/clock.ts';
import { type Database, openDatabase } from '../db/index.ts';
import { recordOwnUse } from '../db/own-secret-uses.ts';
import { followRoots, openRoots } from '../db/pinned-key.ts';
import type { Db } from '../db/types.ts';
import type { Config } from './platform/config.ts';
import { openLog } from './platform/log.ts';
import type { Periodic } from './platform/periodic.ts';
import { KeptSessions } from './platform/net/kept-sessions.ts';
import { createMetrics, type MetricFamily, type Metrics } from './platform/metrics.ts';
import type { EgressRules } from './platform/net/egress-rules.ts';
import { hostOfStore, type ObjectStore, openObjectStore, preceded } from './platform/object-store.ts';
import { openSecrets, type Secrets } from './platform/secrets.ts';
import { openTracing } from './platform/tracing/open-tracing.ts';
import type { Tracing } from './platform/tracing/span.ts';
import { openQueue, type Queue } from './queue/boss.ts';

/** The dependencies of the process, created once at the start and passed down. */
export interface Deps {
  config: Config;
  database: Database;
  db: Db;
  log: Logger;
  /** The time of the control database. Machines of the service need not agree on theirs. */
  now(): Date;
  clock: DatabaseClock;
  secrets: Secrets;
  /** Follows rotations of the root key. */
  roots: Periodic;
  objects: ObjectStore;
  /** Which addresses may be called for users: public ones and those in EGRESS_ALLOW, but never the control database. */
  egress: EgressRules & { control: string };
  queue: Queue;
  /** Connections to databases of users that wait for the next run. */
  sessions: KeptSessions;
  metrics: Metrics;
  /** Identity of this process in its claims. */
  worker_id: string;
  discovery_waits: DiscoveryWaits;
  tracing: Tracing;
}

/** How long the creation of a connection waits for the streams of a source that has no catalog yet. */
export interface DiscoveryWaits {
  /** A source that answers by then gives the connection its streams at once. */
  all_ms: number;
  /** Streams that the request names, or runs, can only be checked against the catalog. */
  named_ms: number;
}

const DISCOVERY_WAITS: DiscoveryWaits = { all_ms: 1_000, named_ms: 5_000 };

/** Callers of the API expect an answer within five seconds. The work of a worker outlasts a short freeze. */
const UNRESPONSIVE_AFTER_MS = { api: 3_000, worker: 30_000 };
const API_STATEMENT_MS = 60_000;

/**
 * Opens everything on a migrated control database; `closeDeps` closes it. With the role `worker` the process has more
 * connections and recovers the jobs of dead workers.
 */
export async function createDeps(
  config: Config,
  url: string,
  role: 'api' | 'worker',
  worker_id: string = Bun.randomUUIDv7(),
): Promise<Deps> {
  const log = openLog(config.LOG_LEVEL, { role });
  const database = openDatabase(
    url,
    role === 'worker'
      ? { max: 2 * config.WORKER_CONCURRENCY + 4 }
      : { max: 10, statement_timeout_ms: API_STATEMENT_MS },
  );
  const secrets = openSecrets(await openRoots(database.db, config.SECRET_KEY));
  const clock = await startClock(database, { unresponsive_after_ms: UNRESPONSIVE_AFTER_MS[role], log });
  const tracing = await openTracing(config, role, (host) =>
    recordOwnUse(database.db, { setting: 'OTEL_EXPORTER_OTLP_HEADERS', host }, clock.now()),
  );
  const queue = await openQueue({ url, db: database.db, log, supervise: role === 'worker', tracing });
  const metrics = createMetrics();
  metrics.provide('process', () => processFamilies({ database, queue }));
  const roots = followRoots(database.db, { secret_key: config.SECRET_KEY, secrets, log });
  return {
    config,
    database,
    db: database.db,
    log,
    now: clock.now,
    clock,
    secrets,
    roots,
    objects: recordedStore(config, database.db, clock),
    egress: { allow: config.EGRESS_ALLOW, control: url },
    queue,
    sessions: new KeptSessions(),
    metrics,
    worker_id,
    discovery_waits: DISCOVERY_WAITS,
    tracing,
  };
}

/** The object store, with its uses of the secret in OBJECT_STORE_URL in the audit log. */
function recordedStore({ OBJECT_STORE_URL }: Config, db: Db, { now }: DatabaseClock): ObjectStore {
  const store = openObjectStore(OBJECT_STORE_URL);
  const host = hostOfStore(OBJECT_STORE_URL);
  if (host === null) return store;
  return preceded(store, () => recordOwnUse(db, { setting: 'OBJECT_STORE_URL', host }, now()));
}

/** What the pool and the queue of this process do at this moment. */
function processFamilies({ database, queue }: Pick<Deps, 'database' | 'queue'>): MetricFamily[] {
  const { idle, busy, waiting } = database.pool();
  const slots = queue.slots().flatMap((one) => [
    { labels: { queue: one.queue, state: 'busy' }, value: one.busy },
    { labels: { queue: one.queue, state: 'free' }, value: one.all - one.busy },
  ]);
  const gauge = { type: 'gauge' as const };
  const connections = Object.entries({ idle, busy }).map(([state, value]) => ({ labels: { state }, value }));
  return [
    {
      ...gauge,
      name: 'datapipelines_db_pool_connections',
      help: 'Connections to the control database.',
      values: connections,
    },
    {
      ...gauge,
      name: 'datapipelines_db_pool_waiting',
      help: 'Queries that wait for a connection.',
      values: [{ value: waiting }],
    },
    { ...gauge, name: 'datapipelines_worker_slots', help: 'Slots of this worker for jobs.', values: slots },
  ];
}

/** Closes the queue before the database, which its handlers still need. */
export async function closeDeps(deps: Deps): Promise<void> {
  await deps.queue.stop();
  await deps.tracing.stop();
  await deps.sessions.close();
  await deps.roots.stop();
  await deps.clock.stop();
  await deps.database.close();
}
