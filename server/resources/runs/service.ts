import { requestStop } from '../../runs/lifecycle.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { lockConnection } from '../access/connection.ts';
import { startRunOf } from '../access/start-run.ts';
import { findRun } from '../access/run.ts';
import { type CustomRunParameters, isPlain } from './custom-schema.ts';
import { runCustom } from './launch.ts';

/**
 * Starts a run and answers with its id. Without parameters it is a plain run of all selected streams; with them the
 * first run of a custom one, or null when there is nothing to run.
 */
export async function runConnection(
  ctx: Ctx,
  input: { connection_id: string; parameters: CustomRunParameters | null },
): Promise<string | null> {
  const connection = await lockConnection(ctx, input.connection_id);
  const { parameters } = input;
  if (parameters !== null && !isPlain(parameters)) return runCustom(ctx, connection, parameters);
  return startRunOf(ctx, connection, { trigger_type: 'api' });
}

/** Answers with the run's id, or null when the run had ended already. */
export async function stopRun(ctx: Ctx, input: { connection_run_id: string }): Promise<string | null> {
  const run = await findRun(ctx, input);
  return requestStop(ctx.db, ctx.deps.queue, {
    connection_run_id: run.id,
    actor: actorOf(ctx.principal),
    reason: null,
  });
}
