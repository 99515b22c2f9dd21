import { emitPlanEvent } from '../../events/custom-run-events.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { findConnection } from '../access/connection.ts';
import { accountPlan } from '../access/account-plan.ts';
import { requireFeature } from '../../billing/limits.ts';
import { decisionOf, storePlan } from './custom-plan.ts';
import type { CustomRunParameters, CustomRunPlannerDecision } from './custom-schema.ts';

/**
 * Plans a custom run. The plan can be launched for an hour.
 * @throws ApiError 400 for an invalid window or unknown streams; 402 `feature_not_in_plan`.
 */
export async function previewCustomRun(
  ctx: Ctx,
  { connection_id, parameters }: { connection_id: string; parameters: CustomRunParameters },
): Promise<CustomRunPlannerDecision> {
  const connection = await findConnection(ctx, connection_id);
  const account = await accountPlan(ctx);
  const plan = await storePlan(ctx, connection, { parameters, account });
  requireFeature(account, 'custom_runs');
  await emitPlanEvent(ctx.db, { event: 'custom_run_planned', plan, actor: actorOf(ctx.principal) });
  return decisionOf(plan);
}
