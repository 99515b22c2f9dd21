import { and, between, eq, sql } from 'drizzle-orm';
import { accounts, usageLedger } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Plan, planOf } from '../lib/plans.ts';
import { billingPeriod, type DaySpan, utcDay } from '../lib/utc-days.ts';

/** What an account may, at this moment. */
export interface AccountPlan {
  account: typeof accounts.$inferSelect;
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

/** What the plan holds against moving data. */
export type MovementRefusal =
  | { code: 'payment_required'; payment_status: string; plan: Plan }
  | { code: 'credits_exhausted'; limit_value: number; current_value: number; plan: Plan };

/** Why no data of the account may be moved now; null when it may. For runs by hand, by schedule and by automation. */
export async function movementRefusal(db: Db, account_id: string, now: Date): Promise<MovementRefusal | null> {
  const known = await readAccountPlan(db, account_id, { now });
  const { account, plan, period } = known;
  const { payment_status } = account;
  if (payment_status === 'overdue' || payment_status === 'ended')
    return { code: 'payment_required', payment_status, plan };
  if (plan.credits_included === null || plan.overage_allowed) return null;
  const current_value = await creditsUsed(db, account_id, period);
  if (current_value < plan.credits_included) return null;
  return { code: 'credits_exhausted', limit_value: plan.credits_included, current_value, plan };
}
