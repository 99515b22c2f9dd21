import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  connectionRuns,
  connections,
  type RunRow,
  type StoredRunError,
  type StoredWarning,
  type StreamRunRow,
  streamRuns,
} from '../../db/schema/index.ts';
import { pipelined } from '../../db/pipelined.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, type NewEvent, SYSTEM_ACTOR } from '../events/emit.ts';
import type { EventKind } from '../events/kinds.ts';
import type { Queue } from '../queue/boss.ts';
import { dispatchStreams } from './dispatch-streams.ts';
import { advancePlan } from './custom/advance.ts';
import { beginFreePeriod, meterUnmetered } from '../billing/metering.ts';
import { disableIfRepeatedlyFailing } from './disable-connections.ts';
import { lockRun } from './lock-run.ts';
import {
  advancePublication,
  discardUnpublished,
  isPublishedTogether,
  MEMBER,
  NOT_PUBLISHED,
} from './publish-snapshot.ts';
import { type ConnectionFacts, emitRunEvent, prepareRunEvent, type RunTotals } from '../events/run-events.ts';
import type { Usual } from '../events/statistics.ts';
import { finalRunStatus, HELD_STREAM, isLiveRun, LIVE_STREAM, type RunStatus } from '../pipeline/run-states.ts';

/** What the end of a stream has read already, so that the end of its run need not. */
export interface KnownOfRun {
  /** All streams of the run, as they are now. What they have loaded is metered. */
  streams?: StreamRunRow[];
  /** Set with `streams` if the only one has succeeded. Its event is emitted with that of the run. */
  success?: { facts: ConnectionFacts; usual: Usual; earlier: readonly NewEvent[] };
  source?: Pick<AccountConnectorRow, 'free_until'>;
}

/** After a stream has changed: dispatches the next one, or finishes the run. The run must be locked. */
export async function advanceRun(db: Db, queue: Queue, run: RunRow, known: KnownOfRun = {}): Promise<void> {
  const found =
    known.streams ?? (await db.select(MEMBER).from(streamRuns).where(eq(streamRuns.connection_run_id, run.id)));
  const streams = await advancePublication(db, queue, { run, streams: found });
  const statuses = streams.map((stream) => stream.status);
  if (!statuses.some((status) => LIVE_STREAM.includes(status))) {
    // A caller that knows less may have changed the run since it has read it, such as its warnings.
    if (known.streams) await finishLocked(db, queue, { run, actor: SYSTEM_ACTOR, known });
    else await finishRun(db, queue, { connection_run_id: run.id, actor: SYSTEM_ACTOR });
    return;
  }
  if (run.status === 'stopping') return;
  const dispatched = await dispatchStreams(db, queue, run);
  const waiting = !dispatched && !statuses.some((status) => HELD_STREAM.includes(status) || status === 'pending');
  if (waiting && run.status === 'running') {
    await db.update(connectionRuns).set({ status: 'retrying' }).where(eq(connectionRuns.id, run.id));
    await emitRunEvent(db, { event: 'connection_run_retrying', run });
  }
}

/**
 * Finishes a run whose streams have all ended: stores its final state, emits its event, updates its connection, and
 * dispatches the next chunks of a custom run.
 */
export async function finishRun(
  db: Db,
  queue: Queue,
  { connection_run_id, actor }: { connection_run_id: string; actor: Actor },
): Promise<void> {
  const run = await lockRun(db, connection_run_id);
  if (run && isLiveRun(run.status)) await finishLocked(db, queue, { run, actor, known: {} });
}

async function finishLocked(
  db: Db,
  queue: Queue,
  { run, actor, known }: { run: RunRow; actor: Actor; known: KnownOfRun },
): Promise<void> {
  const streams = known.streams ?? (await db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, run.id)));
  const status = finalRunStatus(
    streams.map((stream) => stream.status),
    run.stop_requested_at !== null,
  );
  if (!known.streams) await meterUnmetered(db, run);
  const has_loaded = status === 'succeeded' || status === 'partially_succeeded';
  // A free period that has begun stays.
  if (has_loaded && !known.source?.free_until) await beginFreePeriod(db, run);
  const [ended] = await db
    .update(connectionRuns)
    .set({
      status,
      finished_at: sql`clock_timestamp()`,
      error: runError(streams, status),
      warnings: allWarnings(run, streams),
    })
    .where(eq(connectionRuns.id, run.id))
    .returning();
  if (!ended) return;
  if (isPublishedTogether(streams)) await discardUnpublished(db, queue, run);
  const event = FINAL_EVENTS[status] ?? 'connection_failed';
  const totals = sumStreams(streams);
  const about = { event, run: ended, actor, totals, extra: errorFacts(ended.error), ...known.success };
  // A custom run that fails to reload old days says nothing about the health of the connection.
  const remember = async () => run.custom_run_plan_id === null && rememberOutcome(db, ended);
  // `retry_count` is the number of failures before a success; for a failure it includes that failure.
  if (status !== 'succeeded') await remember();
  const report = await prepareRunEvent(db, about);
  if (status === 'succeeded') await pipelined(report, remember);
  else await report();
  if (status === 'failed' && run.custom_run_plan_id === null) await disableIfRepeatedlyFailing(db, run.connection_id);
  if (run.custom_run_plan_id !== null) {
    await advancePlan(db, queue, { plan_id: run.custom_run_plan_id, ended: { status, number: run.number } });
  }
}

/** A continuous run that was shorter had nothing to follow, or failed: the next one begins after a pause. */
const SHORT_RUN_SECONDS = 60;
const FIRST_PAUSE_SECONDS = 5;
const MAX_DOUBLINGS = 8;

/**
 * When the next run of a continuous connection is due: at once, or after short runs with pauses that grow with failures.
 * Other connections keep their next run.
 */
function continuedAt({ started_at, finished_at, status }: RunRow, failures: SQL): SQL {
  const lasted = (Date.parse(finished_at ?? '') - Date.parse(started_at ?? finished_at ?? '')) / 1000;
  const pause = sql`${FIRST_PAUSE_SECONDS}::int * power(2, least(${failures}, ${MAX_DOUBLINGS}::int))`;
  const isWhole = status === 'succeeded' && lasted >= FIRST_PAUSE_SECONDS;
  const seconds = isWhole || lasted >= SHORT_RUN_SECONDS ? sql`0` : sql`greatest(0, ${pause} - ${lasted}::float8)`;
  const continues = and(
    eq(connections.status, 'active'),
    isNull(connections.deleted_at),
    sql`${connections.schedule} ->> 'type' = 'continuous'`,
  );
  return sql`case when ${continues} then clock_timestamp() + make_interval(secs => ${seconds})
    else ${connections.next_run_at} end`;
}

const FINAL_EVENTS: Partial<Record<RunStatus, EventKind>> = {
  succeeded: 'connection_succeeded',
  partially_succeeded: 'connection_partially_failed',
  failed: 'connection_failed',
  stopped: 'connection_run_stopped',
};

function runError(streams: StreamRunRow[], status: RunStatus): StoredRunError | null {
  if (status !== 'failed' && status !== 'partially_succeeded') return null;
  const failed = streams.filter((stream) => stream.error);
  // The cause, rather than what it kept from being published.
  const cause = failed.find((stream) => stream.error?.code !== NOT_PUBLISHED) ?? failed[0];
  return cause?.error ?? null;
}

const MAX_WARNINGS = 100;

/** The warnings of the plan and of each stream, without duplicates. */
function allWarnings(run: RunRow, streams: StreamRunRow[]): StoredWarning[] {
  const all = [...run.warnings, ...streams.flatMap((stream) => stream.warnings)];
  const unique = new Map(all.map((warning) => [`${warning.stream_name} ${warning.code} ${warning.message}`, warning]));
  return [...unique.values()].slice(0, MAX_WARNINGS);
}

const errorFacts = (error: StoredRunError | null) => ({
  error_code: error?.code ?? null,
  error_type: error?.type ?? null,
  error_origin: error?.origin ?? null,
  error_message: error?.message ?? null,
  retryable: error?.retryable ?? null,
});

function sumStreams(streams: StreamRunRow[]): RunTotals {
  const sum = (pick: (row: StreamRunRow) => number) => streams.reduce((total, row) => total + pick(row), 0);
  return {
    rows_read: sum((row) => row.rows_read),
    rows_loaded: sum((row) => row.rows_loaded),
    rows_rejected: sum((row) => row.rows_rejected),
    bytes_loaded: sum((row) => row.bytes_loaded),
    streams_total: streams.length,
    streams_failed: streams.filter((row) => row.status === 'failed').length,
  };
}

async function rememberOutcome(db: Db, ended: RunRow): Promise<void> {
  const { status, connection_id } = ended;
  const isFailure = status === 'failed' || status === 'partially_succeeded';
  const failures =
    status === 'succeeded'
      ? sql`0`
      : isFailure
        ? sql`${connections.consecutive_failures} + 1`
        : sql`${connections.consecutive_failures}`;
  await db
    .update(connections)
    .set({
      consecutive_failures: failures,
      ...(status === 'succeeded' && { last_succeeded_at: sql`clock_timestamp()` }),
      ...(isFailure && { last_failed_at: sql`clock_timestamp()` }),
      next_run_at: continuedAt(ended, failures),
    })
    .where(eq(connections.id, connection_id));
}
