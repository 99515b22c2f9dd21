import { eq, sql } from 'drizzle-orm';
import type { PgInsertValue } from 'drizzle-orm/pg-core';
import {
  type ConnectionRow,
  connectionRuns,
  connections,
  type RunRow,
  type StreamRow,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { AccountPlan } from '../billing/account-plan.ts';
import { holdCredits, isMomentary, movementRefusal, reserveCredits } from '../billing/credits.ts';
import { connectionLocked, movementError } from '../billing/limits.ts';
import { requireReadyConnectors } from '../connector-runtime/require-ready.ts';
import type { Deps } from '../deps.ts';
import type { Actor } from '../events/emit.ts';
import { emitRunEvents } from '../events/run-events.ts';
import type { PlannedChunk, RunParameters } from '../pipeline/custom-run/plan.ts';
import { isWindowed } from '../pipeline/custom-run/plan.ts';
import type { PlanNotice, StreamPlan } from '../pipeline/custom-run/streams.ts';
import type { OpenSpan } from '../pipeline/custom-run/windows.ts';
import { tableName } from '../pipeline/transfer-plan.ts';
import { ApiError, badRequest } from '../platform/errors.ts';
import { executeStream } from '../queue/jobs.ts';
import { advancePlan } from './custom/advance.ts';
import { findConflict } from './custom/conflicts.ts';
import { selectedStreams } from './streams.ts';

/** A run that may not start, with the status and code that the API answers. */
export class StartRefused extends ApiError {
  constructor(
    error: ApiError,
    /** Whether the same start may succeed later without a change by a user. */
    readonly temporary: boolean,
  ) {
    super(error.status, error.code, error.message, error.context);
  }
}

interface Start {
  /** Locked by the caller, so that concurrent starts see one another and run numbers have no gaps. */
  connection: ConnectionRow;
  account: AccountPlan;
  actor: Actor;
  rerun_of_run_id?: string;
}

export interface RunStart extends Start {
  trigger_type: 'schedule' | 'manual' | 'api' | 'rerun' | 'automation';
  /** By default all selected streams of the connection. */
  streams?: StreamRow[];
  /** If a trigger action starts the run: one more than that of its event. */
  causation_depth?: number;
}

type StartDeps = Pick<Deps, 'queue' | 'now'>;

const EVERY_DAY: OpenSpan = { start: null, end: null };

/**
 * Starts a plain run in the caller's transaction: run, stream runs, event and jobs. Returns the id of the run.
 * @throws StartRefused 400 `account_connector_not_ready`, `no_streams_selected`, `run_already_active`; 402
 * `connection_locked`, `payment_required`, `credits_exhausted`, `account_limit_reached`; 403 `account_suspended`.
 */
export async function startRun(db: Db, deps: StartDeps, start: RunStart): Promise<string> {
  const { connection } = start;
  const streams = start.streams ?? (await selectedStreams(db, connection.id));
  const account = await requireMovable(db, deps, { ...start, streams });
  const reservation = await reserveCredits(db, account, connection);
  if (reservation.refusal) throw refusedByPlan(reservation.refusal);
  await refuseConflict(db, { connection_id: connection.id, streams, windows: [EVERY_DAY], plain: true });
  const [run] = await insertRuns(db, connection, [
    {
      status: 'queued',
      run_type: 'plain',
      trigger_type: start.trigger_type,
      triggered_by: userOf(start.actor),
      rerun_of_run_id: start.rerun_of_run_id,
      causation_depth: start.causation_depth,
      credits_reserved: reservation.credits,
      queued_at: sql`clock_timestamp()`,
    },
  ]);
  if (!run) throw new Error('the run was not stored');
  await insertStreamRuns(db, deps, { run, connection, streams });
  await emitRunEvents(db, { event: 'connection_run_queued', runs: [run], actor: start.actor });
  return run.id;
}

export interface ChunkStart extends Start {
  plan: { id: string; parameters: RunParameters; total_chunks: number };
  /** The chunks to run, in the order in which they start. */
  chunks: readonly Pick<PlannedChunk, 'index' | 'start_date' | 'end_date'>[];
  streams: readonly StreamPlan[];
}

/**
 * Queues a run for each chunk of a custom run, and dispatches as many as the plan allows in parallel. In the caller's
 * transaction. Returns the ids of the runs in the order of the chunks.
 * @throws StartRefused as `startRun`.
 */
export async function startChunks(db: Db, deps: StartDeps, start: ChunkStart): Promise<string[]> {
  const { connection, plan, chunks } = start;
  const moved = isWindowed(plan.parameters)
    ? start.streams.filter((one) => one.supports_date_window)
    : [...start.streams];
  const account = await requireMovable(db, deps, start);
  const refusal = await movementRefusal(db, account);
  // Chunks wait for their turn until other runs have ended.
  if (refusal && !(refusal.code === 'account_limit_reached' && isMomentary(refusal))) throw refusedByPlan(refusal);
  await refuseConflict(db, {
    connection_id: connection.id,
    streams: moved.map(({ stream }) => stream),
    windows: chunks.map(({ start_date, end_date }) => ({ start: start_date, end: end_date })),
  });
  const runs = await insertRuns(
    db,
    connection,
    chunks.map((chunk) => chunkRun(start, chunk)),
  );
  await insertInBatches(
    db,
    runs.flatMap((run) => start.streams.map((one) => chunkStream(run, one, { plan, skipped: !moved.includes(one) }))),
  );
  await emitRunEvents(db, { event: 'connection_run_queued', runs, actor: start.actor });
  await advancePlan(db, deps.queue, { plan_id: plan.id, ended: null, held: account });
  return runs.map((run) => run.id);
}

/** Codes of refusals that depend on the moment of the start: another start may succeed. */
export const MOMENTARY: readonly string[] = ['account_connector_not_ready', 'connection_locked', 'run_already_active'];

/** What would refuse a start of chunks with these windows at this moment, for a preview. */
export async function startBlockers(
  db: Db,
  {
    connection,
    account,
    ...wanted
  }: { connection: ConnectionRow; account: AccountPlan; streams: StreamRow[]; windows: readonly OpenSpan[] },
): Promise<PlanNotice[]> {
  const checks = [
    () => refuseUnstartable(db, connection, account),
    () => refuseConflict(db, { ...wanted, connection_id: connection.id }),
  ];
  const blockers: PlanNotice[] = [];
  for (const check of checks) {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof StartRefused)) throw error;
      blockers.push({ code: error.code, message: error.message, stream_name: null });
    }
  }
  return blockers;
}

/** The checks that all runs share, in the order in which the API reports them. */
async function requireMovable(
  db: Db,
  { now }: StartDeps,
  { connection, account, streams }: Start & { streams: readonly unknown[] },
): Promise<AccountPlan> {
  await refuseUnstartable(db, connection, account);
  if (streams.length === 0) {
    throw new StartRefused(badRequest('no_streams_selected', 'No stream of this connection is selected'), false);
  }
  return holdCredits(db, account, now());
}

async function refuseUnstartable(db: Db, connection: ConnectionRow, account: AccountPlan): Promise<void> {
  if (connection.status === 'locked') {
    throw new StartRefused(await connectionLocked(db, account, connection), false);
  }
  try {
    await requireReadyConnectors(db, [connection.source_id, connection.destination_id]);
  } catch (error) {
    throw error instanceof ApiError ? new StartRefused(error, true) : error;
  }
}

/** Credits that live runs only hold become available again when those runs end. */
const refusedByPlan = (refusal: Parameters<typeof movementError>[0]) =>
  new StartRefused(movementError(refusal), isMomentary(refusal));

async function refuseConflict(
  db: Db,
  {
    streams,
    ...wanted
  }: { connection_id: string; streams: StreamRow[]; windows: readonly OpenSpan[]; plain?: boolean },
): Promise<void> {
  const connection_run_id = await findConflict(db, { ...wanted, stream_ids: streams.map(({ id }) => id) });
  if (connection_run_id === null) return;
  const message = 'A run of this connection is active';
  throw new StartRefused(badRequest('run_already_active', message, { connection_run_id }), true);
}

type NewRun = Omit<PgInsertValue<typeof connectionRuns>, 'account_id' | 'connection_id' | 'number'>;

/** Stores runs with the next numbers of their connection. Returns them in the order given. */
export async function insertRuns(db: Db, connection: ConnectionRow, rows: readonly NewRun[]): Promise<RunRow[]> {
  const [counter] = await db
    .update(connections)
    .set({ run_counter: sql`${connections.run_counter} + ${rows.length}` })
    .where(eq(connections.id, connection.id))
    .returning({ last: connections.run_counter });
  const first = (counter?.last ?? rows.length) - rows.length + 1;
  const { account_id, id: connection_id } = connection;
  const runs = await db
    .insert(connectionRuns)
    .values(rows.map((row, index) => ({ ...row, account_id, connection_id, number: first + index })))
    .returning();
  return runs.toSorted((a, b) => a.number - b.number);
}

const userOf = (actor: Actor) => (actor.type === 'user' ? actor.id : null);

async function insertStreamRuns(
  db: Db,
  { queue }: StartDeps,
  { run, connection, streams }: { run: RunRow; connection: ConnectionRow; streams: StreamRow[] },
): Promise<void> {
  const now = new Date().toISOString();
  const rows = streams.map((stream, index) => ({
    ...streamOf(run, stream),
    status: 'pending' as const,
    sync_mode: stream.sync_mode,
    destination_sync_mode: stream.destination_sync_mode,
    destination_table: tableName(connection, stream),
    cursor_before: stream.state?.cursor ?? null,
    dispatched_at: index < connection.max_parallel_streams ? now : null,
  }));
  const options = { account_id: run.account_id };
  for (const row of await insertInBatches(db, rows)) {
    if (row.dispatched_at) await queue.send(db, executeStream, { stream_run_id: row.id }, options);
  }
}

const streamOf = (run: RunRow, stream: StreamRow) => ({
  account_id: run.account_id,
  connection_id: run.connection_id,
  connection_run_id: run.id,
  stream_id: stream.id,
  stream_name: stream.name,
  namespace: stream.namespace,
});

/** PostgreSQL allows 65,535 parameters per statement. */
const ROWS_AT_ONCE = 1000;

async function insertInBatches(db: Db, rows: (typeof streamRuns.$inferInsert)[]) {
  const inserted = [];
  for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) {
    const some = await db
      .insert(streamRuns)
      .values(rows.slice(start, start + ROWS_AT_ONCE))
      .returning({ id: streamRuns.id, dispatched_at: streamRuns.dispatched_at });
    inserted.push(...some);
  }
  return inserted;
}

function chunkRun({ plan, streams, actor, rerun_of_run_id }: ChunkStart, chunk: ChunkStart['chunks'][number]): NewRun {
  return {
    status: 'queued',
    run_type: plan.parameters.mode === 'full_refresh' ? 'full_refresh' : 'custom',
    trigger_type: rerun_of_run_id === undefined ? 'custom_plan' : 'rerun',
    triggered_by: userOf(actor),
    rerun_of_run_id,
    custom_run_plan_id: plan.id,
    chunk_index: chunk.index,
    chunk_count: plan.total_chunks,
    window_start: chunk.start_date,
    window_end: chunk.end_date,
    update_cursor: plan.parameters.update_cursor,
    custom_run_parameters: { ...plan.parameters },
    warnings: streams.flatMap((one) => one.warnings),
    queued_at: sql`clock_timestamp()`,
  };
}

function chunkStream(
  run: RunRow,
  { stream, ...how }: StreamPlan,
  { plan, skipped }: { plan: ChunkStart['plan']; skipped: boolean },
): typeof streamRuns.$inferInsert {
  return {
    ...streamOf(run, stream),
    status: skipped ? 'skipped' : 'pending',
    finished_at: skipped ? run.queued_at : null,
    sync_mode: how.sync_mode,
    destination_sync_mode: how.destination_sync_mode,
    cursor_before: plan.parameters.mode === 'incremental' ? (stream.state?.cursor ?? null) : null,
    // The worker writes the warnings of a stream that it moves; those of the plan are on the run.
    warnings: skipped ? how.warnings : [],
  };
}
