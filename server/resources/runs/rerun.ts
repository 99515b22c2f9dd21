import { z } from 'zod';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { startRun } from '../../runs/start.ts';
import { streamsToRerun } from '../../runs/streams.ts';
import { accountPlan } from '../access/account-plan.ts';
import { lockConnection } from '../access/connection.ts';
import { findRun } from '../access/run.ts';
import { rerunChunk } from './launch.ts';

export const RerunQuery = z.object({
  streams: z.enum(['unsuccessful', 'all']).default('unsuccessful').meta({
    description:
      'Which streams of the run to repeat: those that failed or were stopped, or all. If every stream succeeded, all are repeated.',
  }),
});

/**
 * Starts a new run with the streams of a run that has ended: by default those that did not succeed. A chunk of a custom
 * run keeps its window. Returns the id of the new run.
 * @throws ApiError 400 `run_not_terminal`, `stream_removed`, and as `startRun`.
 */
export async function rerunRun(
  ctx: Ctx,
  input: { connection_run_id: string } & z.output<typeof RerunQuery>,
): Promise<string> {
  const run = await findRun(ctx, input);
  const connection = await lockConnection(ctx, run.connection_id);
  const streams = await streamsToRerun(ctx.db, { connection, run, all: input.streams === 'all' });
  if (run.custom_run_plan_id !== null) return rerunChunk(ctx, connection, { run, streams });
  return startRun(ctx.db, ctx.deps, {
    connection,
    account: await accountPlan(ctx),
    streams,
    trigger_type: 'rerun',
    rerun_of_run_id: run.id,
    actor: actorOf(ctx.principal),
  });
}
