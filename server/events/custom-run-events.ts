import { desc, eq } from 'drizzle-orm';
import { connectionRuns, type CustomRunPlanRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, emit, SYSTEM_ACTOR } from './emit.ts';
import { storedParameters } from '../pipeline/custom-run/parameters.ts';
import type { CustomRunPlan } from '../pipeline/custom-run/plan.ts';
import { connectionFacts } from './run-events.ts';

const SENTENCES = {
  custom_run_planned: 'Custom run planned',
  custom_run_launched: 'Custom run launched',
  custom_run_completed: 'Custom run ended',
};

/** Emits an event about a custom-run plan, with the variables that rules may use. */
export async function emitPlanEvent(
  db: Db,
  input: { event: keyof typeof SENTENCES; plan: CustomRunPlanRow; actor: Actor; failed_chunks?: number },
): Promise<void> {
  const { event, plan, actor } = input;
  const facts = await connectionFacts(db, plan.connection_id);
  const parameters = storedParameters(plan.parameters);
  const { total_chunks } = plan.decision as unknown as CustomRunPlan;
  await emit(db, {
    account_id: plan.account_id,
    event,
    actor,
    resource: { type: 'custom_run_plan', id: plan.id, name: facts.connection_name },
    summary: `${SENTENCES[event]} (${facts.connection_name})`,
    connection_id: plan.connection_id,
    payload: {
      ...facts,
      plan_id: plan.id,
      total_chunks,
      failed_chunks: input.failed_chunks ?? null,
      start_date: parameters.start_date,
      end_date: parameters.end_date,
    },
  });
}

/** Counts the chunks whose last run failed, in whole or in part. */
export async function emitPlanCompleted(db: Db, plan: CustomRunPlanRow): Promise<void> {
  const last = await db
    .selectDistinctOn([connectionRuns.chunk_index], { status: connectionRuns.status })
    .from(connectionRuns)
    .where(eq(connectionRuns.custom_run_plan_id, plan.id))
    .orderBy(connectionRuns.chunk_index, desc(connectionRuns.number));
  const failed_chunks = last.filter(({ status }) => status === 'failed' || status === 'partially_succeeded').length;
  await emitPlanEvent(db, { event: 'custom_run_completed', plan, actor: SYSTEM_ACTOR, failed_chunks });
}
