import { and, eq, isNull } from 'drizzle-orm';
import { type AccountConnectorRow, catalogStreams } from '../../../db/schema/index.ts';
import { ConnectorError } from '../../connectors/contract/errors.ts';
import { refreshCatalog } from '../../catalog/discover.ts';
import { catalogOrder, discoveredStream } from '../../catalog/store.ts';
import { applyOverrides } from '../../pipeline/overrides.ts';
import { badRequest } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import type { CatalogStream } from './streams/selection.ts';

/** Streams of a source as last discovered, with the overrides of its users, ordered by namespace and name. */
export async function readCatalog(ctx: Ctx, account_connector_id: string): Promise<CatalogStream[]> {
  const rows = await ctx.db
    .select({ definition: catalogStreams.definition, overrides: catalogStreams.overrides })
    .from(catalogStreams)
    .where(and(eq(catalogStreams.account_connector_id, account_connector_id), isNull(catalogStreams.removed_at)))
    .orderBy(...catalogOrder());
  return rows.map(({ definition, overrides }) => ({
    ...applyOverrides(discoveredStream({ definition }), overrides),
    overrides,
  }));
}

/**
 * Discovers a source that has no catalog yet. Uses the network, so never call it within a transaction. False if the source
 * does not answer within `within_ms`.
 * @throws ApiError 400 `catalog_not_ready` with the connector's message.
 */
export async function ensureCatalog(ctx: Ctx, source: AccountConnectorRow, within_ms: number): Promise<boolean> {
  if (source.catalog_status === 'ready') return true;
  if (source.catalog_status === 'pending' && source.catalog_refreshed_at !== null) return true;
  try {
    await refreshCatalog(ctx.deps, source, { actor: actorOf(ctx.principal), within_ms });
    return true;
  } catch (error) {
    if (!(error instanceof ConnectorError)) throw error;
    if (error.code === 'check_timeout') return false;
    throw badRequest('catalog_not_ready', `The streams of "${source.name}" cannot be read: ${error.message}`, {
      field: 'source_id',
      account_connector_id: source.id,
      upstream_code: error.code,
    });
  }
}
