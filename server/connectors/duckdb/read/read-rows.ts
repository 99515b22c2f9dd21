import type { DuckDBDataChunk } from '@duckdb/node-api';
import type { Batch, Cell, ConnectorContext, Field, ReadColumn, ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { incrementalColumns, incrementalSelects, readIncrement } from '../../kits/sql/incremental-read.ts';
import { cursorOf, fromClause, isIncremental, orderBy, where, windowOf } from '../../kits/sql/request.ts';
import { resumeCursor } from '../../kits/sql/cursors/safe-bound.ts';
import { duckDbError } from '../connection/failures.ts';
import { existingFile, reading } from '../connection/file-access.ts';
import type { DuckDbSourceConfig } from '../connection/settings.ts';
import { duckdbNames, identifier, literal } from '../connection/sql.ts';
import { cellSql, valueSql } from '../connection/types.ts';
import { limits } from '../write/replace-window.ts';
import { asDescribed } from './datasets.ts';
import { assertAt } from './shared-snapshot.ts';
import { chunksOf, type Reader, sortedChunks, wideChunks, wideTable } from './wide-table.ts';

type Context = ConnectorContext<DuckDbSourceConfig>;

const BATCH_ROWS = 5_000;
const BATCH_BYTES = 1_000_000;

/** A full refresh gives batches without state, an incremental read gives the state after each batch. */
export async function* readRows(ctx: Context, wanted: ReadRequest): AsyncGenerator<Batch> {
  if (wanted.columns.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  const file = await existingFile(ctx);
  try {
    yield* reading(ctx, file, async function* (reader) {
      const { connection } = reader;
      if (wanted.snapshot) await assertAt(file, wanted.snapshot);
      const request = await asDescribed({ connection, place: file }, wanted);
      yield* isIncremental(request) ? incrementalBatches(ctx, reader, request) : wholeRead(ctx, reader, request);
    });
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw duckDbError(error, file);
  }
}

async function* incrementalBatches(ctx: Context, reader: Reader, request: ReadRequest): AsyncGenerator<Batch> {
  const wide = await wideTable(reader.connection, withSchema(request));
  const chunks = (select: string) => (wide ? sortedChunks(reader, select) : chunksOf(reader.connection, select));
  const cursor = cursorOf(request);
  const columns = incrementalColumns(request, cursor);
  const cell = resumeCursor(request.state);
  const selects = incrementalSelects(request, {
    select: selectText(request, columns),
    conditions: windowConditions(request),
    isNull: `${columnOf(cursor)} is null`,
    resumes: cell == null ? null : `${columnOf(cursor)} >= ${valueSql(literal(cell), cursor.source_type ?? '')}`,
    orderBy: orderBy(duckdbNames, cursor, request.primary_key),
  });
  yield* readIncrement(ctx, request, {
    nulls: () => batches(ctx, chunks(selects.nulls ?? ''), columns.length),
    ordered: () => batches(ctx, chunks(selects.ordered), columns.length),
  });
}

const columnOf = (field: Field) => identifier(field.path[0] ?? '');

/** @param more columns behind those that are read */
function selectText(request: ReadRequest, columnsRead: readonly ReadColumn[], more: readonly string[] = []): string {
  const columns = columnsRead.map(({ field }) => cellSql(columnOf(field), field.source_type ?? ''));
  return `select ${[...columns, ...more].join(', ')} from ${fromClause(duckdbNames, withSchema(request))}`;
}

export const withSchema = (request: ReadRequest): ReadRequest => {
  const { stream } = request;
  return { ...request, stream: { ...stream, namespace: stream.namespace ?? 'main' } };
};

/** The days that a read is limited to, as SQL. */
export function windowConditions(request: ReadRequest): string[] {
  const limited = windowOf(request);
  if (!limited) return [];
  const { field, window } = limited;
  return limits({ column: columnOf(field), isZoned: field.type === 'timestamp_tz' }, window);
}

async function* wholeRead(ctx: Context, reader: Reader, request: ReadRequest): AsyncGenerator<Batch> {
  const { columns } = request;
  const conditions = windowConditions(request);
  const wide = await wideTable(reader.connection, withSchema(request));
  if (!wide) {
    const select = `${selectText(request, columns)}${where(conditions)}`;
    yield* batches(ctx, chunksOf(reader.connection, select), columns.length);
    return;
  }
  const consumed = { bytes: 0 };
  const select = (more: string[]) => `${selectText(request, columns, ['rowid'])}${where([...conditions, ...more])}`;
  for await (const batch of batches(ctx, wideChunks(wide, { ...reader, select, consumed }), columns.length)) {
    consumed.bytes += batch.bytes;
    yield batch;
  }
}

/** @param width columns of a row, which others may follow */
async function* batches(ctx: Context, chunks: AsyncIterable<DuckDBDataChunk>, width: number): AsyncGenerator<Batch> {
  let rows: Cell[][] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    ctx.signal.throwIfAborted();
    // Row by row: all rows of a chunk as strings would take its size once more.
    const vectors = Array.from({ length: width }, (_, at) => chunk.getColumnVector(at));
    for (let at = 0; at < chunk.rowCount; at++) {
      const row = vectors.map((vector) => vector.getItem(at) as Cell);
      for (const cell of row) bytes += cell === null ? 0 : cell.length;
      rows.push(row);
      if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
      yield { rows, bytes };
      [rows, bytes] = [[], 0];
    }
  }
  // A read that is interrupted ends like one that is complete.
  ctx.signal.throwIfAborted();
  if (rows.length > 0) yield { rows, bytes };
}
