import { type NOTICED_LIMITS, planLimitNotices } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emitLimitReached, emitLimitWarning } from '../events/billing-events.ts';
import type { AccountPlan } from './account-plan.ts';

/** The share of a limit at which the warning is sent. */
export const WARNING_PERCENT = 80;

/**
 * Emits an event when a limit is reached (100 %) or almost reached (80 %), once per limit and billing period, in the
 * transaction that used it up. `limit` is a key of the plan, or `credits_included`.
 */
export async function noticeLimit(
  db: Db,
  { account, plan, period }: AccountPlan,
  usage: { limit: (typeof NOTICED_LIMITS)[number]; used: number; limit_value: number },
): Promise<void> {
  const percent = percentOf(usage.used, usage.limit_value);
  if (percent < WARNING_PERCENT) return;
  const threshold = percent >= 100 ? 100 : WARNING_PERCENT;
  const notice = { account_id: account.id, limit: usage.limit, period_start: period.start, threshold };
  const stored = await db.insert(planLimitNotices).values(notice).onConflictDoNothing().returning();
  if (stored.length === 0) return;
  const report = { account, plan, ...usage, percent };
  await (threshold < 100 ? emitLimitWarning(db, report) : emitLimitReached(db, report));
}

/** Whole percent, rounded down: 100 means that the limit is reached. */
export const percentOf = (used: number, limit: number) => (limit === 0 ? 100 : Math.floor((used / limit) * 100));
