import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import { connectionRuns, customRunPlans } from '../../../db/schema/index.ts';
import { notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import { decisionOf } from './custom-plan.ts';
import { CustomRunPlannerDecision } from './custom-schema.ts';
import { viewing } from './list.ts';
import { presentRun } from './present.ts';
import { selectRuns } from './query.ts';
import { ConnectionRunSchema } from './schema.ts';

export const PlanProgress = z.object({
  plan: CustomRunPlannerDecision,
  is_launched: z.boolean(),
  runs: z.array(ConnectionRunSchema).meta({ description: 'The runs of all chunks, with reruns, newest first.' }),
});

/** A plan and its runs. @throws ApiError 404. */
export async function readPlan(ctx: Ctx, { plan_id }: { plan_id: string }): Promise<z.infer<typeof PlanProgress>> {
  const mine = eq(customRunPlans.account_id, ctx.principal.account_id);
  const [plan] = isId(plan_id)
    ? await ctx.db
        .select()
        .from(customRunPlans)
        .where(and(mine, eq(customRunPlans.id, plan_id)))
    : [];
  if (!plan) throw notFound('Plan');
  // The condition on the connection allows an index scan.
  const ofPlan = and(
    eq(connectionRuns.connection_id, plan.connection_id),
    eq(connectionRuns.custom_run_plan_id, plan.id),
  );
  const runs = await selectRuns(ctx.db, ofPlan, { offset: 0 });
  return {
    plan: decisionOf(plan),
    is_launched: plan.launch_response !== null,
    runs: runs.map((run) => presentRun(run, viewing(ctx))),
  };
}
