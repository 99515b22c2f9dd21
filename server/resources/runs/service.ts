import { badRequest } from '../../lib/errors.ts';
import { requestStop } from '../../engine/lifecycle.ts';
import { actorOf, type Ctx } from '../../procedure.ts';
import { findConnection, lockConnection } from '../owned-connection.ts';
import { startRunOf } from '../start-run.ts';
import type { Page } from '../wire.ts';
import { findRun, type RunKey } from '../owned-run.ts';
import { presentRun, presentStreamRun, type Viewing } from './present.ts';
import { countRuns, countStreamRuns, selectRuns, selectStreamRuns } from './query.ts';
import { isPlain, type ConnectionRunSchema, type CustomRunParameters, type StreamRunSchema } from './schema.ts';

const viewing = (ctx: Ctx): Viewing => ({
  now: ctx.deps.now(),
  internal: ctx.principal.permissions.has('roles.manage'),
});

/** A connection's runs, newest first. */
export async function listRuns(ctx: Ctx, input: { connection_id: string } & Page): Promise<ConnectionRunSchema[]> {
  const { id } = await findConnection(ctx, input.connection_id);
  const [records, total] = await Promise.all([selectRuns(ctx.db, id, input), countRuns(ctx.db, id)]);
  ctx.setHeader('X-Total-Count', String(total));
  return records.map((record) => presentRun(record, viewing(ctx)));
}

/** A run's stream runs, by namespace and name. */
export async function listStreamRuns(ctx: Ctx, input: RunKey & Page): Promise<StreamRunSchema[]> {
  const { id } = await findRun(ctx, input);
  const [records, total] = await Promise.all([selectStreamRuns(ctx.db, id, input), countStreamRuns(ctx.db, id)]);
  ctx.setHeader('X-Total-Count', String(total));
  return records.map((record) => presentStreamRun(record, viewing(ctx)));
}

/** Starts a run and answers with its id. Without parameters it is a plain run of all selected streams. */
export async function runConnection(
  ctx: Ctx,
  input: { connection_id: string; parameters: CustomRunParameters | null },
): Promise<string | null> {
  const connection = await lockConnection(ctx, input.connection_id);
  if (!isPlain(input.parameters)) {
    throw badRequest('custom_runs_unavailable', 'Custom runs are not available in this version of the service');
  }
  return startRunOf(ctx, connection, { trigger_type: 'api' });
}

/** Answers with the run's id, or null when the run had ended already. */
export async function stopRun(ctx: Ctx, input: { connection_run_id: string }): Promise<string | null> {
  const run = await findRun(ctx, input);
  return requestStop(ctx.db, { connection_run_id: run.id, actor: actorOf(ctx.principal), reason: null });
}
