import { asc, inArray } from 'drizzle-orm';
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
  const found = (await readAccountPlans(db, [account_id], options)).get(account_id);
  if (!found) throw new Error(`account ${account_id} does not exist`);
  return found;
}

/** The same for several accounts, by id. They are locked in one order, so that two batches do not wait for each other. */
export async function readAccountPlans(
  db: Db,
  account_ids: Iterable<string>,
  options: { now: Date; lock?: boolean },
): Promise<Map<string, AccountPlan>> {
  const ids = [...new Set(account_ids)];
  if (ids.length === 0) return new Map();
  const query = db.select().from(accounts).where(inArray(accounts.id, ids)).orderBy(asc(accounts.id));
  const rows = await (options.lock ? query.for('no key update') : query);
  const today = utcDay(options.now);
  return new Map(
    rows.map((account) => [
      account.id,
      { account, plan: planOf(account.plan_id), period: billingPeriod(account.billing_anchor, today) },
    ]),
  );
}

/** Whether the account moves no data until a payment arrives. */
export const isUnpaid = ({ payment_status }: AccountRow) => payment_status === 'overdue' || payment_status === 'ended';

/** The number of credits at which data stops moving; null if the plan never stops for credits. */
export const creditsCeiling = (plan: Plan): number | null => (plan.overage_allowed ? null : plan.credits_included);
