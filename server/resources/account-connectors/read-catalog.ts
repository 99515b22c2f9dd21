import type { Ctx } from '../../api/procedure.ts';
import { presentItem, readCatalogRows } from './catalog-items.ts';
import type { AccountConnectorCatalogItemSchema } from './catalog-schema.ts';
import { findAccountConnector } from './query.ts';

/** Streams from the last discovery, ordered by namespace and name; empty before the first one. */
export async function readCatalog(
  ctx: Ctx,
  input: { account_connector_id: string },
): Promise<AccountConnectorCatalogItemSchema[]> {
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  return (await readCatalogRows(ctx, row.id)).map(presentItem);
}
