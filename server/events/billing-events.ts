import type { AccountRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Plan } from '../pipeline/billing-plans.ts';
import { type Actor, emit, type NewEvent, SYSTEM_ACTOR } from './emit.ts';

interface LimitReport {
  account: AccountRow;
  plan: Plan;
  /** As in the plan, or `credits_included`. */
  limit: string;
  used: number;
  /** Null: unlimited. */
  limit_value: number | null;
  percent: number;
}

function limitEvent(event: NewEvent['event'], sentence: string, { account, plan, ...usage }: LimitReport): NewEvent {
  const used = `${usage.used} of ${usage.limit_value ?? 'unlimited'} (${usage.limit}, plan ${plan.name})`;
  return {
    account_id: account.id,
    event,
    actor: SYSTEM_ACTOR,
    resource: { type: 'account', id: account.id, name: account.name },
    summary: `${sentence}: ${used}`,
    payload: { ...usage, plan_name: plan.name },
  };
}

export const emitLimitWarning = (db: Db, report: LimitReport): Promise<void> =>
  emit(db, limitEvent('plan_limit_warning', 'Plan limit almost reached', report));

export async function emitLimitReached(db: Db, report: LimitReport): Promise<void> {
  await emit(db, limitEvent('plan_limit_reached', 'Plan limit reached', report));
  if (report.limit !== 'credits_included') return;
  await emit(db, limitEvent('credits_exhausted', 'Credits of the billing period used up', report));
}

export const emitLimitCleared = (db: Db, report: LimitReport): Promise<void> =>
  emit(db, limitEvent('plan_limit_cleared', 'Usage is well below a plan limit again', report));

export async function emitPlanChanged(
  db: Db,
  changed: { actor: Actor; account: AccountRow; plan: Plan; previous: Plan },
): Promise<void> {
  const { actor, account, plan, previous } = changed;
  await emit(db, {
    account_id: account.id,
    event: 'plan_changed',
    actor,
    resource: { type: 'account', id: account.id, name: account.name },
    summary: `Plan changed from ${previous.name} to ${plan.name}`,
    payload: { plan_name: plan.name, previous_plan_name: previous.name, payment_status: account.payment_status },
  });
}
