import { eq } from 'drizzle-orm';
import { type AccountRow, accounts } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Plan, planOf } from '../pipeline/billing-plans.ts';
import { billingPeriod, type DaySpan, utcDay } from '../platform/utc-days.ts';

/** An account with its billing plan. Read once per request and handed on. */
export interface AccountPlan {
  account: AccountRow;
  plan: Plan;
  /** The current billing period, in UTC days. */
  period: DaySpan;
}

/**
 * `lock` holds the account until the transaction ends, so that checks of its limits run one after the other. The lock
 * does not block inserts that reference the account.
 */
export async function readAccountPlan(
  db: Db,
  account_id: string,
  options: { now: Date; lock?: boolean },
): Promise<AccountPlan> {
  const query = db.select().from(accounts).where(eq(accounts.id, account_id));
  const [account] = await (options.lock ? query.for('no key update') : query);
  if (!account) throw new Error(`account ${account_id} does not exist`);
  const period = billingPeriod(account.billing_anchor, utcDay(options.now));
  return { account, plan: planOf(account.plan_id), period };
}

/** Whether the account moves no data until a payment arrives. */
export const isUnpaid = ({ payment_status }: AccountRow) => payment_status === 'overdue' || payment_status === 'ended';

/** The number of credits at which data stops moving; null if the plan never stops for credits. */
export const creditsCeiling = (plan: Plan): number | null => (plan.overage_allowed ? null : plan.credits_included);
