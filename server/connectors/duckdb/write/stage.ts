import type { DuckDBAppender, DuckDBConnection, DuckDBDataChunk } from '@duckdb/node-api';
import { duckdb } from '../../kits/duckdb/package.ts';
import type { Cell } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { StagedChanges } from '../../kits/sql/merge/staged-changes.ts';
import { isMerge, type Target } from '../../kits/sql/target.ts';
import { execute, query } from '../connection/engine.ts';
import { columnList } from '../connection/sql.ts';
import { valueSql } from '../connection/types.ts';

/** The capacity of one DuckDB chunk. */
const CHUNK_ROWS = 2048;
/** Until it is flushed, an appender's rows do not count towards the engine's memory limit. */
const FLUSH_BYTES = 8_000_000;
export const STAGE = 'temp.main.stage';

/**
 * Cells that are not committed yet, as texts in a temporary table, which spills to disk and ends with the engine. `rowid`
 * is the order of arrival.
 */
export class Stage {
  #appender: DuckDBAppender | null = null;
  readonly #chunk: DuckDBDataChunk;
  readonly #width: number;
  #unflushed = 0;
  #last: number | null = null;
  rows = 0;
  bytes = 0;
  /** Rows that were staged, less those other than deletes that were taken out. */
  taken = 0;
  /** Null: whole rows only. */
  changes: StagedChanges | null = null;
  /** Rows were taken out that exist at the source (rejects.ts). */
  refused = false;
  /** Places of the key's cells in a row. */
  readonly key: number[];

  constructor(
    private readonly connection: DuckDBConnection,
    private readonly target: Target,
  ) {
    this.key = isMerge(target)
      ? target.primary_key.map((name) => target.columns.findIndex((one) => one.name === name))
      : [];
    // What happened to a row follows its cells.
    this.#width = target.columns.length + (isMerge(target) ? 1 : 0);
    this.#chunk = duckdb().DuckDBDataChunk.create(Array.from({ length: this.#width }, () => duckdb().VARCHAR));
  }

  async add(rows: Cell[][], bytes: number): Promise<void> {
    this.taken += rows.length;
    await this.#append(rows, bytes);
  }

  /** Forgets the staged rows and removes those of the table. */
  async truncate(): Promise<void> {
    this.close();
    await this.#drop();
    this.noted().truncate();
  }

  /** The changes staged so far. From the first call on, the rows are changes. */
  noted(): StagedChanges {
    return (this.changes ??= new StagedChanges());
  }

  async #append(rows: Cell[][], bytes: number): Promise<void> {
    if (!this.#appender) {
      const columns = Array.from({ length: this.#width }, (_, at) => `c${at} VARCHAR`);
      await execute(this.connection, `CREATE OR REPLACE TEMP TABLE stage (${columns.join(', ')})`);
      this.#appender = await this.connection.createAppender('stage', 'main', 'temp');
    }
    for (let from = 0; from < rows.length; from += CHUNK_ROWS) {
      const part = rows.slice(from, from + CHUNK_ROWS);
      // One chunk is reused: its memory is outside the JavaScript heap, so many of them would be collected late.
      this.#chunk.reset();
      this.#chunk.setColumns(Array.from({ length: this.#width }, (_, at) => part.map((row) => row[at] ?? null)));
      this.#appender.appendDataChunk(this.#chunk);
    }
    this.rows += rows.length;
    this.bytes += bytes;
    this.#unflushed += bytes;
    if (this.#unflushed < FLUSH_BYTES) return;
    this.#appender.flushSync();
    this.#unflushed = 0;
  }

  /** Runs `work` on the rows up to and including one. */
  async upTo<Result>(last: number, work: () => Promise<Result>): Promise<Result> {
    this.#last = last;
    try {
      return await work();
    } finally {
      this.#last = null;
    }
  }

  /** Appends the rows to the table, in the open transaction. */
  async insert(into: string): Promise<void> {
    if (this.rows === 0) return;
    const columns = this.target.typed.map((_, at) => `c${at}`).join(', ');
    const names = columnList(this.target.typed.map(({ name }) => name));
    const values = `SELECT ${columns} FROM (${this.values()})`;
    await execute(this.connection, `INSERT INTO ${into} (${names}) ${values}`);
  }

  /** Takes out rows that cannot be loaded. */
  async remove(where: string): Promise<void> {
    const upserts = isMerge(this.target) ? `AND coalesce(c${this.#width - 1}, '') <> 'd'` : '';
    const [row] = await query(this.connection, `SELECT count(*) FROM ${STAGE} WHERE ${where} ${upserts}`);
    this.taken -= Number(row?.[0]);
    this.rows -= await execute(this.connection, `DELETE FROM ${STAGE} WHERE ${where}`);
  }

  /** Makes the added rows visible to SELECT. */
  close(): void {
    this.#appender?.closeSync();
    this.#appender = null;
  }

  async clear(): Promise<void> {
    await this.#drop();
    [this.bytes, this.taken, this.changes, this.refused] = [0, 0, null, false];
  }

  async #drop(): Promise<void> {
    await execute(this.connection, `DROP TABLE IF EXISTS ${STAGE}`);
    this.rows = 0;
  }

  /** A SELECT of the values `c0`, `c1`, …, the order of arrival, `seq`, and with a merge what happened, `change`. */
  values(): string {
    const values = this.target.typed.map(({ type }, at) => `${valueSql(`c${at}`, type)} AS c${at}`);
    const change = isMerge(this.target) ? `, c${this.#width - 1} AS change` : '';
    const limit = this.#last === null ? '' : ` WHERE rowid <= ${this.#last}`;
    return `SELECT ${values.join(', ')}, rowid AS seq${change} FROM ${STAGE}${limit}`;
  }

  /** @throws DataError naming a row without a value in one of these columns. */
  async assertPresent(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const [row] = await query(
        this.connection,
        `SELECT rowid + 1 FROM ${STAGE} WHERE ${this.#cell(name)} IS NULL LIMIT 1`,
      );
      if (row)
        throw new DataError(
          'null_value',
          `${this.target.table}: row ${row[0]} has no ${name}, which is part of its key`,
        );
    }
  }

  /** After a failed cast: names the row and column; null when something else failed. */
  async misfit(): Promise<DataError | null> {
    for (const { name, type } of this.target.typed) {
      const cell = this.#cell(name);
      const [row] = await query(
        this.connection,
        `SELECT rowid + 1, left(${cell}, 100) FROM ${STAGE} WHERE ${cell} IS NOT NULL AND TRY(${valueSql(cell, type)}) IS NULL LIMIT 1`,
      );
      if (!row) continue;
      const message = `${this.target.table}: row ${row[0]} has "${row[1]}" in ${name}, which is not a valid ${type}`;
      return new DataError('value_does_not_fit', message);
    }
    return null;
  }

  readonly #cell = (name: string) => `c${this.target.columns.findIndex((column) => column.name === name)}`;
}
