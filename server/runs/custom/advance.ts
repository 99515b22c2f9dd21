import { and, eq, gt, inArray, isNotNull, isNull, sql } from 'drizzle-orm';
import {
  connectionRuns,
  connections,
  connectionStreams,
  type CustomRunPlanRow,
  customRunPlans,
  streamRuns,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { SYSTEM_ACTOR } from '../../events/emit.ts';
import type { Queue } from '../../queue/boss.ts';
import { type AccountPlan, readAccountPlan } from '../../billing/account-plan.ts';
import { holdCredits, isMomentary, reserveCredits } from '../../billing/credits.ts';
import { dispatchStreams } from '../dispatch-streams.ts';
import { moveCursors } from './cursor.ts';
import { emitPlanCompleted } from '../../events/custom-run-events.ts';
import { storedParameters } from '../../pipeline/custom-run/parameters.ts';
import type { RunParameters } from '../../pipeline/custom-run/plan.ts';
import { emitRunEvents } from '../../events/run-events.ts';
import { LIVE_RUN, LIVE_STREAM, type RunStatus } from '../../pipeline/run-states.ts';

/** True for a connection run that is a waiting chunk: none of its streams has been dispatched. */
export const waitsForTurn = sql<boolean>`(connection_runs.status = 'queued' and not exists (
  select from stream_runs s where s.connection_run_id = connection_runs.id and s.dispatched_at is not null))`;

const FAILED: readonly RunStatus[] = ['failed', 'partially_succeeded'];

/**
 * Called after a launch, and when the run `ended` of a plan has ended. Dispatches the next chunks,
 * stops those that must not follow a failure or a stop, and completes the plan after the last one.
 *
 * Locks the plan. Other runs of it are locked only if they are free: a transaction that holds one is about to end it and
 * advances the plan next.
 */
export async function advancePlan(
  db: Db,
  queue: Queue,
  step: {
    plan_id: string;
    ended: { status: RunStatus; number: number } | null;
    /** From `holdCredits`, if the caller has called it. */
    held?: AccountPlan;
  },
): Promise<void> {
  const [plan] = await db.select().from(customRunPlans).where(eq(customRunPlans.id, step.plan_id)).for('no key update');
  // Deleted together with its connection.
  if (!plan) return;
  const parameters = storedParameters(plan.parameters);
  const { ended } = step;
  const stops = ended !== null && parameters.on_chunk_failure === 'stop';
  if (stops && FAILED.includes(ended.status)) await stopWaiting(db, plan, 'predecessor_failed');
  else {
    // Chunks before a waiting one that a user stopped still run.
    if (stops && ended.status === 'stopped') await stopWaiting(db, plan, 'predecessor_stopped', ended.number);
    await startNext(db, queue, { plan, parameters, held: step.held });
  }
  const live = await liveRuns(db, plan.id);
  if (live.length > 0) return;
  if (parameters.update_cursor) await moveCursors(db, plan);
  if (plan.completed_at) return;
  await db.update(customRunPlans).set({ completed_at: sql`clock_timestamp()` }).where(eq(customRunPlans.id, plan.id));
  await emitPlanCompleted(db, plan);
}

const liveRuns = (db: Db, plan_id: string) =>
  db
    .select({ id: connectionRuns.id, waits: waitsForTurn })
    .from(connectionRuns)
    .where(and(eq(connectionRuns.custom_run_plan_id, plan_id), inArray(connectionRuns.status, LIVE_RUN)));

async function startNext(
  db: Db,
  queue: Queue,
  { plan, parameters, held }: { plan: CustomRunPlanRow; parameters: RunParameters; held?: AccountPlan },
): Promise<void> {
  const live = await liveRuns(db, plan.id);
  const active = live.filter((run) => !run.waits).length;
  if (active === live.length || active >= parameters.max_parallel_runs) return;
  const slots = (await hasNewStreams(db, plan.id)) ? 1 : parameters.max_parallel_runs;
  if (active >= slots) return;
  const [connection] = await db.select().from(connections).where(eq(connections.id, plan.connection_id));
  if (!connection || connection.status === 'locked') return stopWaiting(db, plan, 'connection_locked');
  const waiting = await waitingRuns(db, plan.id, { limit: slots - active });
  if (waiting.length === 0) return;
  const account = held ?? (await readHeld(db, plan.account_id, new Date()));
  for (const run of waiting) {
    const reservation = await reserveCredits(db, account, connection);
    const { refusal } = reservation;
    // Live runs return what they hold when they end: recover-stuck-runs tries again.
    if (refusal && isMomentary(refusal)) return;
    if (refusal) return stopWaiting(db, plan, refusal.code);
    // The time limit of a run counts from here: waiting for its turn is not the fault of the workers.
    const begun = { queued_at: sql`clock_timestamp()`, credits_reserved: reservation.credits };
    await db.update(connectionRuns).set(begun).where(eq(connectionRuns.id, run.id));
    await dispatchStreams(db, queue, run);
  }
}

async function readHeld(db: Db, account_id: string, now: Date): Promise<AccountPlan> {
  return holdCredits(db, await readAccountPlan(db, account_id, { now }), now);
}

/** A stream that was never loaded: its first chunk creates the table, so chunks must not run in parallel yet. */
async function hasNewStreams(db: Db, plan_id: string): Promise<boolean> {
  const [found] = await db
    .select({ id: streamRuns.stream_id })
    .from(connectionRuns)
    .innerJoin(streamRuns, eq(streamRuns.connection_run_id, connectionRuns.id))
    .innerJoin(connectionStreams, eq(connectionStreams.id, streamRuns.stream_id))
    .where(
      and(
        eq(connectionRuns.custom_run_plan_id, plan_id),
        inArray(streamRuns.status, LIVE_STREAM),
        isNull(connectionStreams.row_count_last_run),
      ),
    )
    .limit(1);
  return found !== undefined;
}

function waitingRuns(db: Db, plan_id: string, { limit, after = 0 }: { limit?: number; after?: number } = {}) {
  const query = db
    .select()
    .from(connectionRuns)
    .where(and(eq(connectionRuns.custom_run_plan_id, plan_id), waitsForTurn, gt(connectionRuns.number, after)))
    .orderBy(connectionRuns.number)
    .for('no key update', { skipLocked: true })
    .$dynamic();
  return limit === undefined ? query : query.limit(limit);
}

/** @param after only runs with a higher number */
async function stopWaiting(db: Db, plan: CustomRunPlanRow, stop_reason: string, after?: number): Promise<void> {
  const ids = (await waitingRuns(db, plan.id, { after })).map((run) => run.id);
  if (ids.length === 0) return;
  const finished_at = sql`clock_timestamp()`;
  await db
    .update(streamRuns)
    .set({ status: 'stopped', finished_at })
    .where(and(inArray(streamRuns.connection_run_id, ids), inArray(streamRuns.status, LIVE_STREAM)));
  const stopped = await db
    .update(connectionRuns)
    .set({ status: 'stopped', finished_at, stop_reason })
    .where(inArray(connectionRuns.id, ids))
    .returning();
  const runs = stopped.toSorted((a, b) => a.number - b.number);
  await emitRunEvents(db, { event: 'connection_run_stopped', runs, actor: SYSTEM_ACTOR, extra: { stop_reason } });
}

/** Plans whose chunks wait although none runs: the transaction that should have started the next one was rolled back. */
export async function stalledPlans(db: Db): Promise<string[]> {
  const rows = await db
    .select({ plan_id: connectionRuns.custom_run_plan_id })
    .from(connectionRuns)
    .where(and(isNotNull(connectionRuns.custom_run_plan_id), inArray(connectionRuns.status, LIVE_RUN)))
    .groupBy(connectionRuns.custom_run_plan_id)
    .having(sql`bool_and(${waitsForTurn})`);
  return rows.flatMap(({ plan_id }) => plan_id ?? []);
}
