import type { Cell, LogicalType } from '../define.ts';
import { ConnectorError, DataError, SchemaChangedError } from '../errors.ts';
import { type DuckDb, identifier, literal, openDuckDb } from './duckdb.ts';
import { localCopy } from './local-copy.ts';
import {
  BATCH_ROWS,
  type FileBatch,
  type FileColumn,
  type FileReader,
  type FileRequest,
  type SourceContext,
  warnOfNewColumns,
} from './reader.ts';
import type { FoundFile } from './root.ts';

const BATCH_BYTES = 1_000_000;
/** Their types are those that DuckDB reads them as. */
export const PARQUET_DIALECT = 'duckdb';

export const parquetReader: FileReader = {
  async columns(ctx, found) {
    const copy = await localCopy(found, 'footer', ctx.filesRoot);
    const file = { ...found, path: copy.path };
    try {
      return await withDuckDb(file, async (duck) => columnsOf(await described(duck, file)));
    } finally {
      await copy.close();
    }
  },

  rows: (ctx, found, request) => withFile(ctx, found, (duck, file) => readRows(ctx, { duck, file, request })),
};

/** COPY text of a file, in pieces of whole lines, made by DuckDB itself: three times faster than by cells. */
export const parquetLines = (ctx: SourceContext, found: FoundFile, request: LineRequest): AsyncGenerator<Lines> =>
  withFile(ctx, found, (duck, file) => readLines(ctx, { duck, file, request }));

export type LineRequest = Pick<FileRequest, 'columns' | 'known'>;
export interface Lines {
  text: string;
  rows: number;
}

/** Runs `read` over the file with an engine of its own, and leaves nothing open. */
async function* withFile<Part>(
  ctx: SourceContext,
  found: FoundFile,
  read: (duck: DuckDb, file: FoundFile) => AsyncGenerator<Part>,
): AsyncGenerator<Part> {
  const copy = await localCopy(found, 'whole', ctx.filesRoot);
  const file = { ...found, path: copy.path };
  const duck = await openDuckDb();
  const stop = () => duck.connection.interrupt();
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    yield* read(duck, file);
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw parquetError(error, file);
  } finally {
    ctx.signal.removeEventListener('abort', stop);
    // A result that was not read to its end keeps the file open until another statement takes its place.
    await duck.connection.run('SELECT 1').catch(() => {});
    duck.close();
    await copy.close();
  }
}

interface Reading<Request> {
  duck: DuckDb;
  file: FoundFile;
  request: Request;
}

/** SQL of the columns asked for, as canonical text. */
async function selected(ctx: SourceContext, { duck, file, request }: Reading<LineRequest>): Promise<string[]> {
  const native = new Map((await described(duck, file)).map(({ name, type }) => [name, type]));
  warnOfNewColumns(ctx, file, [...native.keys()], request.known);
  return request.columns.map(({ name }) => {
    const type = native.get(name);
    if (type === undefined) {
      throw new SchemaChangedError('column_missing', `${file.name} has no column "${name}" any more`);
    }
    return canonical(identifier(name), type);
  });
}

async function* chunks(ctx: SourceContext, duck: DuckDb, sql: string) {
  const result = await duck.connection.stream(sql);
  while (true) {
    ctx.signal.throwIfAborted();
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) return;
    yield { rows: chunk.rowCount, columns: chunk.getColumns() as Cell[][] };
  }
}

async function* readRows(ctx: SourceContext, reading: Reading<FileRequest>): AsyncGenerator<FileBatch> {
  const { duck, file, request } = reading;
  const columns = await selected(ctx, reading);
  const list = columns.length > 0 ? columns.join(', ') : 'NULL';
  let rows: Cell[][] = [];
  let bytes = 0;
  for await (const chunk of chunks(ctx, duck, `SELECT ${list} FROM ${scan(file)} OFFSET ${request.skip}`)) {
    for (let at = 0; at < chunk.rows; at++) {
      const row = columns.map((_, column) => (chunk.columns[column] as Cell[])[at] as Cell);
      for (const cell of row) bytes += cell === null ? 0 : cell.length;
      rows.push(row);
    }
    if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
    yield { rows, bytes };
    rows = [];
    bytes = 0;
  }
  if (rows.length > 0) yield { rows, bytes };
}

async function* readLines(ctx: SourceContext, reading: Reading<LineRequest>): AsyncGenerator<Lines> {
  const { duck, file, request } = reading;
  const texts = await selected(ctx, reading);
  const cells = texts.map((text, at) => {
    const plain = PLAIN_TEXT.has(request.columns[at]?.type ?? 'string');
    return `coalesce(${plain ? text : escaped(text)}, '\\N')`;
  });
  const sql = `SELECT concat(${cells.join(', chr(9), ')}, chr(10)) FROM ${scan(file)}`;
  for await (const { rows, columns } of chunks(ctx, duck, sql)) {
    yield { text: (columns[0] as string[]).join(''), rows };
  }
}

/** Types whose text never holds what COPY escapes. */
const PLAIN_TEXT: ReadonlySet<string> = new Set([
  'integer',
  'number',
  'boolean',
  'date',
  'timestamp',
  'timestamp_tz',
  'time',
]);

/** As COPY escapes it. */
function escaped(text: string): string {
  const steps = [
    ['\\', '\\\\'],
    ['\t', '\\t'],
    ['\n', '\\n'],
    ['\r', '\\r'],
  ] as const;
  const replaced = steps.reduce((sql, [from, to]) => `replace(${sql}, ${literal(from)}, ${literal(to)})`, text);
  const needed = steps.map(([from]) => `contains(${text}, ${literal(from)})`).join(' OR ');
  return `CASE WHEN ${needed} THEN ${replaced} ELSE ${text} END`;
}

/** The path is a pattern to DuckDB: its wildcards are put in brackets. */
const scan = (file: FoundFile) => `read_parquet(${literal(file.path.replace(/[*?[]/g, '[$&]'))})`;

async function described(duck: DuckDb, file: FoundFile): Promise<{ name: string; type: string }[]> {
  const reader = await duck.connection.runAndReadAll(`DESCRIBE SELECT * FROM ${scan(file)}`);
  return reader.getRowObjects().map((row) => ({ name: String(row.column_name), type: String(row.column_type) }));
}

const columnsOf = (columns: { name: string; type: string }[]): FileColumn[] =>
  columns.map(({ name, type }) => ({
    name,
    type: logicalType(type),
    source_type: type,
    dialect: PARQUET_DIALECT,
    nullable: true,
  }));

function logicalType(type: string): LogicalType {
  if (type.endsWith(']')) return 'array';
  if (/^(STRUCT|MAP|UNION|JSON)/.test(type)) return 'json';
  if (/^(TINYINT|SMALLINT|INTEGER|BIGINT|UTINYINT|USMALLINT|UINTEGER)$/.test(type)) return 'integer';
  if (/^(UBIGINT|U?HUGEINT|FLOAT|DOUBLE|DECIMAL)/.test(type)) return 'number';
  if (type === 'BOOLEAN') return 'boolean';
  if (type === 'DATE') return 'date';
  if (type === 'TIMESTAMP WITH TIME ZONE') return 'timestamp_tz';
  if (type.startsWith('TIMESTAMP')) return 'timestamp';
  if (type === 'TIME') return 'time';
  return type === 'BLOB' ? 'binary' : 'string';
}

/** SQL that gives the canonical text of a column. */
function canonical(column: string, type: string): string {
  const text = `CAST(${column} AS VARCHAR)`;
  if (type === 'BLOB') return `'\\x' || lower(hex(${column}))`;
  if (type === 'FLOAT' || type === 'DOUBLE') {
    return `CASE ${text} WHEN 'nan' THEN 'NaN' WHEN 'inf' THEN 'Infinity' WHEN '-inf' THEN '-Infinity' ELSE ${text} END`;
  }
  if (type === 'TIMESTAMP_NS') {
    const finer = `epoch_ns(${column}) % 1000 <> 0`;
    return `CASE WHEN ${finer} THEN error('nanoseconds would be lost') ELSE CAST(CAST(${column} AS TIMESTAMP) AS VARCHAR) END`;
  }
  return ['array', 'json'].includes(logicalType(type)) && type !== 'JSON'
    ? `CAST(to_json(${column}) AS VARCHAR)`
    : text;
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

/** DuckDB names the file with its whole path: users are told only what is theirs. */
function parquetError(error: unknown, file: FoundFile): unknown {
  if (error instanceof ConnectorError || !(error instanceof Error)) return error;
  // What follows shows our own statement.
  const message = (error.message.split('\n')[0] ?? '').replaceAll(file.path, file.name);
  return new DataError('malformed_parquet', `${file.name}: ${message}`, { cause: error });
}
