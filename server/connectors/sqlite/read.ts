import type { Database } from 'bun:sqlite';
import { trackCursor } from '../cells/cursor.ts';
import type { Batch, Cell, Field, ReadRequest, StreamState } from '../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { breathe, type Context, fromClause, identifier, withSnapshot } from './database.ts';
import { checkDataset } from './datasets.ts';
import { type Condition, columnOf, cursorField, resumeCondition, windowConditions } from './position.ts';
import { cellOf, isDate, type SqliteValue, textOf } from './types.ts';

const BATCH_ROWS = 5_000;
const BATCH_BYTES = 1_000_000;

/**
 * A full refresh gives batches without state; with a cursor each batch carries the state after it. Rows whose cursor is
 * NULL have no place in that order: the first read (no state) begins with them and gives no state before they are
 * through, so that they come once; later reads do not see them.
 */
export function readRows(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  if (request.columns.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  const { name, dataset_sql: sql } = request.stream;
  return withSnapshot(ctx, async function* (database) {
    if (sql !== undefined) await checkDataset(ctx, database, { name, sql });
    yield* request.sync_mode === 'incremental' && request.cursor_field
      ? readIncrement(ctx, database, request)
      : batches(ctx, database, { request, where: windowConditions(database, request) });
  });
}

async function* readIncrement(ctx: Context, database: Database, request: ReadRequest): AsyncGenerator<Batch> {
  const { state } = request;
  const cursor = cursorField(request);
  const column = columnOf(cursor);
  const width = request.columns.length;
  const cut = (rows: Cell[][]) => {
    for (const row of rows) row.length = width;
    return rows;
  };
  const limits = windowConditions(database, request);
  const done: StreamState = { cursor: null, boundary: [], nulls_read: true };
  if (state?.cursor == null && !request.window && !state?.nulls_read) {
    let nulls = 0;
    const where = [{ sql: `${column} is null`, values: [] }];
    for await (const batch of batches(ctx, database, { request, where, cursor })) {
      nulls += batch.rows.length;
      yield { ...batch, rows: cut(batch.rows) };
    }
    if (nulls > 0) warnOfNulls(ctx, request, nulls);
    yield { rows: [], bytes: 0, state: done };
  }
  // Whole rows tell rows apart, not keys: a row changed twice within one value of the cursor must come again.
  const tracker = trackCursor({ cursorIndex: width, keyIndexes: [], state });
  const where = [...limits, ...resumeCondition(request, cursor), { sql: `${column} is not null`, values: [] }];
  for await (const batch of batches(ctx, database, { request, where, cursor, ordered: true })) {
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

interface Selection {
  request: ReadRequest;
  where: Condition[];
  /** Comes once more at the end of each row, as it is stored. */
  cursor?: Field;
  ordered?: boolean;
}

/** Every column with its table: a name in quotes that is no column would be taken for a text. */
function selectText({ request, where, cursor, ordered }: Selection): string {
  const fields = request.columns.map(({ field }) => field);
  const columns = (cursor ? [...fields, cursor] : fields).map((field, at) => `${columnOf(field)} as c${at}`);
  const conditions = where.map(({ sql }) => sql).join(' and ');
  // Cursors are compared as texts when a read goes on, whatever the column's collation takes for equal.
  const exact = cursor && (cursor.type === 'string' || isDate(cursor.type)) ? ' collate binary' : '';
  const keys = request.primary_key.map((path) => `t.${identifier(path[0] ?? '')}`);
  const order = cursor && ordered ? ` order by ${[`${columnOf(cursor)}${exact}`, ...keys].join(', ')}` : '';
  return `select ${columns.join(', ')} from ${fromClause(request.stream)}${conditions && ` where ${conditions}`}${order}`;
}

async function* batches(ctx: Context, database: Database, selection: Selection): AsyncGenerator<Batch> {
  const { request, where, cursor } = selection;
  const statement = database.prepare<Record<string, SqliteValue>, Condition['values']>(selectText(selection));
  const values = where.flatMap((condition) => condition.values);
  const columns = request.columns.map(({ field }, at) => ({ key: `c${at}`, field, type: field.type }));
  const width = columns.length;
  let rows: Cell[][] = [];
  let bytes = 0;
  for (const record of statement.iterate(...values)) {
    const row: Cell[] = new Array(width);
    for (let at = 0; at < width; at++) {
      const { key, field, type } = columns[at] as (typeof columns)[0];
      const cell = cellOf(record[key] as SqliteValue, type);
      if (cell === undefined) throw misfit(request, field, record[key] as SqliteValue);
      if (cell !== null) bytes += cell.length;
      row[at] = cell;
    }
    if (cursor) row.push(cursorText(record[`c${width}`] as SqliteValue));
    rows.push(row);
    if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
    yield { rows, bytes };
    [rows, bytes] = [[], 0];
    await breathe();
    ctx.signal.throwIfAborted();
  }
  if (rows.length > 0) yield { rows, bytes };
}

const cursorText = (value: SqliteValue): Cell => (value === null ? null : textOf(value));

function misfit({ stream }: ReadRequest, field: Field, value: SqliteValue): SchemaChangedError {
  const shown = value === null ? '' : textOf(value).slice(0, 100);
  return new SchemaChangedError(
    'value_does_not_fit',
    `${stream.name} has "${shown}" in ${field.path[0]}, which had only values of the type ${field.type}: discover it again`,
  );
}
