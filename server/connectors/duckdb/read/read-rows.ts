import type { DuckDBConnection } from '@duckdb/node-api';
import { trackCursor } from '../../cells/cursor.ts';
import { datasetClause } from '../../kits/sql/datasets.ts';
import type { Batch, Cell, ConnectorContext, Field, ReadRequest, StreamState } from '../../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../../contract/errors.ts';
import { asDescribed } from './datasets.ts';
import { duckDbError } from '../connection/failures.ts';
import { existingFile, reading } from '../connection/file-access.ts';
import type { DuckDbSourceConfig } from '../connection/settings.ts';
import { identifier, literal, relation } from '../connection/sql.ts';
import { cellSql, isDate, valueSql } from '../connection/types.ts';
import { limits } from '../write/replace-window.ts';

type Context = ConnectorContext<DuckDbSourceConfig>;

const BATCH_ROWS = 5_000;
const BATCH_BYTES = 1_000_000;

/**
 * A full refresh gives batches without state; with a cursor each batch carries the state after it. Rows whose cursor is
 * NULL have no place in that order: the first read (no state) begins with them and gives no state before they are
 * through, so that they come once; later reads do not see them.
 */
export async function* readRows(ctx: Context, wanted: ReadRequest): AsyncGenerator<Batch> {
  if (wanted.columns.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  const file = await existingFile(ctx);
  try {
    yield* reading(ctx, file, async function* (connection) {
      const request = await asDescribed({ connection, place: file }, wanted);
      const isIncremental = request.sync_mode === 'incremental' && request.cursor_field !== null;
      yield* isIncremental
        ? readIncrement(ctx, connection, request)
        : batches(ctx, connection, selectText(request, {}));
    });
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw duckDbError(error, file);
  }
}

async function* readIncrement(ctx: Context, connection: DuckDBConnection, request: ReadRequest): AsyncGenerator<Batch> {
  const { state } = request;
  const cursor = cursorOf(request);
  const column = columnOf(cursor);
  const width = request.columns.length;
  const cut = (rows: Cell[][]) => {
    for (const row of rows) row.length = width;
    return rows;
  };
  const done: StreamState = { cursor: null, boundary: [], nulls_read: true };
  if (state?.cursor == null && !request.window && !state?.nulls_read) {
    let nulls = 0;
    for await (const batch of batches(ctx, connection, selectText(request, { cursor, where: `${column} IS NULL` }))) {
      nulls += batch.rows.length;
      yield { ...batch, rows: cut(batch.rows) };
    }
    if (nulls > 0) warnOfNulls(ctx, request, nulls);
    yield { rows: [], bytes: 0, state: done };
  }
  // Whole rows tell rows apart, not keys: a row changed twice within one value of the cursor must come again.
  const tracker = trackCursor({ cursorIndex: width, keyIndexes: [], state });
  const from =
    state?.cursor == null ? 'IS NOT NULL' : `>= ${valueSql(literal(state.cursor), cursor.source_type ?? '')}`;
  const ordered = selectText(request, { cursor, where: `${column} ${from}`, ordered: true });
  for await (const batch of batches(ctx, connection, ordered)) {
    const tracked = tracker.next(batch.rows);
    yield { rows: cut(tracked.rows), bytes: batch.bytes, state: tracked.state ?? done };
  }
}

function warnOfNulls(ctx: Context, { stream, cursor_field }: ReadRequest, rows: number) {
  ctx.warn(
    'null_cursor',
    `${rows} rows of ${stream.name} have no ${cursor_field?.join('.')}: they are read once, changes to them are not seen`,
  );
}

const columnOf = (field: Field) => `t.${identifier(field.path[0] ?? '')}`;

function cursorOf({ stream, cursor_field }: ReadRequest): Field {
  const field = stream.fields.find(({ path }) => path[0] === cursor_field?.[0]);
  if (field) return field;
  throw new SchemaChangedError('column_missing', `${stream.name} has no column ${cursor_field?.join('.')}`);
}

/** `cursor` comes once more at the end of each row. */
function selectText(request: ReadRequest, more: { cursor?: Field; where?: string; ordered?: boolean }): string {
  const { cursor, where, ordered } = more;
  const fields = [...request.columns.map(({ field }) => field), ...(cursor ? [cursor] : [])];
  const columns = fields.map((field) => cellSql(columnOf(field), field.source_type ?? ''));
  const conditions = [...windowConditions(request), ...(where ? [where] : [])].join(' AND ');
  const keys = request.primary_key.map((path) => `t.${identifier(path[0] ?? '')}`);
  const order = cursor && ordered ? ` ORDER BY ${[columnOf(cursor), ...keys].join(', ')}` : '';
  return `SELECT ${columns.join(', ')} FROM ${fromClause(request)}${conditions && ` WHERE ${conditions}`}${order}`;
}

const fromClause = ({ stream: { namespace, name, dataset_sql } }: ReadRequest) =>
  dataset_sql === undefined ? `${relation(namespace ?? 'main', name)} t` : datasetClause(dataset_sql, 't');

function windowConditions(request: ReadRequest): string[] {
  const { window } = request;
  if (!window || (window.start === null && window.end === null)) return [];
  const field = cursorOf(request);
  if (!isDate(field.type)) {
    throw new ConfigurationError('window_needs_dates', `${field.path[0]} is no date, so no days can be chosen by it`);
  }
  return limits({ column: columnOf(field), isZoned: field.type === 'timestamp_tz' }, window);
}

async function* batches(ctx: Context, connection: DuckDBConnection, select: string): AsyncGenerator<Batch> {
  const result = await connection.stream(select);
  let rows: Cell[][] = [];
  let bytes = 0;
  while (true) {
    ctx.signal.throwIfAborted();
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) break;
    // Row by row: as strings all rows of a chunk take as much again as they do in it.
    const vectors = Array.from({ length: chunk.columnCount }, (_, at) => chunk.getColumnVector(at));
    for (let at = 0; at < chunk.rowCount; at++) {
      const row = vectors.map((vector) => vector.getItem(at) as Cell);
      for (const cell of row) bytes += cell === null ? 0 : cell.length;
      rows.push(row);
      if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
      yield { rows, bytes };
      [rows, bytes] = [[], 0];
    }
  }
  if (rows.length > 0) yield { rows, bytes };
}
