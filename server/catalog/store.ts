import { and, eq, inArray, isNull, type SQL, sql, type SQLWrapper } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  type CatalogStreamRow,
  catalogStreams,
  connections,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { StreamSchema } from '../connectors/contract/connector.ts';
import { DataError } from '../connectors/contract/errors.ts';
import { applyOverrides } from '../pipeline/overrides.ts';
import type { StreamDrift } from '../pipeline/schema-adaptation.ts';
import { diffStream } from '../pipeline/schema-diff.ts';
import { type ChangeSummary, summarize } from '../pipeline/schema-summary.ts';
import { unstorableIn } from '../platform/storable-text.ts';
import { applyDrift } from './apply-schema-changes.ts';
import { addInitialStreams } from './initial-streams.ts';

/** The changes that a discovery found, and whether they break a connection. */
export type CatalogDiff = ChangeSummary & { breaking: boolean };

/** A stream as its source described it, without overrides. */
export const discoveredStream = ({ definition }: Pick<CatalogStreamRow, 'definition'>): StreamSchema =>
  definition as unknown as StreamSchema;

/** By namespace and name, whatever the collation of the database is. */
export const catalogOrder = (): SQL[] => [
  sql`coalesce(${catalogStreams.namespace}, '') collate "C"`,
  sql`${catalogStreams.name} collate "C"`,
];

const keyOf = (stream: { namespace: string | null; name: string }) => JSON.stringify([stream.namespace, stream.name]);

/**
 * Stores a discovered catalog and applies its changes to every connection of the source, in the caller's transaction.
 */
export async function storeCatalog(db: Db, row: AccountConnectorRow, found: StreamSchema[]): Promise<CatalogDiff> {
  await lockSource(db, row);
  const known = await db.select().from(catalogStreams).where(eq(catalogStreams.account_connector_id, row.id));
  const byKey = new Map(known.map((stream) => [keyOf(stream), stream]));
  const first = known.length === 0;
  const drifts: StreamDrift[] = [];
  for (const stream of found) {
    const before = byKey.get(keyOf(stream));
    byKey.delete(keyOf(stream));
    const drift = driftOf(before, stream);
    if (drift && !first) drifts.push(drift);
    await upsertStream(db, { row, stream, before, change: first ? 'unchanged' : changeOf(drift) });
  }
  const gone = [...byKey.values()].filter((stream) => stream.removed_at === null);
  drifts.push(...gone.map((stream) => driftOf(stream, null)).filter((drift) => drift !== null));
  if (gone.length > 0) await markRemoved(db, gone);
  const breaking = await applyDrift(db, row, drifts);
  if (first) await addInitialStreams(db, row, found);
  await markRefreshed(db, row);
  return { ...summarize(drifts.flatMap(({ changes }) => changes)), breaking };
}

/** The streams that the last discovery of a source found. */
export async function storedStreams(db: Db, row: AccountConnectorRow): Promise<StreamSchema[]> {
  const rows = await db
    .select({ definition: catalogStreams.definition })
    .from(catalogStreams)
    .where(and(eq(catalogStreams.account_connector_id, row.id), isNull(catalogStreams.removed_at)));
  return rows.map(discoveredStream);
}

/** Stores one stream that a run has found changed, and applies the change. Other streams stay as they are. */
export async function storeStream(db: Db, row: AccountConnectorRow, stream: StreamSchema): Promise<void> {
  await lockSource(db, row);
  const [before] = await db.select().from(catalogStreams).where(isInCatalog(row.id, stream));
  const drift = driftOf(before, stream);
  if (!drift) return;
  await upsertStream(db, { row, stream, before, change: changeOf(drift) });
  await applyDrift(db, row, [drift]);
}

/** Serializes transactions that store streams of a source. Returns the current row of the source. */
export async function lockSource(db: Db, row: AccountConnectorRow): Promise<AccountConnectorRow> {
  const [latest] = await db
    .select()
    .from(accountConnectors)
    .where(eq(accountConnectors.id, row.id))
    .for('no key update');
  return latest ?? row;
}

type Change = CatalogStreamRow['change_status'];

/** Null if the stream has not changed. */
function driftOf(before: CatalogStreamRow | undefined, after: StreamSchema | null): StreamDrift | null {
  const overrides = before?.overrides ?? {};
  const old = before && before.removed_at === null ? discoveredStream(before) : null;
  const schema = after ?? old;
  const overridden = (stream: StreamSchema | null) => stream && applyOverrides(stream, overrides);
  const changes = diffStream(overridden(old), overridden(after));
  return schema && changes.length > 0 ? { schema, overrides, changes } : null;
}

function changeOf(drift: StreamDrift | null): Change {
  if (!drift) return 'unchanged';
  return drift.changes.some(({ subject }) => subject === 'stream') ? 'added' : 'updated';
}

/** JSON can name a field by characters that the database does not take. */
function refuseUnstorable(stream: StreamSchema): void {
  const found = unstorableIn(stream);
  if (found === null) return;
  const [name, text] = [stream.name, found.slice(0, 100)].map((one) => JSON.stringify(one));
  throw new DataError(
    'unstorable_name',
    `${text} in the stream ${name} has invalid characters. Rename it at the source`,
  );
}

/** @throws DataError `unstorable_name` */
async function upsertStream(
  db: Db,
  input: { row: AccountConnectorRow; stream: StreamSchema; before: CatalogStreamRow | undefined; change: Change },
): Promise<void> {
  const { row, stream, before, change } = input;
  refuseUnstorable(stream);
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

async function markRemoved(db: Db, gone: CatalogStreamRow[]): Promise<void> {
  const ids = gone.map((stream) => stream.id);
  await db
    .update(catalogStreams)
    .set({ change_status: 'removed', removed_at: sql`clock_timestamp()` })
    .where(inArray(catalogStreams.id, ids));
}

async function markRefreshed(db: Db, { id }: AccountConnectorRow): Promise<void> {
  const [row] = await db
    .update(accountConnectors)
    .set({ catalog_status: 'ready', catalog_refreshed_at: sql`clock_timestamp()` })
    .where(eq(accountConnectors.id, id))
    .returning({ catalog_refreshed_at: accountConnectors.catalog_refreshed_at });
  await db
    .update(connections)
    .set({ catalog_refreshed_at: row?.catalog_refreshed_at ?? null, updated_at: sql`${connections.updated_at}` })
    .where(eq(connections.source_id, id));
}

interface Named {
  name: string | SQLWrapper;
  namespace: string | null | SQLWrapper;
}

/** SQL condition for the catalog row of a stream. */
export const isInCatalog = (source_id: string | SQLWrapper, { name, namespace }: Named): SQL | undefined =>
  and(
    eq(catalogStreams.account_connector_id, source_id),
    eq(catalogStreams.name, name),
    sql`${catalogStreams.namespace} is not distinct from ${namespace}`,
  );
