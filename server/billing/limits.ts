import { and, eq, ne } from 'drizzle-orm';
import { type ConnectionRow, connections } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { CountedLimit, Plan, PlanFeature } from '../pipeline/billing-plans.ts';
import { type Schedule, shortestGapMinutes } from '../pipeline/schedule.ts';
import { accountSuspended, type ApiError, paymentRequired } from '../platform/errors.ts';
import { addDays, billingPeriod, type DaySpan } from '../platform/utc-days.ts';
import { type AccountPlan, isUnpaid, readAccountPlan } from './account-plan.ts';
import { creditsUsed, type MovementRefusal } from './credits.ts';
import { noticeLimit } from './limit-notices.ts';
import { countOf, nounOf } from './usage-counts.ts';

/**
 * Before one more of what `limit` counts is created or enabled, in the transaction that does it. Checks of one account
 * wait for one another. With `days`, credits are compared both for these days and for the current billing period.
 * @throws ApiError 402 `plan_limit_reached`, `credits_exhausted`, `payment_required`.
 */
export async function requireRoom(
  db: Db,
  seen: AccountPlan,
  wanted: { limit: CountedLimit; days: DaySpan | null; now: Date },
): Promise<void> {
  const { limit, days, now } = wanted;
  refuseUnpaid(seen, limit);
  if (seen.plan.limits[limit] === null && seen.plan.credits_included === null) return;
  const held = await readAccountPlan(db, seen.account.id, { now, lock: true });
  const limit_value = held.plan.limits[limit];
  if (limit_value !== null) {
    const current_value = await countOf(db, held.account.id, limit);
    if (current_value >= limit_value) throw limitReached(held.plan, limit, { limit_value, current_value });
    await noticeLimit(db, held, { limit, used: current_value + 1, limit_value });
  }
  if (days) await requireCredits(db, held, days);
}

const limitReached = (plan: Plan, limit: CountedLimit, values: { limit_value: number; current_value: number }) =>
  paymentRequired(
    'plan_limit_reached',
    `Plan limit reached: ${values.current_value} of ${values.limit_value} ${nounOf(limit)}`,
    { limit, ...values, plan: plan.id },
  );

/** During the grace period no source or destination is added. An account that has ended is read-only. */
function refuseUnpaid({ account, plan }: AccountPlan, limit: CountedLimit): void {
  const { payment_status } = account;
  const attaches = limit === 'max_sources' || limit === 'max_destinations';
  const refused =
    payment_status === 'ended' || (attaches && (payment_status === 'grace' || payment_status === 'overdue'));
  if (refused) throw unpaid(plan, payment_status);
}

const unpaid = (plan: Plan, payment_status: string): ApiError =>
  paymentRequired('payment_required', `A payment for this account is missing (${payment_status})`, {
    limit: 'payment',
    limit_value: null,
    current_value: null,
    payment_status,
    plan: plan.id,
  });

async function requireCredits(db: Db, { account, plan, period }: AccountPlan, days: DaySpan): Promise<void> {
  if (plan.credits_included === null || plan.overage_allowed) return;
  const included = plan.credits_included * periodsTouched(account.billing_anchor, days);
  for (const [window, limit_value] of [
    [period, plan.credits_included],
    [days, included],
  ] as const) {
    const current_value = await creditsUsed(db, account.id, window);
    if (current_value >= limit_value) throw creditsExhausted(plan, { limit_value, current_value, held: 0 });
  }
}

function creditsExhausted(plan: Plan, values: { limit_value: number; current_value: number; held: number }): ApiError {
  const { limit_value, current_value, held } = values;
  const message = `The credits of the plan are used up: ${current_value} of ${limit_value}`;
  return paymentRequired(
    'credits_exhausted',
    held > 0 ? `${message}, ${held} of them reserved by live runs` : message,
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

/** The 402 of a run that the plan or the operator does not allow, and the 403 of a suspended account. */
export function movementError(refusal: MovementRefusal): ApiError {
  if (refusal.code === 'account_suspended') return accountSuspended();
  if (refusal.code === 'account_limit_reached') return accountLimitReached(refusal);
  if (refusal.code === 'payment_required') return unpaid(refusal.plan, refusal.payment_status);
  return creditsExhausted(refusal.plan, refusal);
}

const LIMIT_NOUNS = {
  max_rows_per_period: 'rows of this billing period',
  max_live_runs: 'runs at the same time',
};

function accountLimitReached(refusal: Extract<MovementRefusal, { code: 'account_limit_reached' }>): ApiError {
  const { limit, limit_value, current_value, plan } = refusal;
  return paymentRequired(
    'account_limit_reached',
    `Account limit reached: ${current_value} of ${limit_value} ${LIMIT_NOUNS[limit]}. Ask the operator of the service`,
    { limit, limit_value, current_value, plan: plan.id },
  );
}

/**
 * Before a connection becomes active again, in the transaction that activates it.
 * @throws ApiError 402 `plan_limit_reached`, `payment_required`.
 */
export async function requireActivation(
  db: Db,
  seen: AccountPlan,
  activated: { connection_id: string; now: Date },
): Promise<void> {
  if (isUnpaid(seen.account)) throw unpaid(seen.plan, seen.account.payment_status);
  if (seen.plan.limits.max_connections === null) return;
  const { account, plan } = await readAccountPlan(db, seen.account.id, { now: activated.now, lock: true });
  const limit_value = plan.limits.max_connections;
  if (limit_value === null) return;
  const others = and(eq(connections.status, 'active'), ne(connections.id, activated.connection_id));
  const current_value = await countOf(db, account.id, 'max_connections', others);
  if (current_value >= limit_value) throw limitReached(plan, 'max_connections', { limit_value, current_value });
}

/** @throws ApiError 402 `schedule_below_plan_minimum` if the schedule runs more often than the plan allows. */
export function requireSchedule({ plan }: AccountPlan, schedule: Schedule, now: Date): void {
  const current_value = shortestGapMinutes(schedule, now);
  const limit_value = plan.limits.min_schedule_interval_minutes;
  if (current_value === null || limit_value === null || current_value >= limit_value) return;
  throw paymentRequired('schedule_below_plan_minimum', `The plan allows one run every ${limit_value} minutes at most`, {
    limit: 'min_schedule_interval_minutes',
    limit_value,
    current_value,
    plan: plan.id,
  });
}

/** @throws ApiError 402 `feature_not_in_plan` */
export function requireFeature({ plan }: AccountPlan, feature: PlanFeature): void {
  if (plan.features.includes(feature)) return;
  throw paymentRequired('feature_not_in_plan', `The plan ${plan.name} does not include ${feature}`, {
    limit: feature,
    limit_value: null,
    current_value: null,
    plan: plan.id,
  });
}

/** @throws ApiError 402 `plan_limit_reached` if a custom run is split into more chunks than the plan allows. */
export function requireChunks({ plan }: AccountPlan, chunks: number): void {
  const limit_value = plan.limits.max_custom_run_chunks;
  if (limit_value === null || chunks <= limit_value) return;
  throw paymentRequired('plan_limit_reached', `Plan limit reached: ${chunks} of ${limit_value} chunks`, {
    limit: 'max_custom_run_chunks',
    limit_value,
    current_value: chunks,
    plan: plan.id,
  });
}

/** The 402 of a locked connection, with the limit that locked it. Only billing can unlock a connection. */
export async function connectionLocked(
  db: Db,
  known: AccountPlan,
  { status_reason }: Pick<ConnectionRow, 'status_reason'>,
): Promise<ApiError> {
  return paymentRequired('connection_locked', 'The connection is locked because of a plan limit', {
    status_reason,
    ...(await lockingLimit(db, known, status_reason)),
    plan: known.plan.id,
  });
}

async function lockingLimit(db: Db, { account, plan, period }: AccountPlan, reason: string | null) {
  if (reason === 'payment_overdue') return { limit: 'payment', limit_value: null, current_value: null };
  if (reason === 'credits_exhausted') {
    const current_value = await creditsUsed(db, account.id, period);
    return { limit: 'credits_included', limit_value: plan.credits_included, current_value };
  }
  const current_value = await countOf(db, account.id, 'max_connections');
  return { limit: 'max_connections', limit_value: plan.limits.max_connections, current_value };
}
