import { and, eq, inArray, sql } from 'drizzle-orm';
import { accountConnectors, catalogStreams } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { StreamSchema } from '../connectors/define.ts';
import type { AccountConnectorRow } from './connector-context.ts';

export interface CatalogDiff {
  streams_added: string[];
  streams_removed: string[];
  streams_updated: string[];
}

type CatalogRow = typeof catalogStreams.$inferSelect;
const keyOf = (stream: { namespace: string | null; name: string }) => JSON.stringify([stream.namespace, stream.name]);
const shownName = (stream: { namespace: string | null; name: string }) =>
  stream.namespace ? `${stream.namespace}.${stream.name}` : stream.name;

/** Stores what discovery found beside what was known, in one transaction of the caller, and tells the difference. */
export async function storeCatalog(db: Db, row: AccountConnectorRow, found: StreamSchema[]): Promise<CatalogDiff> {
  await db
    .select({ id: accountConnectors.id })
    .from(accountConnectors)
    .where(eq(accountConnectors.id, row.id))
    .for('update');
  const known = await db.select().from(catalogStreams).where(eq(catalogStreams.account_connector_id, row.id));
  const byKey = new Map(known.map((stream) => [keyOf(stream), stream]));
  const first = known.length === 0;
  const diff: CatalogDiff = { streams_added: [], streams_removed: [], streams_updated: [] };
  for (const stream of found) {
    const before = byKey.get(keyOf(stream));
    byKey.delete(keyOf(stream));
    const change = changeOf(before, stream, first);
    if (change === 'added' && !first) diff.streams_added.push(shownName(stream));
    if (change === 'updated') diff.streams_updated.push(shownName(stream));
    await upsertStream(db, { row, stream, before, change });
  }
  const gone = [...byKey.values()].filter((stream) => stream.removed_at === null);
  diff.streams_removed.push(...gone.map(shownName));
  if (gone.length > 0) await markRemoved(db, gone);
  await db
    .update(accountConnectors)
    .set({ catalog_status: 'ready', catalog_refreshed_at: sql`clock_timestamp()` })
    .where(eq(accountConnectors.id, row.id));
  return diff;
}

type Change = CatalogRow['change_status'];

function changeOf(before: CatalogRow | undefined, stream: StreamSchema, first: boolean): Change {
  if (!before) return first ? 'unchanged' : 'added';
  if (before.removed_at) return 'added';
  return Bun.deepEquals(before.definition, stream) ? 'unchanged' : 'updated';
}

async function upsertStream(
  db: Db,
  input: { row: AccountConnectorRow; stream: StreamSchema; before: CatalogRow | undefined; change: Change },
): Promise<void> {
  const { row, stream, before, change } = input;
  const columns = {
    definition: { ...stream },
    change_status: change,
    discovered_at: new Date().toISOString(),
    removed_at: null,
  };
  if (before) {
    await db.update(catalogStreams).set(columns).where(eq(catalogStreams.id, before.id));
    return;
  }
  await db.insert(catalogStreams).values({
    account_id: row.account_id,
    account_connector_id: row.id,
    namespace: stream.namespace,
    name: stream.name,
    ...columns,
  });
}

async function markRemoved(db: Db, gone: CatalogRow[]): Promise<void> {
  const ids = gone.map((stream) => stream.id);
  await db
    .update(catalogStreams)
    .set({ change_status: 'removed', removed_at: sql`clock_timestamp()` })
    .where(and(inArray(catalogStreams.id, ids)));
}
