import type { DuckDBConnection } from '@duckdb/node-api';
import type { Batch, Cell, ConnectorContext, Field, ReadColumn, ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { incrementalColumns, incrementalSelects, readIncrement } from '../../kits/sql/incremental-read.ts';
import { cursorOf, fromClause, isIncremental, orderBy, where } from '../../kits/sql/request.ts';
import { resumeCursor } from '../../kits/sql/cursors/safe-bound.ts';
import { isDate } from '../../kits/sql/streams.ts';
import { duckDbError } from '../connection/failures.ts';
import { existingFile, reading } from '../connection/file-access.ts';
import type { DuckDbSourceConfig } from '../connection/settings.ts';
import { duckdbNames, identifier, literal } from '../connection/sql.ts';
import { cellSql, valueSql } from '../connection/types.ts';
import { limits } from '../write/replace-window.ts';
import { asDescribed } from './datasets.ts';
import { assertAt } from './shared-snapshot.ts';

type Context = ConnectorContext<DuckDbSourceConfig>;

const BATCH_ROWS = 5_000;
const BATCH_BYTES = 1_000_000;

/** A full refresh gives batches without state, an incremental read gives the state after each batch. */
export async function* readRows(ctx: Context, wanted: ReadRequest): AsyncGenerator<Batch> {
  if (wanted.columns.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  const file = await existingFile(ctx);
  try {
    yield* reading(ctx, file, async function* (connection) {
      if (wanted.snapshot) await assertAt(file, wanted.snapshot);
      const request = await asDescribed({ connection, place: file }, wanted);
      yield* isIncremental(request)
        ? incrementalBatches(ctx, connection, request)
        : batches(ctx, connection, `${selectText(request)}${where(windowConditions(request))}`);
    });
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw duckDbError(error, file);
  }
}

function incrementalBatches(ctx: Context, connection: DuckDBConnection, request: ReadRequest): AsyncGenerator<Batch> {
  const cursor = cursorOf(request);
  const cell = resumeCursor(request.state);
  const selects = incrementalSelects(request, {
    select: selectText(request, incrementalColumns(request, cursor)),
    conditions: windowConditions(request),
    isNull: `${columnOf(cursor)} is null`,
    resumes: cell == null ? null : `${columnOf(cursor)} >= ${valueSql(literal(cell), cursor.source_type ?? '')}`,
    orderBy: orderBy(duckdbNames, cursor, request.primary_key),
  });
  return readIncrement(ctx, request, {
    nulls: () => batches(ctx, connection, selects.nulls ?? ''),
    ordered: () => batches(ctx, connection, selects.ordered),
  });
}

const columnOf = (field: Field) => identifier(field.path[0] ?? '');

function selectText(request: ReadRequest, columnsRead: readonly ReadColumn[] = request.columns): string {
  const columns = columnsRead.map(({ field }) => cellSql(columnOf(field), field.source_type ?? ''));
  return `select ${columns.join(', ')} from ${fromClause(duckdbNames, withSchema(request))}`;
}

export const withSchema = (request: ReadRequest): ReadRequest => {
  const { stream } = request;
  return { ...request, stream: { ...stream, namespace: stream.namespace ?? 'main' } };
};

/** The days that a read is limited to, as SQL. */
export function windowConditions(request: ReadRequest): string[] {
  const { window } = request;
  if (!window || (window.start === null && window.end === null)) return [];
  const field = cursorOf(request);
  if (!isDate(field.type)) {
    throw new ConfigurationError(
      'window_needs_dates',
      `${field.path[0]} is not a date, so the stream cannot be limited to a range of days`,
    );
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
    // Row by row: all rows of a chunk as strings would take its size once more.
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
