import { type DuckDBAppender, type DuckDBConnection, DuckDBDataChunk, VARCHAR } from '@duckdb/node-api';
import type { Cell } from '../define.ts';

/** What one chunk of DuckDB holds, and what it reads at once. */
const CHUNK_ROWS = 2048;
/** An appender keeps what it was given outside of the engine's memory limit until it is flushed. */
const FLUSH_BYTES = 8 << 20;
/** Rows of which a chunk would be larger go into tables of this size, since DuckDB reads no chunk over two tables. */
const TABLE_BYTES = 16 << 20;
/** Of Parquet, in memory until it is whole. */
const GROUP_BYTES = 16 << 20;
const GROUP_ROWS = 122_880;

/**
 * Cells as texts, in the order of their arrival, in tables of DuckDB that spill to the disk: mostly one, more where rows
 * are wide, so that whoever reads them needs little memory whatever their width.
 */
export class TextTables {
  #appender: DuckDBAppender | null = null;
  #tables = 0;
  #rows = 0;
  #bytes = 0;
  #unflushed = 0;
  #widest = 1;
  readonly #chunk: DuckDBDataChunk;

  constructor(
    private readonly connection: DuckDBConnection,
    private readonly width: number,
  ) {
    this.#chunk = DuckDBDataChunk.create(Array.from({ length: width }, () => VARCHAR));
  }

  async add(rows: readonly Cell[][]): Promise<void> {
    for (let from = 0; from < rows.length; ) {
      const { to, bytes } = this.#part(rows, from);
      const part = rows.slice(from, to);
      this.#appender ??= await this.#begin();
      // One chunk for all: its memory is not JavaScript's, so nothing would hurry to collect many of them.
      this.#chunk.reset();
      this.#chunk.setColumns(Array.from({ length: this.width }, (_, at) => part.map((row) => row[at] ?? null)));
      this.#appender.appendDataChunk(this.#chunk);
      this.#rows += part.length;
      this.#bytes += bytes;
      this.#unflushed += bytes;
      this.#endFull();
      from = to;
    }
  }

  /** Ends the last table. @returns what to select the columns `c0`, `c1`, … from, and how many rows a group may have. */
  async end(): Promise<{ from: string; group_rows: number }> {
    if (this.#tables === 0) this.#appender = await this.#begin();
    this.#close();
    const tables = Array.from({ length: this.#tables }, (_, at) => `SELECT * FROM cells_${at}`);
    const group_rows = Math.min(GROUP_ROWS, Math.max(1, Math.floor(GROUP_BYTES / this.#widest)));
    return { from: `(${tables.join(' UNION ALL ')})`, group_rows };
  }

  /** As many rows as fit into a chunk and a flush; at least one. */
  #part(rows: readonly Cell[][], from: number): { to: number; bytes: number } {
    let [to, bytes] = [from, 0];
    while (to < rows.length && to - from < CHUNK_ROWS && bytes < FLUSH_BYTES) {
      for (const cell of rows[to]!) bytes += cell?.length ?? 0;
      to += 1;
    }
    return { to, bytes };
  }

  async #begin(): Promise<DuckDBAppender> {
    const name = `cells_${this.#tables}`;
    this.#tables += 1;
    const columns = Array.from({ length: this.width }, (_, at) => `c${at} VARCHAR`);
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
