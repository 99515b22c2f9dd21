import { type DuckDBAppender, type DuckDBConnection, DuckDBDataChunk, VARCHAR } from '@duckdb/node-api';
import type { Cell } from '../../contract/connector.ts';
import type { RowChange } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { changeCell, StagedChanges, withoutOverwritten } from '../../kits/sql/staged-changes.ts';
import { execute, query } from '../connection/engine.ts';
import { columnList } from '../connection/sql.ts';
import type { Target } from './tables.ts';
import { valueSql } from '../connection/types.ts';

/** What one chunk of DuckDB holds. */
const CHUNK_ROWS = 2048;
/** An appender keeps what it was given outside of the engine's memory limit until it is flushed. */
const FLUSH_BYTES = 8_000_000;
export const STAGE = 'temp.main.stage';

/** Rows are brought to those with the same key. */
export const isMerge = ({ mode }: Target) => mode !== 'append' && mode !== 'overwrite';

/**
 * Cells that are not committed yet, as texts in a table of the engine's own memory: it spills to the disk and ends with
 * the engine. `rowid` is the order of arrival.
 */
export class Stage {
  #appender: DuckDBAppender | null = null;
  readonly #chunk: DuckDBDataChunk;
  readonly #width: number;
  #unflushed = 0;
  #last: number | null = null;
  rows = 0;
  bytes = 0;
  /** Rows that were taken, whether or not they needed to be staged; deletes are none. */
  loaded = 0;
  /** Null: rows only, no changes. */
  changes: StagedChanges | null = null;
  /** Rows were taken out that the source has nevertheless (rejects.ts). */
  refused = false;
  /** Where in a row its key is. */
  readonly key: number[];

  constructor(
    private readonly connection: DuckDBConnection,
    private readonly target: Target,
  ) {
    this.key = isMerge(target)
      ? target.primary_key.map((name) => target.columns.findIndex((one) => one.name === name))
      : [];
    // What happened to a row stands behind its cells.
    this.#width = target.columns.length + (isMerge(target) ? 1 : 0);
    this.#chunk = DuckDBDataChunk.create(Array.from({ length: this.#width }, () => VARCHAR));
  }

  async add(rows: Cell[][], bytes: number): Promise<void> {
    this.loaded += rows.length;
    await this.#append(rows, bytes);
  }

  /** A truncate takes the rows before it back. */
  async addChanges(rows: Cell[][], changes: readonly RowChange[], bytes: number): Promise<void> {
    this.changes ??= new StagedChanges();
    const from = changes.findLastIndex(({ operation }) => operation === 'truncate') + 1;
    if (from > 0) {
      this.close();
      await this.#drop();
      this.changes.truncate();
    }
    const kept = withoutOverwritten(rows.slice(from), changes.slice(from), this.key);
    for (const [index, change] of kept.changes.entries()) {
      this.changes.note(change);
      kept.rows[index]!.push(changeCell(change));
    }
    this.loaded += changes.slice(from).filter(({ operation }) => operation === 'upsert').length;
    if (kept.rows.length > 0) await this.#append(kept.rows, bytes);
  }

  async #append(rows: Cell[][], bytes: number): Promise<void> {
    if (!this.#appender) {
      const columns = Array.from({ length: this.#width }, (_, at) => `c${at} VARCHAR`);
      await execute(this.connection, `CREATE OR REPLACE TEMP TABLE stage (${columns.join(', ')})`);
      this.#appender = await this.connection.createAppender('stage', 'main', 'temp');
    }
    for (let from = 0; from < rows.length; from += CHUNK_ROWS) {
      const part = rows.slice(from, from + CHUNK_ROWS);
      // One chunk for all: its memory is not JavaScript's, so nothing would hurry to collect many of them.
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

  /** Runs `work` with the rows up to one alone, as if the others were not there. */
  async upTo<Result>(last: number, work: () => Promise<Result>): Promise<Result> {
    this.#last = last;
    try {
      return await work();
    } finally {
      this.#last = null;
    }
  }

  /** Brings the rows into the table, in the open transaction. */
  async insert(): Promise<void> {
    if (this.rows === 0) return;
    const columns = this.target.typed.map((_, at) => `c${at}`).join(', ');
    const names = columnList(this.target.typed.map(({ name }) => name));
    const values = `SELECT ${columns} FROM (${this.values()})`;
    await execute(this.connection, `INSERT INTO ${this.target.relation} (${names}) ${values}`);
  }

  /** Takes rows out that are not to be loaded. */
  async remove(where: string): Promise<void> {
    const upserts = isMerge(this.target) ? `AND coalesce(c${this.#width - 1}, '') <> 'd'` : '';
    const [row] = await query(this.connection, `SELECT count(*) FROM ${STAGE} WHERE ${where} ${upserts}`);
    this.loaded -= Number(row?.[0]);
    this.rows -= await execute(this.connection, `DELETE FROM ${STAGE} WHERE ${where}`);
  }

  /** What was added can be selected from now on. */
  close(): void {
    this.#appender?.closeSync();
    this.#appender = null;
  }

  async clear(): Promise<void> {
    await this.#drop();
    [this.bytes, this.loaded, this.changes, this.refused] = [0, 0, null, false];
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
