import { and, asc, eq, inArray, isNull, lte, sql } from 'drizzle-orm';
import { type ConnectionRow, connectionRuns, connections } from '../../db/schema/index.ts';
import { findsAny, type Question } from '../../db/ask-together.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { type Periodic, periodic } from '../platform/periodic.ts';
import { readAccountPlans } from '../billing/account-plan.ts';
import { SCHEDULE, skipRuns } from './skip-runs.ts';
import { StartRefused, startRuns } from './start.ts';
import { rediscoverAged } from '../catalog/request-discovery.ts';
import { LIVE_RUN } from '../pipeline/run-states.ts';
import { isContinuous, nextRunAt } from '../pipeline/schedule.ts';

const EVERY_MS = 1000;
const AT_ONCE = 100;

/** Starts due connections every second. Any number of processes may run it; row locks decide which one starts a run. */
export const startScheduler = (deps: Deps): Periodic =>
  periodic(() => fireDue(deps), {
    every_ms: EVERY_MS,
    onError: (error) => deps.log.error({ err: error }, 'scheduler failed'),
  });

/** Starts what is due, many connections in one transaction. */
export async function fireDue(deps: Deps): Promise<void> {
  // Most ticks find nothing, which one statement shows without a transaction.
  if (!(await findsAny(deps.db, ANY_DUE))) return;
  for (let fired = AT_ONCE; fired === AT_ONCE; ) fired = await fireSome(deps);
}

/** After a restore, schedules wait for an operator. */
const notHeld = sql`not exists (select from installation where held_at is not null)`;
const notSuspended = sql`not exists (select from accounts a where a.id = ${connections.account_id} and a.suspended_at is not null)`;
const mayFire = and(isNull(connections.deleted_at), notHeld, notSuspended);
/** A time of connections at which something is due. */
type DueTime = 'next_run_at' | 'next_verification_at';
/** By the clock of the database: with a worker's own, one that is ahead would fire early and skip the right moment. */
export const isDueBy = (time: DueTime) => and(lte(connections[time], sql`now()`), mayFire);
const isDue = isDueBy('next_run_at');

const ANY_DUE: Question = {
  name: 'due connections',
  query: (db) => db.select({ id: connections.id }).from(connections).where(isDue).limit(1),
};

/** @returns how many were due */
async function fireSome(deps: Deps): Promise<number> {
  try {
    return await fire(deps, AT_ONCE);
  } catch (error) {
    deps.log.warn({ err: error }, 'due connections could not be started together; starting them one by one');
    return fireSingly(deps);
  }
}

/** One transaction per connection, so that one that fails does not hold up the others. */
async function fireSingly(deps: Deps): Promise<number> {
  for (let fired = 0; fired < AT_ONCE; fired += 1) {
    const taken: ConnectionRow[] = [];
    try {
      if ((await fire(deps, 1, taken)) === 0) return fired;
    } catch (error) {
      const [failed] = taken;
      if (!failed) throw error;
      deps.log.error({ err: error, connection_id: failed.id }, 'a due connection could not be started');
      await postpone(deps.db, failed, 'next_run_at');
    }
  }
  return AT_ONCE;
}

const POSTPONED_SECONDS = 60;

/** Later connections no longer wait behind one whose tick failed. */
export async function postpone(db: Db, failed: ConnectionRow, time: DueTime): Promise<void> {
  await db
    .update(connections)
    .set({ [time]: sql`now() + make_interval(secs => ${POSTPONED_SECONDS})` })
    .where(and(eq(connections.id, failed.id), eq(connections[time], failed[time]!)));
}

/** Starts up to `limit` due connections in one transaction. `taken` receives those it has locked, also if it fails. */
async function fire(deps: Deps, limit: number, taken: ConnectionRow[] = []): Promise<number> {
  const ticks = await deps.db.transaction(async (tx) => {
    const due = await takeDue(tx, limit);
    taken.push(...due.map(({ connection }) => connection));
    const planned = due.map(plan);
    await planNext(tx, planned);
    await startOrSkip(deps, tx, await withoutContinued(tx, planned));
    return planned;
  });
  for (const { delay_seconds } of ticks) deps.metrics.scheduleDelay(delay_seconds);
  await rediscoverAged(
    deps,
    ticks.map(({ connection }) => connection),
  );
  return ticks.length;
}

interface Due {
  connection: ConnectionRow;
  now: string;
}

const takeDue = (db: Db, limit: number): Promise<Due[]> =>
  db
    .select({ connection: connections, now: sql<string>`now()` })
    .from(connections)
    .where(isDue)
    .orderBy(asc(connections.next_run_at))
    .limit(limit)
    .for('no key update', { skipLocked: true });

/** What a tick of a connection does. */
interface Tick {
  connection: ConnectionRow;
  next_run_at: string | null;
  /** The schedule is active. */
  scheduled: boolean;
  continues: boolean;
  delay_seconds: number;
}

function plan({ connection, now }: Due): Tick {
  // Counted from now rather than from the missed tick, so that one run catches up after downtime.
  const ticked = { anchor: new Date(connection.next_run_at!), after: new Date(now) };
  const continues = isContinuous(connection.schedule);
  const scheduled = connection.status === 'active' || connection.status === 'locked';
  const next = () => (continues ? lookAgain(ticked.after) : nextRunAt(connection.schedule, ticked));
  const delay_seconds = Math.max(0, ticked.after.getTime() - ticked.anchor.getTime()) / 1000;
  return { connection, scheduled, continues, next_run_at: scheduled ? next() : null, delay_seconds };
}

/** The end of a continuous run makes the next one due. This finds what was lost. */
const LOOK_AGAIN_MS = 300_000;
const lookAgain = (now: Date) => new Date(now.getTime() + LOOK_AGAIN_MS).toISOString();

async function planNext(db: Db, ticks: readonly Tick[]): Promise<void> {
  if (ticks.length === 0) return;
  const times = JSON.stringify(ticks.map(({ connection, next_run_at }) => ({ id: connection.id, next_run_at })));
  await db
    .update(connections)
    .set({ next_run_at: sql`planned.next_run_at` })
    .from(sql`jsonb_to_recordset(${times}::text::jsonb) as planned (id uuid, next_run_at timestamptz)`)
    .where(eq(connections.id, sql`planned.id`));
}

/** The connections to start: without those that are not scheduled, and continuous ones that are running. */
async function withoutContinued(db: Db, ticks: readonly Tick[]): Promise<ConnectionRow[]> {
  const scheduled = ticks.filter((tick) => tick.scheduled);
  const continuous = scheduled.filter((tick) => tick.continues).map(({ connection }) => connection.id);
  const running = continuous.length === 0 ? [] : await runningOf(db, continuous);
  return scheduled.map(({ connection }) => connection).filter(({ id }) => !running.includes(id));
}

async function runningOf(db: Db, connection_ids: string[]): Promise<string[]> {
  const live = and(inArray(connectionRuns.connection_id, connection_ids), inArray(connectionRuns.status, LIVE_RUN));
  const rows = await db
    .select({ id: connectionRuns.connection_id })
    .from(connectionRuns)
    .where(and(live, isNull(connectionRuns.custom_run_plan_id)));
  return rows.map(({ id }) => id);
}

/** A tick that may not start a run leaves a skipped one with the reason. */
async function startOrSkip(deps: Deps, db: Db, due: readonly ConnectionRow[]): Promise<void> {
  if (due.length === 0) return;
  const accounts = await readAccountPlans(
    db,
    due.map(({ account_id }) => account_id),
    { now: deps.now() },
  );
  const started = await startRuns(
    db,
    deps,
    due.map((connection) => ({
      connection,
      account: accounts.get(connection.account_id)!,
      trigger_type: 'schedule',
      actor: SCHEDULE,
    })),
  );
  const skipped = started.flatMap((refused, index) =>
    refused instanceof StartRefused ? [{ connection: due[index]!, refused }] : [],
  );
  await skipRuns(db, skipped);
}
