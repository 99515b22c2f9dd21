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
import { holdAllCredits, holdCredits, isMomentary, movementRefusal, readCreditsLeft } from '../billing/credits.ts';
import { connectionLocked, movementError } from '../billing/limits.ts';
import { notReady, unreadyConnectors } from '../connector-runtime/require-ready.ts';
import type { Deps } from '../deps.ts';
import type { Actor } from '../events/emit.ts';
import { emitRunEvents } from '../events/run-events.ts';
import { isWindowed, type PlannedChunk, type RunParameters } from '../pipeline/custom-run/plan.ts';
import type { PlanNotice, StreamPlan } from '../pipeline/custom-run/streams.ts';
import type { OpenSpan } from '../pipeline/custom-run/windows.ts';
import { tableName } from '../pipeline/transfer-plan.ts';
import { ApiError, badRequest } from '../platform/errors.ts';
import { executeStream } from '../queue/jobs.ts';
import { advancePlan } from './custom/advance.ts';
import { findConflict, findPlainConflicts } from './custom/conflicts.ts';
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

/**
 * Starts a plain run in the caller's transaction: run, stream runs, event and jobs. Returns the id of the run.
 * @throws StartRefused 400 `account_connector_not_ready`, `no_streams_selected`, `run_already_active`; 402
 * `connection_locked`, `payment_required`, `credits_exhausted`, `account_limit_reached`; 403 `account_suspended`.
 */
export async function startRun(db: Db, deps: StartDeps, start: RunStart): Promise<string> {
  const [started] = await startRuns(db, deps, [start]);
  if (started === undefined) throw new Error('the run was not stored');
  if (started instanceof StartRefused) throw started;
  return started;
}

/**
 * The same for different connections of any accounts, in as many statements as for one. Each has its own answer, in the
 * order given, and sees what the starts before it have reserved: the id of its run, or why it was refused.
 */
export async function startRuns(
  db: Db,
  deps: StartDeps,
  starts: readonly RunStart[],
): Promise<(string | StartRefused)[]> {
  const candidates = await refuseUnmovable(db, deps, await candidatesOf(db, starts));
  const allowed = candidates.filter((one): one is Candidate => !(one instanceof StartRefused));
  const runs = await insertRuns(
    db,
    allowed.map(({ start, credits_reserved }) => ({
      connection: start.connection,
      status: 'queued',
      run_type: 'plain',
      trigger_type: start.trigger_type,
      triggered_by: userOf(start.actor),
      rerun_of_run_id: start.rerun_of_run_id,
      causation_depth: start.causation_depth,
      credits_reserved,
      queued_at: sql`clock_timestamp()`,
    })),
  );
  const started = allowed.map(({ start, streams }, index) => ({ run: runs[index]!, start, streams }));
  await insertStreamRuns(db, deps, started);
  for (const [actor, group] of Map.groupBy(started, ({ start }) => start.actor)) {
    await emitRunEvents(db, { event: 'connection_run_queued', runs: group.map(({ run }) => run), actor });
  }
  const ids = runs.values();
  return candidates.map((one) => (one instanceof StartRefused ? one : ids.next().value!.id));
}

/** A start that nothing has refused so far. */
interface Candidate {
  start: RunStart;
  streams: StreamRow[];
  credits_reserved: number;
}

/** Refuses for what lies in the connection itself. */
async function candidatesOf(db: Db, starts: readonly RunStart[]): Promise<(Candidate | StartRefused)[]> {
  const unstartable = await findUnstartable(db, starts);
  const unnamed = starts.filter(({ streams }) => streams === undefined).map(({ connection }) => connection.id);
  const selected = await selectedStreams(db, unnamed);
  return starts.map((start, index) => {
    const streams = start.streams ?? selected.get(start.connection.id) ?? [];
    return unstartable[index] ?? (streams.length === 0 ? noStreams() : { start, streams, credits_reserved: 0 });
  });
}

/** Refuses what the plan of the account does not allow, and what a live run excludes. Reserves credits for the others. */
async function refuseUnmovable(
  db: Db,
  { now }: StartDeps,
  candidates: readonly (Candidate | StartRefused)[],
): Promise<(Candidate | StartRefused)[]> {
  const asking = candidates.filter((one): one is Candidate => !(one instanceof StartRefused));
  const accounts = new Map(asking.map(({ start }) => [start.account.account.id, start.account]));
  const held = await holdAllCredits(db, [...accounts.values()], now());
  const left = await readCreditsLeft(
    db,
    held,
    asking.map(({ start }) => start.connection),
  );
  const conflicts = await findPlainConflicts(
    db,
    asking.map(({ start, streams }) => ({
      connection_id: start.connection.id,
      stream_ids: streams.map(({ id }) => id),
    })),
  );
  return candidates.map((one) => {
    if (one instanceof StartRefused) return one;
    const { connection } = one.start;
    const refusal = left.refusal(connection);
    if (refusal) return refusedByPlan(refusal);
    const conflict = conflicts.get(connection.id);
    if (conflict !== undefined) return alreadyActive(conflict);
    return { ...one, credits_reserved: left.reserve(connection) };
  });
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
    chunks.map((chunk) => ({ connection, ...chunkRun(start, chunk) })),
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
    () => refuseUnstartable(db, { connection, account }),
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

/** What all chunks need, in the order in which the API reports it. */
async function requireMovable(
  db: Db,
  { now }: StartDeps,
  { connection, account, streams }: Start & { streams: readonly unknown[] },
): Promise<AccountPlan> {
  await refuseUnstartable(db, { connection, account });
  if (streams.length === 0) throw noStreams();
  return holdCredits(db, account, now());
}

const noStreams = () =>
  new StartRefused(badRequest('no_streams_selected', 'No stream of this connection is selected'), false);

async function refuseUnstartable(db: Db, start: Pick<Start, 'connection' | 'account'>): Promise<void> {
  const [refused] = await findUnstartable(db, [start]);
  if (refused) throw refused;
}

/** Refuses locked connections, and those with a side that is not ready. In the order given. */
async function findUnstartable(
  db: Db,
  starts: readonly Pick<Start, 'connection' | 'account'>[],
): Promise<(StartRefused | null)[]> {
  const sides = starts.flatMap(({ connection }) => [connection.source_id, connection.destination_id]);
  const unready = sides.length === 0 ? [] : await unreadyConnectors(db, [...new Set(sides)]);
  // The connections that a plan has locked have few reasons.
  const locked = new Map<string, StartRefused>();
  const refuseLocked = async ({ connection, account }: Pick<Start, 'connection' | 'account'>) => {
    const reason = `${account.account.id} ${connection.status_reason}`;
    const refused = locked.get(reason) ?? new StartRefused(await connectionLocked(db, account, connection), false);
    locked.set(reason, refused);
    return refused;
  };
  const refused: (StartRefused | null)[] = [];
  for (const start of starts) {
    const { status, source_id, destination_id } = start.connection;
    const side = unready.find(({ id }) => id === source_id || id === destination_id);
    if (status === 'locked') refused.push(await refuseLocked(start));
    else refused.push(side ? new StartRefused(notReady(side), true) : null);
  }
  return refused;
}

/** Credits that live runs only hold become available again when those runs end. */
const refusedByPlan = (refusal: Parameters<typeof movementError>[0]) =>
  new StartRefused(movementError(refusal), isMomentary(refusal));

async function refuseConflict(
  db: Db,
  { streams, ...wanted }: { connection_id: string; streams: StreamRow[]; windows: readonly OpenSpan[] },
): Promise<void> {
  const connection_run_id = await findConflict(db, { ...wanted, stream_ids: streams.map(({ id }) => id) });
  if (connection_run_id !== null) throw alreadyActive(connection_run_id);
}

const alreadyActive = (connection_run_id: string) =>
  new StartRefused(badRequest('run_already_active', 'A run of this connection is active', { connection_run_id }), true);

type NewRun = Omit<PgInsertValue<typeof connectionRuns>, 'id' | 'account_id' | 'connection_id' | 'number'>;

/** Stores runs with the next numbers of their connections. Returns them in the order given. */
export async function insertRuns(db: Db, rows: readonly (NewRun & { connection: ConnectionRow })[]): Promise<RunRow[]> {
  if (rows.length === 0) return [];
  const numbers = await takeNumbers(
    db,
    rows.map(({ connection }) => connection.id),
  );
  const values = rows.map(({ connection, ...row }, index) => {
    const id = Bun.randomUUIDv7();
    return { ...row, id, account_id: connection.account_id, connection_id: connection.id, number: numbers[index]! };
  });
  const runs = await db.insert(connectionRuns).values(values).returning();
  const stored = new Map(runs.map((run) => [run.id, run]));
  return values.map(({ id }) => stored.get(id)!);
}

/** The number of a run for each of these connections, which may be named more than once. */
async function takeNumbers(db: Db, connection_ids: readonly string[]): Promise<number[]> {
  const groups = Map.groupBy(connection_ids, (id) => id);
  const counts = JSON.stringify([...groups].map(([id, all]) => ({ id, runs: all.length })));
  const counters = await db
    .update(connections)
    .set({ run_counter: sql`${connections.run_counter} + taken.runs` })
    .from(sql`jsonb_to_recordset(${counts}::text::jsonb) as taken (id uuid, runs integer)`)
    .where(eq(connections.id, sql`taken.id`))
    .returning({ id: connections.id, last: connections.run_counter });
  const next = new Map(counters.map(({ id, last }) => [id, last - groups.get(id)!.length]));
  return connection_ids.map((id) => {
    const number = (next.get(id) ?? 0) + 1;
    next.set(id, number);
    return number;
  });
}

const userOf = (actor: Actor) => (actor.type === 'user' ? actor.id : null);

async function insertStreamRuns(
  db: Db,
  { queue }: StartDeps,
  started: readonly { run: RunRow; start: RunStart; streams: StreamRow[] }[],
): Promise<void> {
  const now = new Date().toISOString();
  const rows = started.flatMap(({ run, start: { connection }, streams }) =>
    streams.map((stream, index) => ({
      ...streamOf(run, stream),
      status: 'pending' as const,
      sync_mode: stream.sync_mode,
      destination_sync_mode: stream.destination_sync_mode,
      destination_table: tableName(connection, stream),
      cursor_before: stream.state?.cursor ?? null,
      dispatched_at: index < connection.max_parallel_streams ? now : null,
    })),
  );
  const inserted = await insertInBatches(db, rows);
  const dispatched = inserted
    .filter(({ dispatched_at }) => dispatched_at !== null)
    .map(({ id, account_id }) => ({ payload: { stream_run_id: id }, account_id }));
  await queue.sendAll(db, executeStream, dispatched);
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
      .returning({ id: streamRuns.id, account_id: streamRuns.account_id, dispatched_at: streamRuns.dispatched_at });
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
