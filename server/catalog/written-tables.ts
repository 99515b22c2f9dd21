import { and, eq, inArray, isNull, ne, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  type ConnectionRow,
  connections,
  connectionStreams,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { AnyDestination } from '../connectors/contract/connector.ts';
import { findConnector } from '../connectors/registry.ts';
import { namesOf } from '../pipeline/stream-check/columns.ts';
import { checkTables, type ForeignTable } from '../pipeline/stream-check/tables.ts';
import { tableName } from '../pipeline/transfer-plan.ts';

/** Serializes the changes of an account to tables that its connections write to. Held until the transaction ends. */
export const lockTables = (db: Db, account_id: string) =>
  db.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`tables:${account_id}`}, 0))`);

/** Account connectors behind different tunnels reach different servers under one name. */
export function storeOf(destination: AnyDestination, row: Pick<AccountConnectorRow, 'parameters' | 'ssh_tunnel'>) {
  const located = destination.locate?.(row.parameters);
  if (!located) return null;
  const tunnel = row.ssh_tunnel as { host?: string; port?: number } | null;
  return { ...located, store: JSON.stringify([located.store, tunnel?.host ?? null, tunnel?.port ?? null]) };
}

interface Place {
  account_id: string;
  /** Null: the connection does not exist yet. */
  connection_id: string | null;
  destination: AccountConnectorRow;
  destination_connector: AnyDestination;
  store: string;
}

/** Those of the tables that other connections of the account write to. */
export async function foreignTables(
  db: Db,
  { account_id, connection_id, destination, destination_connector, store }: Place,
  tables: readonly string[],
): Promise<ForeignTable[]> {
  if (tables.length === 0) return [];
  // First: many connections of an account may write tables of one name into other stores.
  const own = eq(accountConnectors.account_id, account_id);
  const named = eq(accountConnectors.connector_name, destination.connector_name);
  const { id, parameters, ssh_tunnel } = accountConnectors;
  const destinations = await db
    .select({ id, parameters, ssh_tunnel })
    .from(accountConnectors)
    .where(and(own, isDestination, named));
  const schemas = new Map(
    destinations.flatMap((row) => {
      const located = storeOf(destination_connector, row);
      return located?.store === store ? [[row.id, located.schema] as const] : [];
    }),
  );
  if (schemas.size === 0) return [];
  const wanted = sql`array(select lower(wanted.one) from jsonb_array_elements_text(${JSON.stringify(tables)}::jsonb) as wanted (one))`;
  const rows = await db
    .select({ connection: WRITING_CONNECTION, stream: WRITTEN_STREAM })
    .from(connectionStreams)
    .innerJoin(connections, eq(connections.id, connectionStreams.connection_id))
    .where(
      and(
        eq(connectionStreams.account_id, account_id),
        sql`${connectionStreams.written_table} = any(${wanted})`,
        isNull(connections.deleted_at),
        connection_id === null ? undefined : ne(connections.id, connection_id),
        // Not a parameter: prepared for any value, the statement could not use the index of selected streams.
        sql`${connectionStreams.selected}`,
        inArray(connections.destination_id, [...schemas.keys()]),
      ),
    )
    .orderBy(connections.created_at, connectionStreams.id);
  return rows.map(({ connection, stream }) => ({
    connection_id: connection.id,
    connection_name: connection.name,
    stream_name: stream.name,
    schema: connection.destination_schema ?? schemas.get(connection.destination_id)!,
    table: tableName(connection, stream),
    shared: stream.shared_destination_table,
  }));
}

const WRITING_CONNECTION = {
  id: connections.id,
  name: connections.name,
  destination_id: connections.destination_id,
  destination_schema: connections.destination_schema,
  table_prefix: connections.table_prefix,
};
const WRITTEN_STREAM = {
  name: connectionStreams.name,
  destination_table: connectionStreams.destination_table,
  shared_destination_table: connectionStreams.shared_destination_table,
};

const isDestination = eq(accountConnectors.connector_type, 'destination');

/**
 * Of streams that are about to be added to a connection, those whose table another stream is written to, by their
 * position. They are added unselected: both would mix or erase each other's rows.
 */
export async function streamsOfTakenTables(
  db: Db,
  { connection, destination }: { connection: ConnectionRow; destination: AccountConnectorRow },
  added: readonly { name: string; destination_table: string | null }[],
): Promise<Set<number>> {
  const destination_connector = findConnector('destination', destination.connector_name);
  if (!destination_connector || added.length === 0) return new Set();
  const { id: connection_id, account_id } = connection;
  await lockTables(db, account_id);
  const present = await db
    .select()
    .from(connectionStreams)
    .where(and(eq(connectionStreams.connection_id, connection_id), eq(connectionStreams.selected, true)));
  const store = storeOf(destination_connector, destination);
  const schema = connection.destination_schema ?? store?.schema ?? '';
  const own = [...present, ...added].map((stream) => ({
    stream_name: stream.name,
    schema,
    table: tableName(connection, stream),
    shared: 'shared_destination_table' in stream && stream.shared_destination_table === true,
  }));
  const isChecked = (at: number) => at >= present.length;
  const checked = own.filter((_, at) => isChecked(at)).map(({ table }) => table);
  const place = store && { account_id, connection_id, destination, destination_connector, store: store.store };
  const foreign = place ? await foreignTables(db, place, checked) : [];
  const findings = checkTables(own, { names: namesOf(destination_connector), foreign, read: [], isChecked });
  const taken = findings.filter(({ code }) => code === 'duplicate_destination_table');
  return new Set(taken.map(({ stream }) => stream - present.length));
}
