import { startRun } from '../../runs/start.ts';
import { requestStop } from '../../runs/stop.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { lockConnection } from '../access/connection.ts';
import { accountPlan } from '../access/account-plan.ts';
import { findRun } from '../access/run.ts';
import { type CustomRunParameters, isPlain } from './custom-schema.ts';
import { runCustom } from './launch.ts';

/**
 * Starts a run and returns its id. Without parameters it is a plain run of all selected streams. With parameters it is a
 * custom run: the id is that of its first chunk, or null if there is nothing to run.
 */
export async function runConnection(
  ctx: Ctx,
  input: { connection_id: string; parameters: CustomRunParameters | null },
): Promise<string | null> {
  const connection = await lockConnection(ctx, input.connection_id);
  const { parameters } = input;
  if (parameters !== null && !isPlain(parameters)) return runCustom(ctx, connection, parameters);
  const account = await accountPlan(ctx);
  return startRun(ctx.db, ctx.deps, { connection, account, trigger_type: 'api', actor: actorOf(ctx.principal) });
}

/** Returns the id of the run, or null if it had already ended. */
export async function stopRun(ctx: Ctx, input: { connection_run_id: string }): Promise<string | null> {
  const run = await findRun(ctx, input);
  return requestStop(ctx.db, ctx.deps.queue, {
    connection_run_id: run.id,
    actor: actorOf(ctx.principal),
    reason: null,
  });
}
