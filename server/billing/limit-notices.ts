import { planLimitNotices } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emit, SYSTEM_ACTOR } from '../events/emit.ts';
import type { AccountPlan } from './account-plan.ts';

/** From here on a limit is nearly reached. */
export const WARNING_PERCENT = 80;

/**
 * Tells of a limit that is reached (100 %) or nearly so (80 %): each event once a billing period and limit, in the
 * transaction of what used it up. `limit` as in the plan, or `credits_included`.
 */
export async function noticeLimit(
  db: Db,
  { account, plan, period }: AccountPlan,
  usage: { limit: string; used: number; limit_value: number },
): Promise<void> {
  const percent = percentOf(usage.used, usage.limit_value);
  if (percent < WARNING_PERCENT) return;
  const threshold = percent >= 100 ? 100 : WARNING_PERCENT;
  const notice = { account_id: account.id, limit: usage.limit, period_start: period.start, threshold };
  const told = await db.insert(planLimitNotices).values(notice).onConflictDoNothing().returning();
  if (told.length === 0) return;
  const about = {
    account_id: account.id,
    actor: SYSTEM_ACTOR,
    resource: { type: 'account', id: account.id, name: account.name },
    payload: { ...usage, percent, plan_name: plan.name },
  };
  const used = `${usage.used} of ${usage.limit_value} (${usage.limit}, plan ${plan.name})`;
  if (threshold < 100)
    return emit(db, { ...about, event: 'plan_limit_warning', summary: `A plan limit is near: ${used}` });
  await emit(db, { ...about, event: 'plan_limit_reached', summary: `A plan limit is reached: ${used}` });
  if (usage.limit !== 'credits_included') return;
  await emit(db, {
    ...about,
    event: 'credits_exhausted',
    summary: `The credits of the billing period are used up: ${used}`,
  });
}

/** Whole percent, rounded down, so that 100 means that the limit is really reached. */
export const percentOf = (used: number, limit: number) => (limit === 0 ? 100 : Math.floor((used / limit) * 100));
