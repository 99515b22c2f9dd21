import type { Ctx } from '../../api/procedure.ts';
import { findConnection } from '../access/connection.ts';
import { discoverCatalogTask } from '../access/discovery-task.ts';
import { requireReadyConnectors } from '../../connector-runtime/require-ready.ts';

/**
 * Requests a discovery of the source's streams in the background. Returns the id of the task, or of one that is queued
 * already.
 * @throws ApiError 400 `account_connector_not_ready`
 */
export async function updateCatalog(ctx: Ctx, input: { connection_id: string }): Promise<string> {
  const connection = await findConnection(ctx, input.connection_id);
  await requireReadyConnectors(ctx.db, [connection.source_id]);
  return discoverCatalogTask(ctx, { account_connector_id: connection.source_id, connection_id: connection.id });
}
