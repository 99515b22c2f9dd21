import { eq } from 'drizzle-orm';
import { accounts, COUNTED_LIMITS } from '../../../db/schema/index.ts';
import { readAccountPlan } from '../../billing/account-plan.ts';
import { clearAccountNotices } from '../../billing/clear-notices.ts';
import { countOf } from '../../billing/usage-counts.ts';
import { applyPlanLocks } from '../../billing/lock-connections.ts';
import { noticeLimit } from '../../billing/limit-notices.ts';
import { emitPlanChanged } from '../../events/billing-events.ts';
import { CREDIT_RATES, type Plan, planOf, PLANS } from '../../pipeline/billing-plans.ts';
import { actorOf, type Ctx, requirePermission } from '../../api/procedure.ts';
import type { ChangePlan, PlanSchema } from './schema.ts';

/** All plans, in the order of `PLANS`. */
export async function listPlans(ctx: Ctx): Promise<PlanSchema[]> {
  const { plan } = await readAccountPlan(ctx.db, ctx.principal.account_id, { now: ctx.deps.now() });
  return PLANS.map((one) => presentPlan(one, plan.id));
}

const presentPlan = (plan: Plan, current: string): PlanSchema => ({
  ...plan,
  slug: plan.id.replaceAll('_', '-'),
  features: [...plan.features],
  is_current: plan.id === current,
  currency: 'USD',
  credit_rates: CREDIT_RATES,
  available_from: null,
  deprecated_at: null,
});

/**
 * Changes the plan of the account. Emits an event for each limit that is now reached or almost reached, and for each that
 * no longer is. Locks connections that the plan does not allow: up to 100 at once, the others follow within seconds.
 */
export async function changePlan(ctx: Ctx, input: ChangePlan): Promise<PlanSchema> {
  requirePermission(ctx, 'users.manage');
  const { account_id } = ctx.principal;
  const now = ctx.deps.now();
  const before = await readAccountPlan(ctx.db, account_id, { now, lock: true });
  await ctx.db.update(accounts).set(input).where(eq(accounts.id, account_id));
  const after = await readAccountPlan(ctx.db, account_id, { now });
  const { account, plan } = after;
  await emitPlanChanged(ctx.db, { actor: actorOf(ctx.principal), account, plan, previous: before.plan });
  for (const limit of COUNTED_LIMITS) {
    const limit_value = after.plan.limits[limit];
    if (limit_value === null) continue;
    await noticeLimit(ctx.db, after, { limit, used: await countOf(ctx.db, account_id, limit), limit_value });
  }
  await clearAccountNotices(ctx.db, account_id, now);
  await applyPlanLocks(ctx.db, account_id, now);
  return presentPlan(planOf(input.plan_id), input.plan_id);
}
