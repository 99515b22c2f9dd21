import type { DuckDBAppender, DuckDBConnection, DuckDBDataChunk } from '@duckdb/node-api';

/** The capacity of a DuckDB chunk, and the number of rows that DuckDB reads at once. */
export const CHUNK_ROWS = 2048;
/** Until it is flushed, an appender holds its rows outside of the engine's memory limit. */
export const FLUSH_BYTES = 8 << 20;
/** If a chunk of rows would be larger, tables end at this size: a chunk that DuckDB reads never spans two tables. */
const TABLE_BYTES = 16 << 20;
/** Parquet row groups, which stay in memory until they are complete. */
const GROUP_BYTES = 16 << 20;
const GROUP_ROWS = 122_880;

/**
 * Collects rows, in the order of arrival, in DuckDB tables that spill to disk. Usually one table; several if rows are
 * wide, so that reading them needs little memory whatever their width.
 */
export class ChunkTables {
  #appender: DuckDBAppender | null = null;
  #tables = 0;
  #rows = 0;
  #bytes = 0;
  #unflushed = 0;
  #widest = 1;

  /** @param types of the columns, which are called `c0`, `c1`, … */
  constructor(
    private readonly connection: DuckDBConnection,
    private readonly types: readonly string[],
  ) {}

  /** @param bytes approximate size of its values */
  async append(chunk: DuckDBDataChunk, bytes: number): Promise<void> {
    this.#appender ??= await this.#begin();
    this.#appender.appendDataChunk(chunk);
    this.#rows += chunk.rowCount;
    this.#bytes += bytes;
    this.#unflushed += bytes;
    this.#endFull();
  }

  /** Ends the last table. @returns SQL to select the columns from, and the largest number of rows of a row group */
  async end(): Promise<{ from: string; group_rows: number }> {
    if (this.#tables === 0) this.#appender = await this.#begin();
    this.#close();
    const tables = Array.from({ length: this.#tables }, (_, at) => `SELECT * FROM cells_${at}`);
    const group_rows = Math.min(GROUP_ROWS, Math.max(1, Math.floor(GROUP_BYTES / this.#widest)));
    return { from: `(${tables.join(' UNION ALL ')})`, group_rows };
  }

  async #begin(): Promise<DuckDBAppender> {
    const name = `cells_${this.#tables}`;
    this.#tables += 1;
    const columns = this.types.map((type, at) => `c${at} ${type}`);
    await this.connection.run(`CREATE TABLE ${name} (${columns.join(', ')})`);
    return this.connection.createAppender(name);
  }

  #endFull(): void {
    if (this.#unflushed < FLUSH_BYTES) return;
    this.#appender?.flushSync();
    this.#unflushed = 0;
    const chunkBytes = (this.#bytes / this.#rows) * CHUNK_ROWS;
    if (this.#bytes >= TABLE_BYTES && chunkBytes >= TABLE_BYTES) this.#close();
  }

  #close(): void {
    this.#appender?.closeSync();
    this.#widest = Math.max(this.#widest, this.#bytes / Math.max(1, this.#rows));
    [this.#appender, this.#rows, this.#bytes, this.#unflushed] = [null, 0, 0, 0];
  }
}
