import { and, eq, isNull, sql } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors, connections, connectionStreams } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { StreamSchema } from '../connectors/contract/connector.ts';
import { findConnector } from '../connectors/registry.ts';
import { defaultSettings } from '../pipeline/stream-defaults.ts';
import { qualifiedName } from '../pipeline/schema-summary.ts';
import { emitStreamsUnselected } from '../events/catalog-events.ts';
import { streamsOfTakenTables } from './written-tables.ts';

/** Parameters of one statement are limited to 65,535. */
const ROWS_AT_ONCE = 2000;

/**
 * Connections that were created before the first discovery of their source take all of its streams, except for those
 * whose tables other streams are written to.
 */
export async function addInitialStreams(db: Db, source: AccountConnectorRow, found: StreamSchema[]): Promise<void> {
  const waiting = await db
    .select({ connection: connections, destination: accountConnectors })
    .from(connections)
    .innerJoin(accountConnectors, eq(accountConnectors.id, connections.destination_id))
    .where(
      and(
        eq(connections.source_id, source.id),
        isNull(connections.deleted_at),
        sql`not exists (select from connection_streams s where s.connection_id = ${connections.id})`,
      ),
    );
  for (const { connection, destination } of waiting) {
    const connector = findConnector('destination', destination.connector_name);
    if (!connector) continue;
    const added = found.map((stream) => ({
      account_id: source.account_id,
      connection_id: connection.id,
      name: stream.name,
      namespace: stream.namespace,
      ...defaultSettings(stream, connector),
      // Names that occur in several namespaces would share a table.
      destination_table: found.some((other) => other !== stream && other.name === stream.name)
        ? `${stream.namespace ?? ''}_${stream.name}`
        : null,
    }));
    const taken = await streamsOfTakenTables(db, { connection, destination }, added);
    const rows = added.map((stream, at) => ({ ...stream, selected: !taken.has(at) }));
    for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) {
      await db.insert(connectionStreams).values(rows.slice(start, start + ROWS_AT_ONCE));
    }
    const unselected = rows.filter(({ selected }) => !selected).map(qualifiedName);
    if (unselected.length > 0) await emitStreamsUnselected(db, { connection, source, unselected });
  }
}
