import { eq, inArray } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  catalogStreams,
  type ConnectionRow,
  connectionRuns,
  connections,
  connectionStreams,
  networkLogSegments,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Database } from '../../db/index.ts';
import type { Db } from '../../db/types.ts';
import type { StreamSchema } from '../../server/connectors/contract/connector.ts';
import { secretNames } from '../../server/connectors/contract/parameters.ts';
import { findConnector } from '../../server/connectors/registry.ts';
import { secretsContext } from '../../server/connector-runtime/connector-secrets.ts';
import { refreshCatalog } from '../../server/catalog/discover.ts';
import { EVENTS_CHANNEL, SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { readAccountPlan } from '../../server/billing/account-plan.ts';
import { startRun } from '../../server/runs/start.ts';
import { requestStop } from '../../server/runs/stop.ts';
import { LIVE_RUN } from '../../server/pipeline/run-states.ts';
import type { TestDeps } from './database.ts';

type Side = { name: string; parameters: Record<string, unknown> };
type StreamChoice = Partial<typeof connectionStreams.$inferInsert>;

/** A connection for engine tests, inserted into the database directly: source, destination, catalog, streams. */
export interface Pipeline {
  connection: ConnectionRow;
  source: AccountConnectorRow;
  destination: AccountConnectorRow;
  /** `afterwards` happens in the transaction of the start, before a worker sees the run. */
  start(afterwards?: (tx: Db) => Promise<unknown>): Promise<string>;
  stop(run_id: string): Promise<string | null>;
}

export async function makePipeline(
  test: TestDeps,
  input: {
    source: Side;
    destination: Side;
    stream?: StreamChoice;
    connection?: Partial<typeof connections.$inferInsert>;
    only?: string[];
  },
): Promise<Pipeline> {
  const { deps, account_id } = test;
  const source = await insertConnector(test, 'source', input.source);
  const destination = await insertConnector(test, 'destination', input.destination);
  await refreshCatalog(deps, source, { actor: SYSTEM_ACTOR });
  const [connection] = await deps.db
    .insert(connections)
    .values({
      account_id,
      name: `pipeline ${Bun.randomUUIDv7()}`,
      source_id: source.id,
      destination_id: destination.id,
      schedule: { type: 'manual', interval_minutes: null, cron_expression: null, timezone: 'UTC', time_of_day: null },
      ...input.connection,
    })
    .returning();
  if (!connection) throw new Error('no connection was made');
  const catalog = await deps.db.select().from(catalogStreams).where(eq(catalogStreams.account_connector_id, source.id));
  const chosen = catalog.filter((stream) => input.only?.includes(stream.name) ?? true);
  for (const stream of chosen) {
    const definition = stream.definition as unknown as StreamSchema;
    await deps.db.insert(connectionStreams).values({
      account_id,
      connection_id: connection.id,
      namespace: stream.namespace,
      name: stream.name,
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      cursor_field: definition.default_cursor_field,
      ...input.stream,
    });
  }
  return {
    connection,
    source,
    destination,
    start: (afterwards) =>
      deps.db.transaction(async (tx) => {
        const account = await readAccountPlan(tx, account_id, { now: deps.now() });
        const run_id = await startRun(tx, deps, { connection, account, trigger_type: 'api', actor: SYSTEM_ACTOR });
        await afterwards?.(tx);
        return run_id;
      }),
    stop: (run_id) =>
      deps.db.transaction((tx) =>
        requestStop(tx, deps.queue, { connection_run_id: run_id, actor: SYSTEM_ACTOR, reason: 'test' }),
      ),
  };
}

async function insertConnector({ deps, account_id }: TestDeps, connector_type: 'source' | 'destination', side: Side) {
  const connector = findConnector(connector_type, side.name);
  if (!connector) throw new Error(`no ${connector_type} ${side.name}`);
  const secret = new Set(secretNames(connector.config));
  const split = (keep: boolean) =>
    Object.fromEntries(Object.entries(side.parameters).filter(([name]) => secret.has(name) === keep));
  const id = Bun.randomUUIDv7();
  const [row] = await deps.db
    .insert(accountConnectors)
    .values({
      id,
      account_id,
      name: `${side.name} ${id}`,
      connector_type,
      connector_name: side.name,
      status: 'active',
      parameters: split(false),
      secrets: deps.secrets.seal(JSON.stringify(split(true)), secretsContext({ account_id, id })),
    })
    .returning();
  if (!row) throw new Error('no account connector was made');
  return row;
}

export async function getRun({ deps }: TestDeps, run_id: string) {
  const [run] = await deps.db.select().from(connectionRuns).where(eq(connectionRuns.id, run_id));
  if (!run) throw new Error(`no run ${run_id}`);
  return run;
}

export const getStreamRuns = ({ deps }: TestDeps, run_id: string) =>
  deps.db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, run_id)).orderBy(streamRuns.stream_name);

/** Also where the end of a run was not announced. */
const LOOK_MS = 500;

/** Waits for the end of a run and returns the run. It looks when an event is announced: a run takes many short looks. */
export async function runEnded(test: TestDeps, run_id: string, timeout_ms = 60_000) {
  const announced = await announcements(test);
  const deadline = performance.now() + timeout_ms;
  for (;;) {
    const next = announced();
    const run = await getRun(test, run_id);
    if (!LIVE_RUN.includes(run.status)) return run;
    if (performance.now() > deadline) throw new Error(`not reached in time: the end of the run ${run_id}`);
    await Promise.race([next, Bun.sleep(LOOK_MS)]);
  }
}

const heard = new WeakMap<object, Promise<() => Promise<void>>>();

/** Gives promises of the next event that the service announces. */
function announcements({ deps: { database } }: TestDeps): Promise<() => Promise<void>> {
  const listening = heard.get(database) ?? listenForEvents(database);
  heard.set(database, listening);
  return listening;
}

async function listenForEvents(database: Database): Promise<() => Promise<void>> {
  let next = Promise.withResolvers<void>();
  await database.listen(EVENTS_CHANNEL, () => {
    next.resolve();
    next = Promise.withResolvers();
  });
  return () => next.promise;
}

/** The network log entries of a run, decoded. */
export async function networkLog({ deps }: TestDeps, run_id: string): Promise<Record<string, any>[]> {
  const segments = await deps.db
    .select()
    .from(networkLogSegments)
    .where(inArray(networkLogSegments.connection_run_id, [run_id]))
    .orderBy(networkLogSegments.id);
  const texts = segments.map(async ({ object_key }) => {
    const stored = await deps.objects.get(object_key);
    if (!stored) throw new Error(`no object ${object_key}`);
    return new Response(stored.pipeThrough(new DecompressionStream('gzip'))).text();
  });
  const lines = (await Promise.all(texts)).join('').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

type EndedStatus = 'succeeded' | 'failed' | 'stopped';

/** Ends a run and its streams by SQL, as if a worker had done it. */
export async function endRun(
  db: Db,
  run_id: string,
  status: EndedStatus = 'succeeded',
  columns: {
    run?: Partial<typeof connectionRuns.$inferInsert>;
    streams?: Partial<typeof streamRuns.$inferInsert>;
  } = {},
): Promise<void> {
  const ended = { status, finished_at: new Date().toISOString() };
  await db.transaction(async (tx) => {
    await tx
      .update(streamRuns)
      .set({ ...ended, ...columns.streams })
      .where(eq(streamRuns.connection_run_id, run_id));
    await tx
      .update(connectionRuns)
      .set({ ...ended, ...columns.run })
      .where(eq(connectionRuns.id, run_id));
  });
}

/** Stops every live run by SQL. */
export async function stopAllRuns(db: Db): Promise<void> {
  const live = await db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .where(inArray(connectionRuns.status, LIVE_RUN));
  for (const { id } of live) await endRun(db, id, 'stopped');
}
