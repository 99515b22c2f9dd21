import type { Cell, LogicalType } from '../define.ts';
import { ConnectorError, DataError, SchemaChangedError } from '../errors.ts';
import { type DuckDb, identifier, literal, openDuckDb } from './duckdb.ts';
import { localCopy } from './local-copy.ts';
import {
  BATCH_ROWS,
  type FileColumn,
  type FileReader,
  type FileRequest,
  type SourceContext,
  warnOfNewColumns,
} from './reader.ts';
import type { FoundFile } from './root.ts';

const BATCH_BYTES = 1_000_000;

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

  async *rows(ctx, found, request) {
    const copy = await localCopy(found, 'whole', ctx.filesRoot);
    const file = { ...found, path: copy.path };
    const duck = await openDuckDb();
    const stop = () => duck.connection.interrupt();
    ctx.signal.addEventListener('abort', stop, { once: true });
    try {
      yield* readRows(ctx, { duck, file, request });
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
  },
};

interface Reading {
  duck: DuckDb;
  file: FoundFile;
  request: FileRequest;
}

async function* readRows(ctx: SourceContext, { duck, file, request: { columns, known, skip } }: Reading) {
  const native = new Map((await described(duck, file)).map(({ name, type }) => [name, type]));
  warnOfNewColumns(ctx, file, [...native.keys()], known);
  const selected = columns.map(({ name }) => {
    const type = native.get(name);
    if (type === undefined) {
      throw new SchemaChangedError('column_missing', `${file.name} has no column "${name}" any more`);
    }
    return canonical(identifier(name), type);
  });
  const list = selected.length > 0 ? selected.join(', ') : 'NULL';
  const result = await duck.connection.stream(`SELECT ${list} FROM ${scan(file)} OFFSET ${skip}`);
  let rows: Cell[][] = [];
  let bytes = 0;
  while (true) {
    ctx.signal.throwIfAborted();
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) break;
    const values = chunk.getColumns() as Cell[][];
    for (let at = 0; at < chunk.rowCount; at++) {
      const row = selected.map((_, column) => (values[column] as Cell[])[at] as Cell);
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
    dialect: 'duckdb',
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
  const message = error.message.replaceAll(file.path, file.name);
  return new DataError('malformed_parquet', `${file.name}: ${message}`, { cause: error });
}
