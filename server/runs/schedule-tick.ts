import { and, asc, eq, inArray, isNull, lte, sql } from 'drizzle-orm';
import { type ConnectionRow, connectionRuns, connections, type StoredRunError } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import type { Actor } from '../events/emit.ts';
import { type Periodic, periodic } from '../platform/periodic.ts';
import { readAccountPlan } from '../billing/account-plan.ts';
import { insertRuns, StartRefused, startRun } from './start.ts';
import { rediscoverAged } from '../catalog/request-discovery.ts';
import { emitRunEvents } from '../events/run-events.ts';
import { LIVE_RUN } from '../pipeline/run-states.ts';
import { isContinuous, nextRunAt } from '../pipeline/schedule.ts';

const EVERY_MS = 1000;
const AT_ONCE = 20;
const SCHEDULE: Actor = { type: 'schedule', id: null, name: null };

/** Starts due connections every second. Any number of processes may run it; a row lock decides which one starts a run. */
export const startScheduler = (deps: Deps): Periodic =>
  periodic(() => fireDue(deps), {
    every_ms: EVERY_MS,
    onError: (error) => deps.log.error({ err: error }, 'scheduler failed'),
  });

/** Starts what is due, each connection in its own transaction. */
export async function fireDue(deps: Deps): Promise<void> {
  if (!(await isAnyDue(deps.db))) return;
  for (let fired = AT_ONCE; fired === AT_ONCE; ) {
    fired = 0;
    while (fired < AT_ONCE) {
      const ticked = await deps.db.transaction((tx) => fireOne(deps, tx));
      if (!ticked) break;
      deps.metrics.scheduleDelay(ticked.delay_seconds);
      fired += 1;
      // In its own transaction: storing a catalog locks the source first and its connections afterwards.
      await deps.db.transaction((tx) => rediscoverAged(tx, deps, ticked.connection));
    }
  }
}

/** After a restore, schedules wait for an operator. */
const notHeld = sql`not exists (select from installation where held_at is not null)`;
const notSuspended = sql`not exists (select from accounts a where a.id = ${connections.account_id} and a.suspended_at is not null)`;
/** By the clock of the database: with a worker's own, one that is ahead would fire early and skip the right moment. */
const isDue = and(isNull(connections.deleted_at), lte(connections.next_run_at, sql`now()`), notHeld, notSuspended);

/** Most ticks find nothing, which one statement shows without a transaction. */
async function isAnyDue(db: Db): Promise<boolean> {
  const found = await db.select({ id: connections.id }).from(connections).where(isDue).limit(1);
  return found.length > 0;
}

async function fireOne(deps: Deps, db: Db): Promise<{ connection: ConnectionRow; delay_seconds: number } | null> {
  const [due] = await db
    .select({ connection: connections, now: sql<string>`now()` })
    .from(connections)
    .where(isDue)
    .orderBy(asc(connections.next_run_at))
    .limit(1)
    .for('no key update', { skipLocked: true });
  if (!due?.connection.next_run_at) return null;
  const { connection } = due;
  // Counted from now rather than from the missed tick, so that one run catches up after downtime.
  const ticked = { anchor: new Date(due.connection.next_run_at), after: new Date(due.now) };
  const continues = isContinuous(connection.schedule);
  const next = continues ? lookAgain(ticked.after) : nextRunAt(connection.schedule, ticked);
  const scheduled = connection.status === 'active' || connection.status === 'locked';
  await db
    .update(connections)
    .set({ next_run_at: scheduled ? next : null })
    .where(eq(connections.id, connection.id));
  if (scheduled && !(continues && (await hasLiveRun(db, connection)))) await startOrSkip(deps, db, connection);
  return { connection, delay_seconds: Math.max(0, Date.parse(due.now) - ticked.anchor.getTime()) / 1000 };
}

/** The end of a continuous run makes the next one due. This only finds connections that could not start one. */
const LOOK_AGAIN_MS = 300_000;
const lookAgain = (now: Date) => new Date(now.getTime() + LOOK_AGAIN_MS).toISOString();

async function hasLiveRun(db: Db, { id }: ConnectionRow): Promise<boolean> {
  const live = and(eq(connectionRuns.connection_id, id), inArray(connectionRuns.status, LIVE_RUN));
  const rows = await db
    .select({ one: sql`1` })
    .from(connectionRuns)
    .where(and(live, isNull(connectionRuns.custom_run_plan_id)))
    .limit(1);
  return rows.length > 0;
}

const SKIP_REASONS: Record<string, string> = {
  connection_locked: 'plan_limit',
  payment_required: 'plan_limit',
  credits_exhausted: 'plan_limit',
  account_limit_reached: 'plan_limit',
  account_connector_not_ready: 'source_not_ready',
  no_streams_selected: 'no_streams_selected',
  run_already_active: 'overlap',
};

/** A tick that may not start a run leaves a skipped one with the reason. */
async function startOrSkip(deps: Deps, db: Db, connection: ConnectionRow): Promise<void> {
  const account = await readAccountPlan(db, connection.account_id, { now: deps.now() });
  try {
    await startRun(db, deps, { connection, account, trigger_type: 'schedule', actor: SCHEDULE });
  } catch (error) {
    if (!(error instanceof StartRefused)) throw error;
    await skip(db, connection, { skip_reason: SKIP_REASONS[error.code] ?? error.code, message: error.message });
  }
}

async function skip(db: Db, connection: ConnectionRow, why: { skip_reason: string; message: string }): Promise<void> {
  const { skip_reason, message } = why;
  const runs = await insertRuns(db, connection, [
    {
      status: 'skipped',
      run_type: 'plain',
      trigger_type: 'schedule',
      skip_reason,
      error: skip_reason === 'plan_limit' ? planLimit(message) : null,
      queued_at: sql`clock_timestamp()`,
      finished_at: sql`clock_timestamp()`,
    },
  ]);
  await emitRunEvents(db, { event: 'connection_run_skipped', runs, actor: SCHEDULE });
}

const planLimit = (message: string): StoredRunError => ({
  code: 'plan_limit',
  message,
  origin: 'platform',
  type: 'plan_limit',
  retryable: false,
  stream_name: null,
  internal_message: null,
  occurred_at: new Date().toISOString(),
});
