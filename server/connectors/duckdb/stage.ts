import { type DuckDBAppender, type DuckDBConnection, DuckDBDataChunk, VARCHAR } from '@duckdb/node-api';
import type { Cell } from '../define.ts';
import { DataError } from '../errors.ts';
import { execute, query } from './engine.ts';
import type { Target } from './tables.ts';
import { valueSql } from './types.ts';

/** What one chunk of DuckDB holds. */
const CHUNK_ROWS = 2048;
/** An appender keeps what it was given outside of the engine's memory limit until it is flushed. */
const FLUSH_BYTES = 8_000_000;
const STAGE = 'temp.main.stage';

/**
 * Cells that are not committed yet, as texts in a table of the engine's own memory: it spills to the disk and ends with
 * the engine. `rowid` is the order of arrival.
 */
export class Stage {
  #appender: DuckDBAppender | null = null;
  readonly #chunk: DuckDBDataChunk;
  readonly #width: number;
  #unflushed = 0;
  rows = 0;
  bytes = 0;

  constructor(
    private readonly connection: DuckDBConnection,
    private readonly target: Target,
  ) {
    this.#width = target.columns.length;
    this.#chunk = DuckDBDataChunk.create(target.columns.map(() => VARCHAR));
  }

  async add(rows: Cell[][], bytes: number): Promise<void> {
    if (!this.#appender) {
      const columns = Array.from({ length: this.#width }, (_, at) => `c${at} VARCHAR`);
      await execute(this.connection, `CREATE OR REPLACE TEMP TABLE stage (${columns.join(', ')})`);
      this.#appender = await this.connection.createAppender('stage', 'main', 'temp');
    }
    for (let from = 0; from < rows.length; from += CHUNK_ROWS) {
      const part = rows.slice(from, from + CHUNK_ROWS);
      // One chunk for all: its memory is not JavaScript's, so nothing would hurry to collect many of them.
      this.#chunk.reset();
      this.#chunk.setColumns(Array.from({ length: this.#width }, (_, at) => part.map((row) => row[at] as Cell)));
      this.#appender.appendDataChunk(this.#chunk);
    }
    this.rows += rows.length;
    this.bytes += bytes;
    this.#unflushed += bytes;
    if (this.#unflushed < FLUSH_BYTES) return;
    this.#appender.flushSync();
    this.#unflushed = 0;
  }

  /** What was added can be selected from now on. */
  close(): void {
    this.#appender?.closeSync();
    this.#appender = null;
  }

  async clear(): Promise<void> {
    if (this.rows > 0) await execute(this.connection, `DROP TABLE IF EXISTS ${STAGE}`);
    [this.rows, this.bytes] = [0, 0];
  }

  /** A SELECT of the values `c0`, `c1`, … and the order of arrival, `seq`. */
  values(): string {
    const values = this.target.typed.map(({ type }, at) => `${valueSql(`c${at}`, type)} AS c${at}`);
    return `SELECT ${values.join(', ')}, rowid AS seq FROM ${STAGE}`;
  }

  /** @throws DataError naming a row without a value in one of these columns. */
  async assertPresent(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const [row] = await query(
        this.connection,
        `SELECT rowid + 1 FROM ${STAGE} WHERE ${this.#cell(name)} IS NULL LIMIT 1`,
      );
      if (row)
        throw new DataError('null_value', `${this.target.table}: row ${row[0]} has no ${name}, which is its key`);
    }
  }

  /** After a cast that failed: the row and column that made it fail; null when it was something else. */
  async misfit(): Promise<DataError | null> {
    for (const { name, type } of this.target.typed) {
      const cell = this.#cell(name);
      const [row] = await query(
        this.connection,
        `SELECT rowid + 1, left(${cell}, 100) FROM ${STAGE} WHERE ${cell} IS NOT NULL AND TRY(${valueSql(cell, type)}) IS NULL LIMIT 1`,
      );
      if (!row) continue;
      const message = `${this.target.table}: row ${row[0]} has "${row[1]}" in ${name}, which is no ${type}`;
      return new DataError('value_does_not_fit', message);
    }
    return null;
  }

  readonly #cell = (name: string) => `c${this.target.columns.findIndex((column) => column.name === name)}`;
}
