import { daysOf, type UsageRange } from '../../api/usage-range.ts';
import type { Ctx } from '../../api/procedure.ts';
import { type AccountPlan, readAccountPlan } from '../../billing/account-plan.ts';
import { requireRoom } from '../../billing/limits.ts';
import type { CountedLimit } from '../../pipeline/billing-plans.ts';
import { utcDay } from '../../platform/utc-days.ts';

/** The caller's account with its billing plan, for the limit checks. Read it once per request. */
export const accountPlan = (ctx: Ctx): Promise<AccountPlan> =>
  readAccountPlan(ctx.db, ctx.principal.account_id, { now: ctx.deps.now() });

/**
 * Checks `limit` before one more object is created or enabled. `range` is that of the create operations.
 * @throws ApiError 402, see `requireRoom`; 400 for the range.
 */
export async function checkLimit(
  ctx: Ctx,
  account: AccountPlan,
  { limit, range }: { limit: CountedLimit; range?: UsageRange },
): Promise<void> {
  const now = ctx.deps.now();
  const days = range ? daysOf(range, { today: utcDay(now), anchor: account.account.billing_anchor }) : null;
  await requireRoom(ctx.db, account, { limit, days, now });
}
