import { eq } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { discoverStreams, presentable } from '../connector-runtime/account-connector-calls.ts';
import type { SecretUse } from '../connector-runtime/secret-uses.ts';
import type { Deps } from '../deps.ts';
import { type CatalogDiff, lockSource, storeCatalog, storedStreams } from './store.ts';

const DISCOVER_MS = 10 * 60_000;

interface Refresh {
  actor: SecretUse['actor'];
  report?(tx: Db, diff: CatalogDiff): Promise<void>;
  within_ms?: number;
}

/**
 * Discovers and stores the catalog of a source, with `report` in the same transaction. If another discovery was stored in
 * the meantime, the source is read again: the other one may have seen a later state.
 * @throws ConnectorError of the source, or another error of this service, after `catalog_status` was set to `failed`.
 */
export async function refreshCatalog(
  deps: Deps,
  row: AccountConnectorRow,
  { actor, report, within_ms = DISCOVER_MS }: Refresh,
): Promise<CatalogDiff> {
  let current = row;
  try {
    for (;;) {
      const known = actor.type === 'system' ? await storedStreams(deps.db, row) : [];
      const found = await discoverStreams(deps, current, { ms: within_ms, actor, known }).catch((error: unknown) => {
        throw presentable(deps, row, error);
      });
      const stored = await deps.db.transaction(async (tx) => {
        const latest = await lockSource(tx, row);
        if (latest.catalog_refreshed_at !== current.catalog_refreshed_at) return { latest, diff: null };
        const diff = await storeCatalog(tx, row, found);
        await report?.(tx, diff);
        return { latest, diff };
      });
      if (stored.diff) return stored.diff;
      current = stored.latest;
    }
  } catch (error) {
    await deps.db.update(accountConnectors).set({ catalog_status: 'failed' }).where(eq(accountConnectors.id, row.id));
    throw error;
  }
}
