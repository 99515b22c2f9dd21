import { and, eq, getTableColumns, sql } from 'drizzle-orm';
import {
  connectionStreams,
  type RunRow,
  snapshots,
  type StoredLogLine,
  type StoredWarning,
  type StreamRunRow,
  streamRuns,
} from '../../db/schema/index.ts';
import { pipelined } from '../../db/pipelined.ts';
import type { Db } from '../../db/types.ts';
import type { Queue } from '../queue/boss.ts';
import { executeStream } from '../queue/jobs.ts';
import { type Claim, type Progress, recordCheckpoint, stillHeld } from './claim-stream.ts';
import { forgetDeliveries, recordsDeliveries } from './delivery/delivered-batches.ts';
import { meterStreamRun } from '../billing/metering.ts';
import { recordFailure, recordSuccess } from './connector-health.ts';
import { rediscoverChanged } from '../catalog/request-discovery.ts';
import { connectionFacts, emitStreamEvent, streamEvent } from '../events/run-events.ts';
import { readUsual } from '../events/statistics.ts';
import { advanceRun, type KnownOfRun } from './finish-run.ts';
import { freshSince } from './log/freshness.ts';
import { lockRun } from './lock-run.ts';
import { withLastLines } from './log/append-lines.ts';
import { lineOf } from './log/end-line.ts';
import { backoffSeconds, isLiveRun, MAX_ATTEMPTS, MAX_ATTEMPTS_WITHOUT_PROGRESS } from '../pipeline/run-states.ts';
import type { Outcome } from './outcome.ts';

/**
 * Ends an attempt in one transaction: stream, event, next job, and the run when this was its last stream.
 * @returns false if its last commit was not recorded: another worker holds the claim now
 */
export async function endAttempt(db: Db, queue: Queue, ended: EndedAttempt): Promise<boolean> {
  const { claim, outcome } = ended;
  const commit = outcome.kind === 'succeeded' ? outcome.commit : undefined;
  const [run, isRecorded] = await pipelined(
    () => lockRun(db, claim.run.id),
    async () => commit === undefined || recordCheckpoint(db, claim, commit),
  );
  if (isRecorded && run && isLiveRun(run.status)) await endLocked(db, queue, run, ended);
  return isRecorded;
}

interface EndedAttempt {
  claim: Claim;
  outcome: Outcome;
  progress: Progress;
  warnings: StoredWarning[];
  /** Of the attempt, not stored yet. */
  lines?: readonly StoredLogLine[];
}

async function endLocked(db: Db, queue: Queue, run: RunRow, ended: EndedAttempt): Promise<void> {
  const { claim, progress, warnings } = ended;
  const held = stillHeld(claim);
  // Only the decision about a retry depends on them.
  const without_progress = ended.outcome.kind === 'retry' ? await attemptsWithoutProgress(db, claim) : 1;
  const attempts = { without_progress, all: claim.stream_run.attempt };
  const current = await withSnapshot(db, claim, ended.outcome);
  const outcome = decide(current, attempts, run.status === 'stopping');
  const log = withLastLines(ended.lines ?? [], lineOf(outcome, { progress, attempts: attempts.without_progress }));
  const [row] = await db
    .update(streamRuns)
    .set({ ...progress, rate_limited_until: null, warnings, worker_deaths: 0, log, ...columnsOf(outcome) })
    .where(held)
    .returning({ ...getTableColumns(streamRuns), is_only: isOnlyStream });
  if (!row) return;
  const { is_only, ...stream } = row;
  // Sent together: none needs what another one returns.
  const [success] = await Promise.all([
    outcome.kind === 'succeeded' && is_only ? successOf(db, { event: 'stream_run_succeeded', run, stream }) : undefined,
    meterStreamRun(db, stream),
    outcome.kind === 'succeeded' && rememberRows(db, run, { stream, outcome }),
  ]);
  const known: KnownOfRun = { source: claim.source, success, ...(is_only && { streams: [stream] }) };
  if (outcome.kind === 'retry' || outcome.kind === 'released') {
    if (outcome.kind === 'retry' && outcome.wait_until) {
      await emitStreamEvent(db, { event: 'stream_run_rate_limited', run, stream });
    }
    const options = { account_id: run.account_id, start_after: resumeAt(outcome, stream) };
    await queue.send(db, executeStream, { stream_run_id: stream.id }, options);
  } else if (outcome.kind !== 'ready') {
    // Otherwise the event of the run follows in the same statement.
    if (!success) await emitStreamEvent(db, { event: `stream_run_${outcome.kind}`, run, stream });
    if (recordsDeliveries(claim)) await forgetDeliveries(db, stream.id);
    if (outcome.kind === 'succeeded') await recordSuccess(db, claim);
    if (outcome.kind === 'failed') {
      if (!outcome.of_stream) await recordFailure(db, claim, outcome.error);
      await rediscoverChanged(db, queue, { claim, error: outcome.error });
    }
  }
  await advanceRun(db, queue, run, known);
}

/** What the events about the success of a stream and its run are made of. */
async function successOf(db: Db, report: Parameters<typeof streamEvent>[1]): Promise<KnownOfRun['success']> {
  const { run, stream } = report;
  const [facts, usual] = await Promise.all([
    connectionFacts(db, run.connection_id),
    readUsual(db, run, stream.stream_id),
  ]);
  return { facts, usual, earlier: [await streamEvent(db, report, facts, usual)] };
}

/** Of a run without other streams, nothing has to be read to finish it. */
const isOnlyStream = sql<boolean>`not exists (select from stream_runs other
  where other.connection_run_id = stream_runs.connection_run_id and other.id <> stream_runs.id)`;

/** The claim has counted this attempt, unless a checkpoint has reset the count since. */
async function attemptsWithoutProgress(db: Db, claim: Claim): Promise<number> {
  const [before] = await db
    .select({ count: streamRuns.attempts_without_progress })
    .from(streamRuns)
    .where(stillHeld(claim));
  return Math.max(1, before?.count ?? 0);
}

/** What was read from a snapshot that has been replaced meanwhile is read again. */
async function withSnapshot(db: Db, claim: Claim, outcome: Outcome): Promise<Outcome> {
  if (outcome.kind !== 'ready') return outcome;
  const [current] = await db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .innerJoin(
      snapshots,
      and(
        eq(snapshots.connection_run_id, streamRuns.connection_run_id),
        eq(snapshots.generation, streamRuns.snapshot_generation),
      ),
    )
    .where(eq(streamRuns.id, claim.stream_run.id));
  return current ? outcome : { kind: 'released' };
}

/** A stop takes precedence over a retry, and a retry needs a remaining attempt. */
function decide(outcome: Outcome, attempts: { without_progress: number; all: number }, stopping: boolean): Outcome {
  if (stopping && outcome.kind !== 'succeeded') return { kind: 'stopped' };
  if (outcome.kind !== 'retry' || outcome.wait_until) return outcome;
  const exhausted = attempts.without_progress >= MAX_ATTEMPTS_WITHOUT_PROGRESS || attempts.all >= MAX_ATTEMPTS;
  return exhausted ? { kind: 'failed', error: outcome.error } : outcome;
}

function columnsOf(outcome: Outcome) {
  const finished_at = sql`clock_timestamp()`;
  switch (outcome.kind) {
    case 'succeeded':
      return { status: 'succeeded' as const, finished_at, error: null };
    case 'ready':
      // No worker holds it: it waits for the other streams of the run.
      return { status: 'pending' as const, ready: outcome.ready, error: null, attempts_without_progress: 0 };
    case 'stopped':
      return { status: 'stopped' as const, finished_at };
    case 'failed':
      return { status: 'failed' as const, finished_at, error: outcome.error };
    case 'retry':
      return {
        status: 'retrying' as const,
        error: outcome.error,
        rate_limited_until: outcome.wait_until?.toISOString() ?? null,
        attempts_without_progress: outcome.wait_until
          ? UNCOUNTED
          : sql`greatest(${streamRuns.attempts_without_progress}, 1)`,
      };
    case 'released':
      return { status: 'retrying' as const, attempts_without_progress: UNCOUNTED };
  }
}

/** Takes back what the claim has counted. */
const UNCOUNTED = sql`greatest(${streamRuns.attempts_without_progress} - 1, 0)`;

function resumeAt(outcome: Outcome, stream: StreamRunRow): Date | number | undefined {
  if (outcome.kind !== 'retry') return undefined;
  if (outcome.wait_until) return outcome.wait_until;
  return backoffSeconds(stream.attempts_without_progress, outcome.backoff_base_seconds);
}

async function rememberRows(
  db: Db,
  run: RunRow,
  { stream, outcome }: { stream: StreamRunRow; outcome: Extract<Outcome, { kind: 'succeeded' }> },
): Promise<void> {
  // A run that follows the log has recorded how far it is whenever it knew its lag.
  const fresh = outcome.rolled_over ? {} : freshSince(run, stream.started_at);
  await db
    .update(connectionStreams)
    .set({ row_count_last_run: stream.rows_loaded, ...fresh, ...outcome.loaded })
    .where(eq(connectionStreams.id, stream.stream_id));
}
