import { and, eq, inArray, isNull, or } from 'drizzle-orm';
import { connectionRuns, connections } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { LIVE_RUN } from '../../pipeline/run-states.ts';
import { badRequest } from '../../platform/errors.ts';

/**
 * A run in progress would continue partly with the old settings and partly with the new ones.
 * @throws ApiError 400 `run_active`
 */
export async function refuseWhileRunning(ctx: Ctx, account_connector_ids: string[], what: string): Promise<void> {
  const live = await ctx.db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .innerJoin(connections, eq(connections.id, connectionRuns.connection_id))
    .where(
      and(
        or(
          inArray(connections.source_id, account_connector_ids),
          inArray(connections.destination_id, account_connector_ids),
        ),
        isNull(connections.deleted_at),
        inArray(connectionRuns.status, LIVE_RUN),
      ),
    );
  if (live.length === 0) return;
  throw badRequest('run_active', `${what} cannot be changed during a run`, {
    connection_run_ids: live.map((run) => run.id),
  });
}
