import type { Ctx } from '../../api/procedure.ts';
import { findConnection } from '../access/connection.ts';
import { discoverCatalogTask } from '../access/discovery-task.ts';
import { requireReadyConnectors } from '../access/start-run.ts';

/**
 * Has the source's streams discovered anew, in the background; answers with the id of the task, or of the one that is
 * under way already.
 * @throws ApiError 400 `account_connector_not_ready`
 */
export async function updateCatalog(ctx: Ctx, input: { connection_id: string }): Promise<string> {
  const connection = await findConnection(ctx, input.connection_id);
  await requireReadyConnectors(ctx, [connection.source_id]);
  return discoverCatalogTask(ctx, { account_connector_id: connection.source_id, connection_id: connection.id });
}
