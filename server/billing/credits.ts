import { and, between, eq, inArray, sql } from 'drizzle-orm';
import {
  accountConnectors,
  type AccountRow,
  type ConnectionRow,
  connectionRuns,
  streamRuns,
  usageLedger,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { CREDIT_RATES, type Plan } from '../pipeline/billing-plans.ts';
import { LIVE_RUN } from '../pipeline/run-states.ts';
import type { DaySpan } from '../platform/utc-days.ts';
import { type AccountPlan, creditsCeiling, isUnpaid, readAccountPlan } from './account-plan.ts';

/** Credits that an account used on these days. */
export async function creditsUsed(db: Db, account_id: string, days: DaySpan): Promise<number> {
  const [sum] = await db
    .select({ used: sql<string>`coalesce(sum(${usageLedger.credits_used}), 0)` })
    .from(usageLedger)
    .where(and(eq(usageLedger.account_id, account_id), between(usageLedger.day, days.start, days.end)));
  return Number(sum?.used ?? 0);
}

/** Credits left in the current billing period; null if the plan never runs out. */
export async function creditsRemaining(db: Db, { account, plan, period }: AccountPlan): Promise<number | null> {
  if (plan.credits_included === null) return null;
  return Math.max(0, plan.credits_included - (await creditsUsed(db, account.id, period)));
}

/** Why the billing plan or the operator does not let the account move data. */
export type MovementRefusal =
  | { code: 'account_suspended'; plan: Plan }
  | AccountLimitRefusal
  | { code: 'payment_required'; payment_status: string; plan: Plan }
  /** `current_value` is the sum of the credits used and `held`, those that live runs have reserved. */
  | { code: 'credits_exhausted'; limit_value: number; current_value: number; held: number; plan: Plan };

/** A limit that the operator set. `is_momentary`: live runs count towards it, so it is free again when one ends. */
interface AccountLimitRefusal {
  code: 'account_limit_reached';
  limit: 'max_rows_per_period' | 'max_live_runs';
  limit_value: number;
  current_value: number;
  plan: Plan;
}

/** Whether a start may succeed once a live run has ended. */
export const isMomentary = (refusal: MovementRefusal): boolean =>
  (refusal.code === 'credits_exhausted' && refusal.held > 0) ||
  (refusal.code === 'account_limit_reached' && refusal.limit === 'max_live_runs');

/**
 * The account plan that decides whether a run may start. Where credits or the operator's limits can run out, the account is locked and read
 * again, so that each start sees what the starts before it have reserved.
 */
export async function holdCredits(db: Db, seen: AccountPlan, now: Date): Promise<AccountPlan> {
  const { account, plan } = seen;
  if (isUnpaid(account) || (creditsCeiling(plan) === null && !isLimited(account))) return seen;
  return readAccountPlan(db, seen.account.id, { now, lock: true });
}

const isLimited = ({ max_rows_per_period, max_live_runs }: AccountRow) =>
  max_rows_per_period !== null || max_live_runs !== null;

/** Why no run of the account may start now; null if one may. `held` comes from `holdCredits`. */
export async function movementRefusal(db: Db, held: AccountPlan): Promise<MovementRefusal | null> {
  const { account, plan } = held;
  if (account.suspended_at !== null) return { code: 'account_suspended', plan };
  if (isUnpaid(account)) return { code: 'payment_required', payment_status: account.payment_status, plan };
  const limited = await limitRefusal(db, held);
  if (limited) return limited;
  const limit_value = creditsCeiling(plan);
  if (limit_value === null) return null;
  return exhausted(plan, limit_value, await creditsTaken(db, held));
}

async function limitRefusal(db: Db, { account, plan, period }: AccountPlan): Promise<AccountLimitRefusal | null> {
  const refused = async (limit: AccountLimitRefusal['limit'], count: () => Promise<number>) => {
    const limit_value = account[limit];
    if (limit_value === null) return null;
    const current_value = await count();
    if (current_value < limit_value) return null;
    return { code: 'account_limit_reached' as const, limit, limit_value, current_value, plan };
  };
  return (
    (await refused('max_rows_per_period', () => rowsLoaded(db, account.id, period))) ??
    (await refused('max_live_runs', () => movingRuns(db, account.id)))
  );
}

/** Rows that an account loaded on these days. */
export async function rowsLoaded(db: Db, account_id: string, days: DaySpan): Promise<number> {
  const [sum] = await db
    .select({ rows: sql<string>`coalesce(sum(${usageLedger.rows_free} + ${usageLedger.rows_paid}), 0)` })
    .from(usageLedger)
    .where(and(eq(usageLedger.account_id, account_id), between(usageLedger.day, days.start, days.end)));
  return Number(sum?.rows ?? 0);
}

/** Live runs, but for chunks that wait for their turn. */
async function movingRuns(db: Db, account_id: string): Promise<number> {
  const dispatched = sql`exists (select from ${streamRuns} where ${streamRuns.connection_run_id} = ${connectionRuns.id}
    and ${streamRuns.dispatched_at} is not null)`;
  return db.$count(
    connectionRuns,
    and(
      eq(connectionRuns.account_id, account_id),
      inArray(connectionRuns.status, LIVE_RUN),
      sql`(${connectionRuns.custom_run_plan_id} is null or ${dispatched})`,
    ),
  );
}

function exhausted(plan: Plan, limit_value: number, { used, reserved }: CreditsTaken): MovementRefusal | null {
  if (used + reserved < limit_value) return null;
  return { code: 'credits_exhausted', limit_value, current_value: used + reserved, held: reserved, plan };
}

interface CreditsTaken {
  used: number;
  /** What live runs have reserved beyond what they have used. */
  reserved: number;
}

async function creditsTaken(db: Db, { account, period }: AccountPlan): Promise<CreditsTaken> {
  const [live] = await db
    .select({
      reserved: sql<string>`coalesce(sum(greatest(0, ${connectionRuns.credits_reserved} - ${connectionRuns.credits_used})), 0)`,
    })
    .from(connectionRuns)
    .where(and(eq(connectionRuns.account_id, account.id), inArray(connectionRuns.status, LIVE_RUN)));
  return { used: await creditsUsed(db, account.id, period), reserved: Number(live?.reserved ?? 0) };
}

/** Credits for a run to hold until it ends, or why the run may not start. */
export type Reservation = { refusal: MovementRefusal } | { refusal: null; credits: number };

/**
 * Reserves the average cost of the connection's last runs, or all remaining credits if there were none. Reserves nothing
 * where the plan cannot run out or the source is free. `held` comes from `holdCredits` in the same transaction.
 */
export async function reserveCredits(db: Db, held: AccountPlan, connection: ConnectionRow): Promise<Reservation> {
  const refusal = await movementRefusal(db, held);
  if (refusal) return { refusal };
  const ceiling = creditsCeiling(held.plan);
  if (ceiling === null) return { refusal, credits: 0 };
  const taken = await creditsTaken(db, held);
  if (await isFree(db, connection.source_id)) return { refusal, credits: 0 };
  const left = ceiling - taken.used - taken.reserved;
  const rows = await usualRows(db, connection.id);
  if (rows === null) return { refusal, credits: left };
  return { refusal, credits: Math.min(left, Math.max(1, Math.ceil(rows * CREDIT_RATES[connection.kind]))) };
}

async function isFree(db: Db, source_id: string): Promise<boolean> {
  const [source] = await db
    .select({ free: sql<boolean>`coalesce(clock_timestamp() < ${accountConnectors.free_until}, true)` })
    .from(accountConnectors)
    .where(eq(accountConnectors.id, source_id));
  return source?.free ?? false;
}

const LAST_RUNS = 5;

async function usualRows(db: Db, connection_id: string): Promise<number | null> {
  const [mean] = await db.execute<{ rows: number | null }>(sql`
    select avg(loaded)::float8 as rows from (
      select (select coalesce(sum(s.rows_loaded), 0) from stream_runs s where s.connection_run_id = r.id) as loaded
      from connection_runs r where r.connection_id = ${connection_id} and r.status = 'succeeded'
      order by r.created_at desc, r.id desc limit ${LAST_RUNS}) last`);
  return mean?.rows ?? null;
}
