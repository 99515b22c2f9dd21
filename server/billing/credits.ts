import { and, between, eq, inArray, sql } from 'drizzle-orm';
import {
  accountConnectors,
  type AccountRow,
  accounts,
  type ConnectionRow,
  connectionRuns,
  usageLedger,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { CREDIT_RATES, type Plan, planOf } from '../pipeline/billing-plans.ts';
import { billingPeriod, type DaySpan, utcDay } from '../platform/utc-days.ts';
import { LIVE_RUN } from '../pipeline/run-states.ts';

/** What an account may, at this moment. */
export interface AccountPlan {
  account: AccountRow;
  plan: Plan;
  /** The billing period of today, UTC days. */
  period: DaySpan;
}

/**
 * `lock`: holds the account until the transaction ends, so that checks of its limits come one after the other. Not the
 * lock of a key, which would also hold up everybody who only refers to the account.
 */
export async function readAccountPlan(
  db: Db,
  account_id: string,
  options: { now: Date; lock?: boolean },
): Promise<AccountPlan> {
  const query = db.select().from(accounts).where(eq(accounts.id, account_id));
  const [account] = await (options.lock ? query.for('no key update') : query);
  if (!account) throw new Error(`there is no account ${account_id}`);
  const period = billingPeriod(account.billing_anchor, utcDay(options.now));
  return { account, plan: planOf(account.plan_id), period };
}

/** Credits that an account used on these days. */
export async function creditsUsed(db: Db, account_id: string, days: DaySpan): Promise<number> {
  const [sum] = await db
    .select({ used: sql<string>`coalesce(sum(${usageLedger.credits_used}), 0)` })
    .from(usageLedger)
    .where(and(eq(usageLedger.account_id, account_id), between(usageLedger.day, days.start, days.end)));
  return Number(sum?.used ?? 0);
}

/** Credits of the current billing period that are left; null: the plan never runs out of them. */
export async function creditsRemaining(db: Db, { account, plan, period }: AccountPlan): Promise<number | null> {
  if (plan.credits_included === null) return null;
  return Math.max(0, plan.credits_included - (await creditsUsed(db, account.id, period)));
}

/** The credits after which nothing moves any more; null: the plan never stops for them. */
export const creditsCeiling = (plan: Plan): number | null => (plan.overage_allowed ? null : plan.credits_included);

/** What the plan holds against moving data. */
export type MovementRefusal =
  | { code: 'payment_required'; payment_status: string; plan: Plan }
  /** `current_value`: used, and held by the runs under way, which are `held` of it. */
  | { code: 'credits_exhausted'; limit_value: number; current_value: number; held: number; plan: Plan };

/**
 * Why no data of the account may be moved now; null when it may. For runs by hand, by schedule and by automation, in
 * the transaction that starts the run: where credits can run out it holds the account, so that each start sees what
 * the one before it has reserved.
 */
export async function movementRefusal(db: Db, account_id: string, now: Date): Promise<MovementRefusal | null> {
  const seen = await readAccountPlan(db, account_id, { now });
  if (isUnpaid(seen.account)) return unpaid(seen);
  if (creditsCeiling(seen.plan) === null) return null;
  const known = await readAccountPlan(db, account_id, { now, lock: true });
  if (isUnpaid(known.account)) return unpaid(known);
  const { plan } = known;
  const limit_value = creditsCeiling(plan);
  if (limit_value === null) return null;
  const { used, held } = await creditsTaken(db, known);
  if (used + held < limit_value) return null;
  return { code: 'credits_exhausted', limit_value, current_value: used + held, held, plan };
}

/** Whether nothing moves until a payment has come. */
export const isUnpaid = ({ payment_status }: AccountPlan['account']) =>
  payment_status === 'overdue' || payment_status === 'ended';

const unpaid = ({ account, plan }: AccountPlan): MovementRefusal => ({
  code: 'payment_required',
  payment_status: account.payment_status,
  plan,
});

/** `held`: what live runs have reserved beyond what they have used. */
async function creditsTaken(db: Db, { account, period }: AccountPlan): Promise<{ used: number; held: number }> {
  const [live] = await db
    .select({
      held: sql<string>`coalesce(sum(greatest(0, ${connectionRuns.credits_reserved} - ${connectionRuns.credits_used})), 0)`,
    })
    .from(connectionRuns)
    .where(and(eq(connectionRuns.account_id, account.id), inArray(connectionRuns.status, LIVE_RUN)));
  return { used: await creditsUsed(db, account.id, period), held: Number(live?.held ?? 0) };
}

const LAST_RUNS = 5;

/**
 * Credits for a new run to hold, after `movementRefusal` in the same transaction: as many as its connection's last runs
 * have cost on average, or all that is left when there were none. 0 where the plan cannot run out, or the source is free.
 */
export async function creditsToReserve(
  db: Db,
  connection: Pick<ConnectionRow, 'id' | 'account_id' | 'kind' | 'source_id'>,
  now: Date,
): Promise<number> {
  const known = await readAccountPlan(db, connection.account_id, { now });
  const ceiling = creditsCeiling(known.plan);
  if (ceiling === null || (await isFree(db, connection.source_id))) return 0;
  const { used, held } = await creditsTaken(db, known);
  const left = Math.max(1, ceiling - used - held);
  const rows = await usualRows(db, connection.id);
  if (rows === null) return left;
  return Math.min(left, Math.max(1, Math.ceil(rows * CREDIT_RATES[connection.kind])));
}

async function isFree(db: Db, source_id: string): Promise<boolean> {
  const [source] = await db
    .select({ free: sql<boolean>`coalesce(clock_timestamp() < ${accountConnectors.free_until}, true)` })
    .from(accountConnectors)
    .where(eq(accountConnectors.id, source_id));
  return source?.free ?? false;
}

async function usualRows(db: Db, connection_id: string): Promise<number | null> {
  const [mean] = await db.execute<{ rows: number | null }>(sql`
    select avg(loaded)::float8 as rows from (
      select (select coalesce(sum(s.rows_loaded), 0) from stream_runs s where s.connection_run_id = r.id) as loaded
      from connection_runs r where r.connection_id = ${connection_id} and r.status = 'succeeded'
      order by r.created_at desc, r.id desc limit ${LAST_RUNS}) last`);
  return mean?.rows ?? null;
}
