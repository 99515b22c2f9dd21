import { eq } from 'drizzle-orm';
import { customConnectors } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { badRequest } from '../../platform/errors.ts';
import { findCustomConnector } from '../access/custom-connectors.ts';
import { sourcesOf } from './affected-sources.ts';

/** @throws ApiError 404; 400 `connector_in_use` with `account_connector_ids` */
export async function deleteCustomConnector(ctx: Ctx, { connector_name }: { connector_name: string }): Promise<void> {
  // A source that is created at this moment holds the lock until it is stored.
  const row = await findCustomConnector(ctx, connector_name, 'update');
  const sources = await sourcesOf(ctx, row);
  if (sources.length > 0) {
    throw badRequest('connector_in_use', `${sources.length} sources use ${row.display_name}. Delete them first`, {
      account_connector_ids: sources.map(({ id }) => id),
    });
  }
  await ctx.db.delete(customConnectors).where(eq(customConnectors.id, row.id));
}
