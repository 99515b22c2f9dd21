import type { Database } from 'bun:sqlite';
import type { Batch, Cell, Field, ReadRequest } from '../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { incrementalColumns, missesNulls, readIncrement } from '../kits/sql/incremental-read.ts';
import { cursorOf, isIncremental } from '../kits/sql/request.ts';
import { BREATH_ROWS, breathe, type Context, fromClause, identifier, once, withSnapshot } from './database.ts';
import { checkDataset } from './datasets.ts';
import { isStoredTable } from './catalog.ts';
import { assertUtf8, REPLACEMENT } from './encoding.ts';
import { type Condition, columnOf, resumeCondition, windowConditions } from './position.ts';
import { readAt } from './shared-snapshot.ts';
import { isDate } from '../kits/sql/streams.ts';
import { cellOf, type SqliteValue, textOf } from './types.ts';

const BATCH_ROWS = 5_000;
const BATCH_BYTES = 1_000_000;

/** A full refresh gives batches without state, an incremental read gives the state after each batch. */
export function readRows(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  if (request.columns.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  const { name, dataset_sql: sql } = request.stream;
  const { snapshot } = request;
  const within: typeof withSnapshot = snapshot ? (at, work) => readAt(at, snapshot, work) : withSnapshot;
  return within(ctx, async function* (database) {
    if (sql !== undefined) await checkDataset(ctx, database, { name, sql });
    yield* isIncremental(request)
      ? await incrementalBatches(ctx, database, request)
      : batches(ctx, database, {
          request,
          where: await windowConditions(database, request),
          by_row: snapshot !== undefined,
        });
  });
}

async function incrementalBatches(ctx: Context, database: Database, request: ReadRequest) {
  const { nulls, ordered } = await incrementalSelections(database, request);
  return readIncrement(ctx, request, {
    nulls: () => batches(ctx, database, nulls),
    ordered: () => batches(ctx, database, ordered),
  });
}

async function incrementalSelections(
  database: Database,
  request: ReadRequest,
): Promise<Record<'nulls' | 'ordered', Selection>> {
  const cursor = cursorOf(request);
  const column = columnOf(cursor);
  const limits = await windowConditions(database, request);
  const isNull = { sql: `${column} is null`, values: [] };
  const isSet = { sql: `${column} is not null`, values: [] };
  const where = [...limits, ...resumeCondition(request, cursor), isSet];
  return {
    nulls: { request, where: [isNull], cursor, one: missesNulls(request) },
    ordered: { request, where, cursor, ordered: true },
  };
}

/**
 * Whether each step of the read is short, so that this thread can take it: the rows of a table come one by one, as they
 * are stored or in the order of an index. A sort, a search without an index, or a view is one step that may take any time.
 */
export async function comesRowByRow(ctx: Context, request: ReadRequest): Promise<boolean> {
  const { name, dataset_sql } = request.stream;
  if (dataset_sql !== undefined || request.window) return false;
  return once(ctx, async (database) => {
    if (!isStoredTable(database, name)) return false;
    if (!isIncremental(request)) return true;
    const { nulls, ordered } = await incrementalSelections(database, request);
    const findsNulls = !cursorOf(request).nullable || isPlannedAs(database, nulls, /^SEARCH /);
    // From the start, the order of an index leads over the rows without a cursor only.
    const step = request.state?.cursor == null ? /^(SCAN|SEARCH) / : /^SEARCH /;
    return findsNulls && isPlannedAs(database, ordered, step);
  });
}

/** Whether SQLite plans the selection as one such step, without a sort. */
function isPlannedAs(database: Database, selection: Selection, step: RegExp): boolean {
  const values = selection.where.flatMap((condition) => condition.values);
  const plan = database
    .query<{ detail: string }, Condition['values']>(`explain query plan ${selectText(selection)}`)
    .all(...values);
  return plan.length === 1 && step.test(plan[0]?.detail ?? '');
}

interface Selection {
  request: ReadRequest;
  where: Condition[];
  /** Comes once more at the end of each row, in its stored form. */
  cursor?: Field;
  ordered?: boolean;
  /** The first row alone. */
  one?: boolean;
  /** Conditions are judged row by row: without an index, finding the next row would be one step of any length. */
  by_row?: boolean;
}

const columnsOf = ({ request, cursor }: Pick<Selection, 'request' | 'cursor'>) =>
  cursor ? incrementalColumns(request, cursor) : request.columns;

/** Every column with its table: SQLite takes an unknown name in quotes for a text. */
function selectText(selection: Selection): string {
  const { request, cursor, ordered, one } = selection;
  const columns = columnsOf({ request, cursor }).map(({ field }, at) => `${columnOf(field)} as c${at}`);
  // A read that resumes compares cursors as texts, regardless of the column's collation.
  const exact = cursor && (cursor.type === 'string' || isDate(cursor.type)) ? ' collate binary' : '';
  const keys = request.primary_key.map((path) => `t.${identifier(path[0] ?? '')}`);
  const order = cursor && ordered ? ` order by ${[`${columnOf(cursor)}${exact}`, ...keys].join(', ')}` : '';
  return `select ${columns.join(', ')}, ${wantedText(selection)} as wanted ${fromText(selection)}${order}${one ? ' limit 1' : ''}`;
}

const conditionsText = ({ where }: Selection) => where.map(({ sql }) => sql).join(' and ');
const wantedText = (selection: Selection) => (selection.by_row && conditionsText(selection)) || 'true';

function fromText(selection: Selection): string {
  const conditions = selection.by_row ? '' : conditionsText(selection);
  return `from ${fromClause(selection.request.stream)}${conditions && ` where ${conditions}`}`;
}

const textsOf = (selection: Selection) => ({
  stream: selection.request.stream.name,
  wanted: wantedText(selection),
  from: fromText(selection),
});

async function* batches(ctx: Context, database: Database, selection: Selection): AsyncGenerator<Batch> {
  const { request, where, cursor } = selection;
  const statement = database.prepare<Record<string, SqliteValue>, Condition['values']>(selectText(selection));
  const values = where.flatMap((condition) => condition.values);
  const all = columnsOf(selection).map(({ field }, at) => ({ key: `c${at}`, field, type: field.type }));
  const columns = cursor ? all.slice(0, -1) : all;
  const width = columns.length;
  const checked = new Set<number>();
  let rows: Cell[][] = [];
  let bytes = 0;
  let passed = 0;
  for (const record of statement.iterate(...values)) {
    if (record.wanted !== 1n) {
      passed += 1;
      if (passed % BREATH_ROWS === 0) await pause(ctx);
      continue;
    }
    const row: Cell[] = new Array(width);
    for (let at = 0; at < width; at++) {
      const { key, field, type } = columns[at] as (typeof columns)[0];
      const cell = cellOf(record[key] as SqliteValue, type);
      if (cell === undefined) throw misfit(request, field, record[key] as SqliteValue);
      if (cell !== null) bytes += cell.length;
      if (cell?.includes(REPLACEMENT) && !checked.has(at)) {
        await assertUtf8(database, { field, values, ...textsOf(selection) });
        checked.add(at);
      }
      row[at] = cell;
    }
    if (cursor) row.push(cursorText(record[`c${width}`] as SqliteValue));
    rows.push(row);
    if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
    yield { rows, bytes };
    [rows, bytes] = [[], 0];
    await pause(ctx);
  }
  if (rows.length > 0) yield { rows, bytes };
}

async function pause(ctx: Context): Promise<void> {
  await breathe();
  ctx.signal.throwIfAborted();
}

const cursorText = (value: SqliteValue): Cell => (value === null ? null : textOf(value));

function misfit({ stream }: ReadRequest, field: Field, value: SqliteValue): SchemaChangedError {
  const shown = value === null ? '' : textOf(value).slice(0, 100);
  return new SchemaChangedError(
    'value_does_not_fit',
    `${stream.name} has "${shown}" in ${field.path[0]}, whose values were all of type ${field.type} before. Refresh the schema`,
  );
}
