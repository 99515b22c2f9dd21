import { and, eq, ne, sql } from 'drizzle-orm';
import { type ConnectionRow, connections, connectionStreams, type StreamRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { AnyDestination, ReadRequest, StreamSchema, WriteTarget } from '../connectors/contract/connector.ts';
import type { Claim } from '../runs/claim-stream.ts';
import { DATED } from '../pipeline/custom-run/streams.ts';
import { cursorPath, type FieldChoice, fieldName, tableName } from '../pipeline/transfer-plan.ts';

/**
 * The destination column that identifies the rows of a window: the cursor, when it is written unchanged. Null: it is
 * not written, or is mapped, masked or of another type. Pure.
 */
export function windowColumn(schema: StreamSchema, stream: StreamRow): string | null {
  const path = stream.mapping ? null : cursorPath(schema, stream);
  const field = path && schema.fields.find((one) => Bun.deepEquals(one.path, path));
  if (!field || !DATED.includes(field.type)) return null;
  const choice = (stream.fields as FieldChoice[]).find((one) => Bun.deepEquals(one.path, path));
  if (!choice) return fieldName(path);
  const retyped = choice.destination_type !== null && choice.destination_type !== field.type;
  if (!choice.selected || choice.masking !== 'none' || retyped) return null;
  return choice.destination_name ?? fieldName(path);
}

/** Tables of the destination that other connections write to, whose rows this connection must not remove. */
export async function tablesOfOthers(
  db: Db,
  connection: Pick<ConnectionRow, 'id' | 'destination_id' | 'destination_schema'>,
): Promise<Set<string>> {
  const schema = connection.destination_schema;
  const rows = await db
    .select({
      table_prefix: connections.table_prefix,
      destination_table: connectionStreams.destination_table,
      name: connectionStreams.name,
    })
    .from(connectionStreams)
    .innerJoin(connections, eq(connections.id, connectionStreams.connection_id))
    .where(
      and(
        eq(connections.destination_id, connection.destination_id),
        ne(connections.id, connection.id),
        eq(connectionStreams.selected, true),
        // A connection without a schema uses the destination's default, which may be the same one.
        schema === null ? undefined : sql`coalesce(${connections.destination_schema}, ${schema}) = ${schema}`,
      ),
    );
  return new Set(rows.map((row) => tableName(row, row)));
}

/**
 * The rows that the destination removes before it writes a chunk, so that a repeated chunk duplicates nothing. Null: this
 * is not a windowed custom run that appends, or the destination cannot identify the rows of the window.
 */
export async function replacedWindow(
  db: Db,
  how: { claim: Claim; schema: StreamSchema; stream: StreamRow; destination: AnyDestination },
  window: ReadRequest['window'],
): Promise<WriteTarget['replace_window']> {
  const { connection, run } = how.claim;
  const windowed = run.custom_run_plan_id !== null && (run.window_start !== null || run.window_end !== null);
  if (!windowed || !window || how.stream.destination_sync_mode !== 'append') return null;
  // Incremental mode reads from the live cursor on: earlier rows would be removed and not read again.
  if (run.custom_run_parameters?.mode === 'incremental') return null;
  const column = how.destination.replaces_windows ? windowColumn(how.schema, how.stream) : null;
  if (column === null || (await tablesOfOthers(db, connection)).has(tableName(connection, how.stream))) return null;
  return { column, ...window };
}
