import { and, eq, ne, sql } from 'drizzle-orm';
import { type ConnectionRow, connections, connectionStreams, type StreamRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { AnyDestination, ReadRequest, StreamSchema, WriteTarget } from '../connectors/contract/connector.ts';
import type { Claim } from '../runs/claim-stream.ts';
import { DATED } from '../pipeline/custom-run/streams.ts';
import { cursorPath, type FieldChoice, fieldName, tableName } from '../pipeline/transfer-plan.ts';

/**
 * The destination's column by which the rows of a window can be found there: the cursor's, when it arrives as the
 * source has it. Null: it does not arrive, is mapped, masked or of another type. Pure.
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

/** Tables of the same destination that other connections write to: rows in them are not this connection's to remove. */
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
        // Without one it is the destination's own, which may be the very schema that the other one names.
        schema === null ? undefined : sql`coalesce(${connections.destination_schema}, ${schema}) = ${schema}`,
      ),
    );
  return new Set(rows.map((row) => tableName(row, row)));
}

/**
 * What the destination is to remove before it takes the rows of a chunk, so that a chunk done again doubles nothing.
 * Null: nothing, since this is no windowed custom run that appends, or the destination cannot tell the window's rows.
 */
export async function replacedWindow(
  db: Db,
  how: { claim: Claim; schema: StreamSchema; stream: StreamRow; destination: AnyDestination },
  window: ReadRequest['window'],
): Promise<WriteTarget['replace_window']> {
  const { connection, run } = how.claim;
  const windowed = run.custom_run_plan_id !== null && (run.window_start !== null || run.window_end !== null);
  if (!windowed || !window || how.stream.destination_sync_mode !== 'append') return null;
  // It reads on from the live cursor: what is before that would be removed and not come back.
  if (run.custom_run_parameters?.mode === 'incremental') return null;
  const column = how.destination.replaces_windows ? windowColumn(how.schema, how.stream) : null;
  if (column === null || (await tablesOfOthers(db, connection)).has(tableName(connection, how.stream))) return null;
  return { column, ...window };
}
