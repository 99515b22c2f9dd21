import { requestDiscovery } from '../../catalog/request-discovery.ts';
import type { Ctx } from '../../api/procedure.ts';

/** Requests the discovery of a source in the caller's transaction. Returns the id of the task. */
export const discoverCatalogTask = (
  ctx: Ctx,
  target: { account_connector_id: string; connection_id: string | null },
): Promise<string> =>
  requestDiscovery(ctx.db, ctx.deps.queue, {
    account_id: ctx.principal.account_id,
    created_by: ctx.principal.user_id,
    ...target,
  });
