import type { Cell, ConnectorContext, WriteCounts, WriteTarget } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import type { SqlDatabase, SqlSession } from './dialect.ts';
import { ensureTable } from './state-row.ts';

/** Lives in the schema of the tables it describes, one row per row that could not be loaded, committed with the others. */
export const REJECTED_TABLE = '_rejected';

/** Definitions of its columns. */
export function rejectedColumns({ dialect }: Pick<SqlDatabase, 'dialect'>): string[] {
  const { types, identifier } = dialect;
  return [
    ...['connection_id', 'connection_run_id', 'stream_run_id', 'table_name'].map(
      (name) => `${name} ${types.id} not null`,
    ),
    `reason ${types.text} not null`,
    `${identifier('row')} ${types.json} not null`,
    `rejected_at ${types.instant} not null`,
  ];
}

/** Call it under the lock for definitions. */
export async function ensureRejectedTable(db: SqlDatabase, schema: string): Promise<void> {
  const { dialect, session } = db;
  const table = REJECTED_TABLE;
  const done = await ensureTable(db, { schema, table, columns: rejectedColumns(db) });
  if (done === 'present' || !dialect.hasKeys) return;
  await session.query(
    `create index _rejected_connection_run_id_idx on ${dialect.relation(schema, table)} (connection_run_id)`,
  );
}

/** An INSERT of one row into a table of rejected rows. `values`: all but the time, as SQL. */
export const insertRejected = (dialect: SqlDatabase['dialect'], into: string, values: readonly string[]): string =>
  `insert into ${into} (${rejectedNames(dialect)}) values (${[...values, dialect.now].join(', ')})`;

/** Names of its columns, in the order of `rejectedColumns`. */
export const rejectedNames = ({ identifier }: SqlDatabase['dialect']): string =>
  `connection_id, connection_run_id, stream_run_id, table_name, reason, ${identifier('row')}, rejected_at`;

/** Begins the reason of a row that was to be deleted. */
export const DELETED = 'it was to be deleted: ';

export interface Copied {
  rows: number;
  bytes: number;
}

/** How a database loads rows and where it keeps those that it cannot load. */
export interface Rejecting {
  /** In an open transaction, with savepoints. */
  session: SqlSession;
  load(rows: Cell[][]): Promise<Copied>;
  /** The row of the last `load` that an error, as thrown, points at, from 0; null: it names none. May be wrong. */
  rowOf(error: unknown): number | null;
  /** The message without the row's place in its statement, which means nothing to users. */
  reasonOf(error: DataError): string;
  /** `content`: JSON, by column. */
  keep(content: string, reason: string): Promise<void>;
  /** Where the read is complete: the row could not be loaded, but it exists at the source. */
  present?(row: readonly Cell[]): Promise<void>;
}

/** Counts the rows of a stream run that could not be loaded, up to a limit. */
export class RejectCount {
  /** Earlier attempts included. */
  count: number;
  reason: string | null = null;
  readonly #limit: number;

  private constructor(
    private readonly target: WriteTarget,
    { limit, count }: { limit: number; count: number },
  ) {
    this.#limit = limit;
    this.count = count;
  }

  /** Null where the first such row is an error. `counts`: of the stream run, as committed. */
  static of(target: WriteTarget, counts: WriteCounts): RejectCount | null {
    return target.rejects ? new RejectCount(target, { ...target.rejects, count: counts.rows_rejected ?? 0 }) : null;
  }

  /** How many more there may be. */
  get left(): number {
    return Math.max(0, this.#limit - this.count);
  }

  /** `reason`: of the last of them. @throws DataError `too_many_rejected_rows` */
  add(rows: number, reason: string): void {
    this.count += rows;
    this.reason = reason;
    if (this.count <= this.#limit) return;
    throw new DataError(
      'too_many_rejected_rows',
      `More than ${this.#limit} rows of ${this.target.table} cannot be loaded. The last one: ${reason}`,
    );
  }

  warn(ctx: Pick<ConnectorContext<unknown>, 'warn'>, schema: string): void {
    if (this.count === 0) return;
    const last = this.reason === null ? '' : `. The last one: ${this.reason}`;
    const rejected = `${schema}.${REJECTED_TABLE}`;
    ctx.warn(
      'rows_rejected',
      `${this.count} rows of ${this.target.table} could not be loaded and were stored in ${rejected}${last}`,
    );
  }
}

/** Loads what can be loaded of each batch and keeps the rest. A row is bad if it fails alone, after those before it. */
export class Rejects {
  readonly #columns: string[];

  constructor(
    readonly rejected: RejectCount,
    private readonly into: Rejecting,
    target: WriteTarget,
  ) {
    this.#columns = target.columns.map(({ name }) => name);
  }

  /** @throws DataError `too_many_rejected_rows`; any error that is not about a row, unchanged */
  async load(rows: Cell[][]): Promise<Copied> {
    const total = { rows: 0, bytes: 0 };
    const add = (copied: Copied) => {
      total.rows += copied.rows;
      total.bytes += copied.bytes;
    };
    for (let rest = rows; rest.length > 0; ) {
      const tried = await this.#try(rest);
      if (tried.copied) {
        add(tried.copied);
        break;
      }
      const bad = await this.#loadGood(rest, { named: this.into.rowOf(tried.error), add });
      const alone = rest.length === 1 ? tried : await this.#try(rest.slice(bad, bad + 1));
      if (alone.copied) add(alone.copied);
      else {
        await this.refuse(rest[bad]!, alone.known);
      }
      // The writer subtracts all deletes of a batch from the rows loaded, good or bad ones.
      if (!alone.copied && rest[bad]![this.#columns.length] === 'd') total.rows += 1;
      rest = rest.slice(bad + 1);
    }
    return total;
  }

  /** Loads the rows before the first bad one. @returns the index of that one */
  async #loadGood(
    rows: Cell[][],
    { named, add }: { named: number | null; add(copied: Copied): void },
  ): Promise<number> {
    if (rows.length === 1) return 0;
    if (named !== null && named < rows.length) {
      const before = named === 0 ? { copied: { rows: 0, bytes: 0 } } : await this.#try(rows.slice(0, named));
      if (before.copied) {
        add(before.copied);
        return named;
      }
    }
    const bad = await this.#firstBad(rows);
    if (bad > 0) add(await this.into.load(rows.slice(0, bad)));
    return bad;
  }

  /** Undoes what failed, and nothing that came before. */
  async #try(rows: Cell[][]): Promise<{ copied: Copied } | { copied: null; error: unknown; known: DataError }> {
    const { session } = this.into;
    await session.query('savepoint before_rows');
    try {
      const copied = await this.into.load(rows);
      await session.query('release savepoint before_rows');
      return { copied };
    } catch (error) {
      const known = session.translate(error);
      if (!(known instanceof DataError)) throw error;
      await session.query('rollback to savepoint before_rows');
      return { copied: null, error, known };
    }
  }

  /** For errors that name no row: bisects until one is left. */
  async #firstBad(rows: Cell[][]): Promise<number> {
    const { session } = this.into;
    let [good, bad] = [0, rows.length];
    while (bad - good > 1) {
      const middle = (good + bad) >> 1;
      await session.query('savepoint before_half');
      const { copied } = await this.#try(rows.slice(0, middle));
      await session.query('rollback to savepoint before_half');
      if (copied) good = middle;
      else bad = middle;
    }
    return good;
  }

  /** Keeps a row that cannot be loaded. Unless it was to be deleted, it exists at the source. */
  async refuse(row: Cell[], error: DataError, isDelete = false): Promise<void> {
    await this.keep(row, error, isDelete ? DELETED : '');
    if (!isDelete) await this.into.present?.(row);
  }

  /** @throws DataError `too_many_rejected_rows` */
  async keep(row: Cell[], error: DataError, prefix = ''): Promise<void> {
    const reason = prefix + this.into.reasonOf(error);
    this.rejected.add(1, reason);
    const cells = this.#columns.map((name, index) => [name, row[index]?.toWellFormed() ?? null]);
    await this.into.keep(JSON.stringify(Object.fromEntries(cells)), reason);
  }
}
