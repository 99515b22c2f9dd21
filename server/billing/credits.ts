import { and, between, eq, inArray, sql } from 'drizzle-orm';
import { accountConnectors, type ConnectionRow, connectionRuns, usageLedger } from '../../db/schema/index.ts';
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

/** Why the billing plan does not let the account move data. */
export type MovementRefusal =
  | { code: 'payment_required'; payment_status: string; plan: Plan }
  /** `current_value` is the sum of the credits used and `held`, those that live runs have reserved. */
  | { code: 'credits_exhausted'; limit_value: number; current_value: number; held: number; plan: Plan };

/**
 * The account plan that decides whether a run may start. Where credits can run out, the account is locked and read
 * again, so that each start sees what the starts before it have reserved.
 */
export async function holdCredits(db: Db, seen: AccountPlan, now: Date): Promise<AccountPlan> {
  if (isUnpaid(seen.account) || creditsCeiling(seen.plan) === null) return seen;
  return readAccountPlan(db, seen.account.id, { now, lock: true });
}

/** Why no run of the account may start now; null if one may. `held` comes from `holdCredits`. */
export async function movementRefusal(db: Db, held: AccountPlan): Promise<MovementRefusal | null> {
  const { account, plan } = held;
  if (isUnpaid(account)) return { code: 'payment_required', payment_status: account.payment_status, plan };
  const limit_value = creditsCeiling(plan);
  if (limit_value === null) return null;
  return exhausted(plan, limit_value, await creditsTaken(db, held));
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
  const ceiling = creditsCeiling(held.plan);
  if (ceiling === null || isUnpaid(held.account)) {
    const refusal = await movementRefusal(db, held);
    return refusal ? { refusal } : { refusal, credits: 0 };
  }
  const taken = await creditsTaken(db, held);
  const refusal = exhausted(held.plan, ceiling, taken);
  if (refusal) return { refusal };
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
