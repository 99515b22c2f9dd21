import { and, eq, ne } from 'drizzle-orm';
import { connections } from '../../../db/schema/index.ts';
import { type AccountPlan, creditsUsed, movementRefusal, readAccountPlan } from '../../billing/credits.ts';
import { countOf, nounOf } from '../../billing/usage-counts.ts';
import { noticeLimit } from '../../billing/limit-notices.ts';
import { type Schedule, shortestGapMinutes } from '../../pipeline/schedule.ts';
import { type ApiError, paymentRequired } from '../../platform/errors.ts';
import type { CountedLimit, Plan, PlanFeature } from '../../pipeline/billing-plans.ts';
import { addDays, billingPeriod, type DaySpan, utcDay } from '../../platform/utc-days.ts';
import type { Ctx } from '../../api/procedure.ts';
import { daysOf, type UsageRange } from '../../api/usage-range.ts';

/**
 * Before one more of what `limit` counts is made or enabled, in the transaction that does it: makes all such checks of
 * the account wait for one another. `range` as the create operations take it: the credits are compared for its days and
 * for the current billing period, and the stricter comparison wins.
 * @throws ApiError 402 `plan_limit_reached`, `credits_exhausted`, `payment_required`; 400 for the range.
 */
export async function checkLimit(ctx: Ctx, limit: CountedLimit, range?: UsageRange): Promise<void> {
  const { account_id } = ctx.principal;
  const now = ctx.deps.now();
  const seen = await readAccountPlan(ctx.db, account_id, { now });
  if (range) daysOf(range, { today: utcDay(now), anchor: seen.account.billing_anchor });
  refuseUnpaid(seen, limit);
  if (seen.plan.limits[limit] === null && seen.plan.credits_included === null) return;
  const known = await readAccountPlan(ctx.db, account_id, { now, lock: true });
  const limit_value = known.plan.limits[limit];
  if (limit_value !== null) {
    const current_value = await countOf(ctx.db, account_id, limit);
    if (current_value >= limit_value) throw limitReached(known.plan, limit, { limit_value, current_value });
    await noticeLimit(ctx.db, known, { limit, used: current_value + 1, limit_value });
  }
  if (range)
    await checkCredits(ctx, known, daysOf(range, { today: utcDay(now), anchor: known.account.billing_anchor }));
}

const limitReached = (plan: Plan, limit: CountedLimit, values: { limit_value: number; current_value: number }) =>
  paymentRequired(
    'plan_limit_reached',
    `Plan limit reached: ${values.current_value} of ${values.limit_value} ${nounOf(limit)}`,
    { limit, ...values, plan: plan.id },
  );

/** In grace nothing new is attached; an account that has ended only reads. */
function refuseUnpaid({ account, plan }: AccountPlan, limit: CountedLimit): void {
  const { payment_status } = account;
  const attaches = limit === 'max_sources' || limit === 'max_destinations';
  const refused =
    payment_status === 'ended' || (attaches && (payment_status === 'grace' || payment_status === 'overdue'));
  if (refused) throw unpaid(plan, payment_status);
}

const unpaid = (plan: Plan, payment_status: string): ApiError =>
  paymentRequired('payment_required', `A payment of the account is missing (${payment_status})`, {
    limit: 'payment',
    limit_value: null,
    current_value: null,
    payment_status,
    plan: plan.id,
  });

async function checkCredits(ctx: Ctx, { account, plan, period }: AccountPlan, days: DaySpan): Promise<void> {
  if (plan.credits_included === null || plan.overage_allowed) return;
  const asked = plan.credits_included * periodsTouched(account.billing_anchor, days);
  for (const [window, limit_value] of [
    [period, plan.credits_included],
    [days, asked],
  ] as const) {
    const current_value = await creditsUsed(ctx.db, account.id, window);
    if (current_value >= limit_value) throw creditsExhausted(plan, { limit_value, current_value });
  }
}

/** `held`: how many of them are not used but kept for the runs under way. */
function creditsExhausted(plan: Plan, values: { limit_value: number; current_value: number; held?: number }): ApiError {
  const { limit_value, current_value, held = 0 } = values;
  const message = `The plan's credits are used up: ${current_value} of ${limit_value}`;
  return paymentRequired(
    'credits_exhausted',
    held > 0 ? `${message}, ${held} of them held by runs under way` : message,
    {
      limit: 'credits_included',
      limit_value,
      current_value,
      plan: plan.id,
    },
  );
}

/** Each billing period has its own credits. */
function periodsTouched(anchor: string, days: DaySpan): number {
  let touched = 0;
  for (let day = days.start; day <= days.end; day = addDays(billingPeriod(anchor, day).end, 1)) touched += 1;
  return touched;
}

/**
 * Before a connection becomes active again, in the transaction that makes it so.
 * @throws ApiError 402 `plan_limit_reached`, `payment_required`.
 */
export async function checkActivation(ctx: Ctx, connection_id: string): Promise<void> {
  const { account_id } = ctx.principal;
  const seen = await readAccountPlan(ctx.db, account_id, { now: ctx.deps.now() });
  const { payment_status } = seen.account;
  if (payment_status === 'overdue' || payment_status === 'ended') throw unpaid(seen.plan, payment_status);
  if (seen.plan.limits.max_connections === null) return;
  const { plan } = await readAccountPlan(ctx.db, account_id, { now: ctx.deps.now(), lock: true });
  const limit_value = plan.limits.max_connections;
  if (limit_value === null) return;
  const others = and(eq(connections.status, 'active'), ne(connections.id, connection_id));
  const current_value = await countOf(ctx.db, account_id, 'max_connections', others);
  if (current_value >= limit_value) throw limitReached(plan, 'max_connections', { limit_value, current_value });
}

/** @throws ApiError 402 `schedule_below_plan_minimum` when it fires more often than the plan allows. */
export async function checkPlanSchedule(ctx: Ctx, schedule: Schedule): Promise<void> {
  const now = ctx.deps.now();
  const current_value = shortestGapMinutes(schedule, now);
  if (current_value === null) return;
  const { plan } = await readAccountPlan(ctx.db, ctx.principal.account_id, { now });
  const limit_value = plan.limits.min_schedule_interval_minutes;
  if (limit_value === null || current_value >= limit_value) return;
  throw paymentRequired('schedule_below_plan_minimum', `The plan allows a run every ${limit_value} minutes at most`, {
    limit: 'min_schedule_interval_minutes',
    limit_value,
    current_value,
    plan: plan.id,
  });
}

/** @throws ApiError 402 `feature_not_in_plan` */
export async function checkFeature(ctx: Ctx, feature: PlanFeature): Promise<void> {
  const { plan } = await readAccountPlan(ctx.db, ctx.principal.account_id, { now: ctx.deps.now() });
  if (plan.features.includes(feature)) return;
  throw paymentRequired('feature_not_in_plan', `The plan ${plan.name} does not include ${feature}`, {
    limit: feature,
    limit_value: null,
    current_value: null,
    plan: plan.id,
  });
}

/** @throws ApiError 402 `plan_limit_reached` when a custom run is split into more chunks than the plan allows. */
export async function checkChunks(ctx: Ctx, chunks: number): Promise<void> {
  const { plan } = await readAccountPlan(ctx.db, ctx.principal.account_id, { now: ctx.deps.now() });
  const limit_value = plan.limits.max_custom_run_chunks;
  if (limit_value === null || chunks <= limit_value) return;
  throw paymentRequired('plan_limit_reached', `Plan limit reached: ${chunks} chunks, the plan allows ${limit_value}`, {
    limit: 'max_custom_run_chunks',
    limit_value,
    current_value: chunks,
    plan: plan.id,
  });
}

/** Before a run starts. @throws ApiError 402 `credits_exhausted`, `payment_required`. */
export async function checkMovement(ctx: Ctx): Promise<void> {
  const refusal = await movementRefusal(ctx.db, ctx.principal.account_id, ctx.deps.now());
  if (refusal?.code === 'payment_required') throw unpaid(refusal.plan, refusal.payment_status);
  if (refusal) throw creditsExhausted(refusal.plan, refusal);
}
