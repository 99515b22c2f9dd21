import type { DuckDBDataChunk } from '@duckdb/node-api';
import type { Cell } from '../../../../contract/connector.ts';
import { ConnectorError, DataError, SchemaChangedError } from '../../../../contract/errors.ts';
import { type DuckDb, identifier, literal, openDuckDb } from '../../../duckdb/instance.ts';
import { holdMemory } from '../../../../../platform/memory/held-memory.ts';
import { duckdbBindings } from '../../../duckdb/package.ts';
import { localCopy } from '../../stores/local-copy.ts';
import { escaped, isTooFine, logicalType, PLAIN_TEXT, textAs, TOO_FINE } from './types.ts';
import {
  BATCH_ROWS,
  type CopyPiece,
  type CopyRequest,
  type FileBatch,
  type FileColumn,
  type FileRequest,
  warnOfNewColumns,
} from '../format.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';
import { copyColumn } from './copy/columns.ts';
import { CopyRows } from './copy/rows.ts';
import { joinedTexts, stringsOf } from './text-bytes.ts';

/**
 * DuckDB, and rows on their way to the destination. While they counted as growth, the worker collected all garbage three
 * times per 1M rows, which took a tenth of its processor time and freed nothing. At 128 MB it still did so twice.
 */
const HELD_BYTES = 160 << 20;
const BATCH_BYTES = 1_000_000;
/** Chunks up to this size are read ahead. */
const MAX_AHEAD_BYTES = 8 << 20;
/** The source types are those of DuckDB's Parquet reader. */
export const PARQUET_DIALECT = 'duckdb';

export async function parquetColumns(ctx: SourceContext, found: FoundFile): Promise<FileColumn[]> {
  const copy = await localCopy(found, 'footer', ctx.filesRoot);
  const file = { ...found, path: copy.path };
  try {
    return await withDuckDb(file, (duck) => columnsOf(duck, file));
  } finally {
    await copy.close();
  }
}

export const parquetRows = (ctx: SourceContext, found: FoundFile, request: FileRequest): AsyncGenerator<FileBatch> =>
  withFile(ctx, found, (duck, file) => readRows(ctx, { duck, file, request }));

/** COPY text that DuckDB itself produces, three times as fast as cell by cell, or rows of a binary COPY. */
export const parquetCopy = (ctx: SourceContext, found: FoundFile, request: CopyRequest): AsyncGenerator<CopyPiece> =>
  withFile(ctx, found, (duck, file) => {
    const read = request.format === 'pgcopy-binary' ? readBinary : readLines;
    return read(ctx, { duck, file, request });
  });

/** Reads the file with an engine of its own and leaves nothing open. */
async function* withFile<Part>(
  ctx: SourceContext,
  found: FoundFile,
  read: (duck: DuckDb, file: FoundFile) => AsyncGenerator<Part>,
): AsyncGenerator<Part> {
  const copy = await localCopy(found, 'whole', ctx.filesRoot);
  const file = { ...found, path: copy.path };
  const duck = await openDuckDb();
  const release = holdMemory(HELD_BYTES);
  const stop = () => duck.connection.interrupt();
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    yield* read(duck, file);
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw parquetError(error, file);
  } finally {
    ctx.signal.removeEventListener('abort', stop);
    // A result that was not read to its end keeps the file open until the next statement.
    await duck.connection.run('SELECT 1').catch(() => {});
    duck.close();
    release();
    await copy.close();
  }
}

interface Reading<Request> {
  duck: DuckDb;
  file: FoundFile;
  request: Request;
}

/** The requested columns by what `select` makes of SQL for one and of its type in the file. */
async function selected<Selected>(
  ctx: SourceContext,
  { duck, file, request }: Reading<Pick<FileRequest, 'columns' | 'known'>>,
  select: (column: FileColumn, sql: string, native: string) => Selected,
): Promise<Selected[]> {
  const native = new Map((await described(duck, file)).map(({ name, type }) => [name, type]));
  warnOfNewColumns(ctx, file, [...native.keys()], request.known);
  await warnOfNanoseconds(ctx, { duck, file }, request.columns);
  return request.columns.map((column) => {
    const type = native.get(column.name);
    if (type === undefined) {
      throw new SchemaChangedError('column_missing', `${file.name} has no column "${column.name}"`);
    }
    return select(column, identifier(column.name), type);
  });
}

/** DuckDB reads moments of nanoseconds in UTC as microseconds, and does not say whether they were. */
async function warnOfNanoseconds(
  ctx: SourceContext,
  { duck, file }: Pick<Reading<unknown>, 'duck' | 'file'>,
  columns: readonly FileColumn[],
): Promise<void> {
  const reader = await duck.connection.runAndReadAll(
    `SELECT name FROM parquet_schema(${pattern(file)}) WHERE logical_type LIKE '%isAdjustedToUTC=1%NANOS=Nano%'`,
  );
  const found = new Set(reader.getRows().map(([name]) => name));
  const names = columns.map(({ name }) => name).filter((name) => found.has(name));
  if (names.length === 0) return;
  ctx.warn(
    'nanoseconds_dropped',
    `${file.name} has nanoseconds in UTC, of which microseconds are loaded: ${names.join(', ')}`,
  );
}

const canonicalText = ({ type }: FileColumn, sql: string, native: string) => textAs(type, sql, native);

interface Piece {
  /** Approximate size in memory. */
  size: number;
}

/** Converts each chunk of a result. Fetches the next one meanwhile, unless rows are wide: a chunk has 2,048 of them. */
async function* pieces<Made extends Piece>(
  ctx: SourceContext,
  { duck, sql }: { duck: DuckDb; sql: string },
  make: (chunk: DuckDBDataChunk) => Made,
): AsyncGenerator<Made> {
  const result = await duck.connection.stream(sql);
  let ahead: ReturnType<typeof result.fetchChunk> | null = null;
  try {
    while (true) {
      ctx.signal.throwIfAborted();
      const chunk = await (ahead ?? result.fetchChunk());
      ahead = null;
      if (!chunk || chunk.rowCount === 0) return;
      const made = make(chunk);
      if (made.size <= MAX_AHEAD_BYTES) ahead = result.fetchChunk();
      yield made;
    }
  } finally {
    await ahead?.catch(() => {});
  }
}

async function* readRows(ctx: SourceContext, reading: Reading<FileRequest>): AsyncGenerator<FileBatch> {
  const { duck, file, request } = reading;
  const columns = await selected(ctx, reading, canonicalText);
  const list = columns.length > 0 ? columns.join(', ') : 'NULL';
  const sql = `SELECT ${list} FROM ${scan(file)} OFFSET ${request.skip}`;
  let rows: Cell[][] = [];
  let bytes = 0;
  for await (const piece of pieces(ctx, { duck, sql }, (chunk) => rowsOf(chunk, columns.length))) {
    for (const row of piece.rows) rows.push(row);
    bytes += piece.size;
    if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
    yield { rows, bytes };
    rows = [];
    bytes = 0;
  }
  if (rows.length > 0) yield { rows, bytes };
}

function rowsOf(chunk: DuckDBDataChunk, width: number): Piece & { rows: Cell[][] } {
  const cells = chunk.getColumns() as Cell[][];
  let size = 0;
  const rows = Array.from({ length: chunk.rowCount }, (_, at) => {
    const row = Array.from({ length: width }, (__, column) => cells[column]![at]!);
    for (const cell of row) size += cell === null ? 0 : cell.length;
    return row;
  });
  return { rows, size };
}

async function* readLines(ctx: SourceContext, reading: Reading<CopyRequest>): AsyncGenerator<CopyPiece> {
  const { duck, file, request } = reading;
  const texts = await selected(ctx, reading, canonicalText);
  const cells = texts.map((text, at) => {
    const plain = PLAIN_TEXT.has(request.columns[at]?.type ?? 'string');
    return `coalesce(${plain ? text : escaped(text)}, '\\N')`;
  });
  const sql = `SELECT concat(${cells.join(', chr(9), ')}, chr(10)) FROM ${scan(file)}`;
  yield* pieces(ctx, { duck, sql }, (chunk) => {
    const lines = stringsOf(duckdbBindings().data_chunk_get_vector(chunk.chunk, 0), chunk.rowCount);
    const bytes = joinedTexts(lines, chunk.rowCount, { take: (length) => request.pool.take(length) });
    const removed_nul = bytes.includes(0);
    const own = removed_nul ? bytes.filter((byte) => byte !== 0) : bytes;
    return { bytes: own, rows: chunk.rowCount, removed_nul, size: bytes.length };
  });
}

async function* readBinary(ctx: SourceContext, reading: Reading<CopyRequest>): AsyncGenerator<CopyPiece> {
  const { duck, file, request } = reading;
  const columns = await selected(ctx, reading, copyColumn);
  const rows = new CopyRows(columns, request.pool);
  const sql = `SELECT ${columns.map((column) => column.sql).join(', ')} FROM ${scan(file)}`;
  yield* pieces(ctx, { duck, sql }, (chunk) => {
    const bytes = rows.rowsOf(chunk);
    return { bytes, rows: chunk.rowCount, removed_nul: rows.hasNul(), size: bytes.length };
  });
}

/** DuckDB takes the path for a pattern, so its wildcards are escaped by brackets. */
const pattern = (file: FoundFile) => literal(file.path.replace(/[*?[]/g, '[$&]'));
const scan = (file: FoundFile) => `read_parquet(${pattern(file)})`;

async function described(duck: DuckDb, file: FoundFile): Promise<{ name: string; type: string }[]> {
  const reader = await duck.connection.runAndReadAll(`DESCRIBE SELECT * FROM ${scan(file)}`);
  return reader.getRowObjects().map((row) => ({ name: String(row.column_name), type: String(row.column_type) }));
}

/** Nanoseconds that microseconds do not hold stay text, as in other formats, if a row group begins or ends with them. */
async function columnsOf(duck: DuckDb, file: FoundFile): Promise<FileColumn[]> {
  const columns = await described(duck, file);
  const fine = columns.some(({ type }) => type === 'TIMESTAMP_NS') ? await tooFine(duck, file) : new Set();
  return columns.map(({ name, type }) => ({
    name,
    type: type === 'TIMESTAMP_NS' && fine.has(name) ? 'string' : logicalType(type),
    source_type: type,
    dialect: PARQUET_DIALECT,
    nullable: true,
  }));
}

async function tooFine(duck: DuckDb, file: FoundFile): Promise<Set<string>> {
  const bounds = ['stats_min_value', 'stats_max_value'].map((name) => `TRY_CAST(${name} AS TIMESTAMP_NS)`);
  const reader = await duck.connection.runAndReadAll(
    `SELECT DISTINCT path_in_schema FROM parquet_metadata(${pattern(file)}) WHERE ${bounds.map(isTooFine).join(' OR ')}`,
  );
  return new Set(reader.getRows().map(([name]) => String(name)));
}

async function withDuckDb<T>(file: FoundFile, use: (duck: DuckDb) => Promise<T>): Promise<T> {
  const duck = await openDuckDb();
  try {
    return await use(duck);
  } catch (error) {
    throw parquetError(error, file);
  } finally {
    duck.close();
  }
}

/** DuckDB's messages contain the absolute path: users see only the name. */
function parquetError(error: unknown, file: FoundFile): unknown {
  if (error instanceof ConnectorError || !(error instanceof Error)) return error;
  // The lines after the first quote the SQL statement.
  const message = (error.message.split('\n')[0] ?? '').replaceAll(file.path, file.name);
  if (message.endsWith(TOO_FINE)) {
    const value = message.slice(message.indexOf('column '));
    const hint = 'Write the files with microseconds, or the column as text';
    return new DataError('finer_than_microseconds', `${file.name}, ${value}. ${hint}`, { cause: error });
  }
  return new DataError('malformed_parquet', `${file.name}: ${message}`, { cause: error });
}
