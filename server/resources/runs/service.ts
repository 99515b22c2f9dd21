import { requestStop } from '../../engine/lifecycle.ts';
import { actorOf, type Ctx } from '../../procedure.ts';
import { findConnection, lockConnection } from '../owned-connection.ts';
import { startRunOf } from '../start-run.ts';
import type { Page } from '../wire.ts';
import { findRun, type RunKey } from '../owned-run.ts';
import { type CustomRunParameters, isPlain } from './custom-schema.ts';
import { runCustom } from './launch.ts';
import { presentRun, presentStreamRun, type Viewing } from './present.ts';
import { countRuns, countStreamRuns, selectRuns, selectStreamRuns } from './query.ts';
import type { ConnectionRunSchema, StreamRunSchema } from './schema.ts';

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
  return requestStop(ctx.db, ctx.deps.queue, { connection_run_id: run.id, actor: actorOf(ctx.principal), reason: null });
}
