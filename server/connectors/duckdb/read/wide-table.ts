import type { DuckDBConnection, DuckDBDataChunk } from '@duckdb/node-api';
import type { ReadRequest } from '../../contract/connector.ts';
import { fromClause } from '../../kits/sql/request.ts';
import { DATABASE, type Engine, query } from '../connection/engine.ts';
import { isOutOfMemory } from '../connection/failures.ts';
import { duckdbNames, literal } from '../connection/sql.ts';

/** Of a row: those that DuckDB reads at once then have 16 MB. */
const WIDE_BYTES = 8192;
/** Longer texts are stored apart from the others of their column. */
const APART_BYTES = 4096;
const PART_BYTES = 8_000_000;
const SHRINK = 4;

export interface Reader {
  connection: DuckDBConnection;
  engine: Engine;
}

/** A table whose rows may be too wide to read 2,048 of them at once, as DuckDB does. */
export interface WideTable {
  /** The number behind that of its last row. */
  end: number;
  /** Rows that fit into a part however wide they are. Infinity: the table cannot be read in parts. */
  rows: number;
}

/** Null: no table, or one whose rows are narrow. The file has the length of the longest text of each part of a column. */
export async function wideTable(connection: DuckDBConnection, request: ReadRequest): Promise<WideTable | null> {
  const { stream, columns } = request;
  const schema = stream.namespace;
  if (schema === null || stream.dataset_sql !== undefined) return null;
  const named = `database_name = '${DATABASE}' and schema_name = ${literal(schema)} and table_name = ${literal(stream.name)}`;
  const [found] = await query(connection, `select 1 from duckdb_tables() where ${named}`);
  if (!found) return null;
  const table = fromClause(duckdbNames, request);
  // Where some values are NULL, DuckDB reads all of the 2,048 even for a single row.
  const texts = await query(
    connection,
    `select max(try_cast(regexp_extract(stats, 'Max String Length: (\\d+)', 1) as bigint)) as longest,
       bool_or(segment_type = 'VALIDITY' and compression <> 'Constant')
       from pragma_storage_info(${literal(table)})
      where column_name in (${columns.map(({ field }) => literal(field.path[0]!)).join(', ')})
      group by column_name having longest is not null`,
  );
  const lengths = texts.map(([longest]) => Number(longest));
  const widest = lengths.reduce((sum, length) => sum + length, 0);
  if (widest < WIDE_BYTES) return null;
  const [[last] = []] = await query(connection, `select max(rowid) from ${table}`);
  const isMixed = texts.some(([longest, mixed]) => Number(longest) > APART_BYTES && mixed === 'true');
  return { end: Number(last ?? -1) + 1, rows: isMixed ? Number.POSITIVE_INFINITY : Math.ceil(PART_BYTES / widest) };
}

/** The chunks of a SELECT. */
export async function* chunksOf(connection: DuckDBConnection, select: string): AsyncGenerator<DuckDBDataChunk> {
  const result = await connection.stream(select);
  while (true) {
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) return;
    yield chunk;
  }
}

/** The chunks of a SELECT that sorts a table with wide rows, which the engine holds before it gives the first one. */
export async function* sortedChunks({ connection, engine }: Reader, select: string): AsyncGenerator<DuckDBDataChunk> {
  let isBegun = false;
  while (true) {
    try {
      for await (const chunk of chunksOf(connection, select)) {
        isBegun = true;
        yield chunk;
      }
      return;
    } catch (error) {
      if (isBegun || !isOutOfMemory(error) || !(await freeMemory(engine))) throw error;
    }
  }
}

/** A result that failed has memory of the engine until it is collected. */
function freeMemory(engine: Engine): Promise<boolean> {
  Bun.gc(true);
  return engine.raiseLimit();
}

interface WideRead extends Reader {
  /** A SELECT with these conditions, whose last column is the number of the row. */
  select(conditions: string[]): string;
  /** What has been made of the chunks so far. */
  consumed: { bytes: number };
}

/** The chunks of a table in the order of its rows, in parts of about the same size. */
export async function* wideChunks(
  { end, rows: first }: WideTable,
  { connection, engine, select, consumed }: WideRead,
): AsyncGenerator<DuckDBDataChunk> {
  const isParted = Number.isFinite(first);
  let rows = first;
  for (let from = 0; from < end; ) {
    const [start, before, until] = [from, consumed.bytes, Math.min(from + rows, end)];
    try {
      let isFull = false;
      for await (const chunk of chunksOf(connection, select([`rowid >= ${from}`, `rowid < ${until}`]))) {
        from = numberOfLast(chunk) + 1;
        yield chunk;
        isFull = isParted && consumed.bytes - before > PART_BYTES;
        if (isFull) break;
      }
      if (!isFull) from = until;
      const fitting = Math.floor(((from - start) * PART_BYTES) / Math.max(1, consumed.bytes - before));
      if (isParted) rows = Math.max(1, Math.min(2 * rows, fitting));
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      if (isParted && rows > 1) rows = Math.ceil(rows / SHRINK);
      else if (!(await freeMemory(engine))) throw error;
    }
  }
}

const numberOfLast = (chunk: DuckDBDataChunk) =>
  Number(chunk.getColumnVector(chunk.columnCount - 1).getItem(chunk.rowCount - 1));
