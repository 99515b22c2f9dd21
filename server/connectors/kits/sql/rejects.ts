import type { Cell, ConnectorContext, WriteTarget } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';

/** In the schema of the tables it speaks of, one row for each that could not be loaded: committed with the others. */
export const REJECTED_TABLE = '_rejected';

export interface Copied {
  rows: number;
  bytes: number;
}

/** How a database loads rows and where it keeps those that it cannot. */
export interface Rejecting {
  /** In an open transaction, with savepoints. */
  session: { query(text: string): Promise<unknown>; translate(error: unknown): unknown };
  load(rows: Cell[][]): Promise<Copied>;
  /** Which of the rows given to `load` an error, as thrown, names, from 0; null: none. It need not be right. */
  rowOf(error: unknown): number | null;
  /** Without the row's place in its statement, which tells users nothing. */
  reasonOf(error: DataError): string;
  /** `content`: JSON, by column. */
  keep(content: string, reason: string): Promise<void>;
  /** A row that could not be loaded is there nevertheless: where the read gives all that there are. */
  present?(row: readonly Cell[]): Promise<void>;
}

/** Counts the rows of a stream run that could not be loaded, up to a limit. */
export class RejectCount {
  /** Earlier attempts included. */
  count: number;
  reason: string | null = null;
  readonly #limit: number;

  constructor(
    private readonly target: WriteTarget,
    { limit, count }: { limit: number; count: number },
  ) {
    this.#limit = limit;
    this.count = count;
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
      `More than ${this.#limit} rows of ${this.target.table} cannot be loaded; the last one: ${reason}`,
    );
  }

  warn(ctx: Pick<ConnectorContext<unknown>, 'warn'>, schema: string): void {
    if (this.count === 0) return;
    const last = this.reason === null ? '' : `; the last one: ${this.reason}`;
    const place = `${schema}.${REJECTED_TABLE}`;
    ctx.warn(
      'rows_rejected',
      `${this.count} rows of ${this.target.table} could not be loaded and are in ${place}${last}`,
    );
  }
}

/** Loads what can be loaded of each batch and keeps the rest. A row is bad that fails alone, behind those before it. */
export class Rejects {
  readonly #columns: string[];

  constructor(
    readonly rejected: RejectCount,
    private readonly into: Rejecting,
    target: WriteTarget,
  ) {
    this.#columns = target.columns.map(({ name }) => name);
  }

  /** @throws DataError `too_many_rejected_rows`; what is wrong with anything but a row, as it is. */
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
        await this.keep(rest[bad]!, alone.known);
        await this.into.present?.(rest[bad]!);
      }
      // Who stages changes takes off as many rows as there are deletes, be they good or bad.
      if (!alone.copied && rest[bad]![this.#columns.length] === 'd') total.rows += 1;
      rest = rest.slice(bad + 1);
    }
    return total;
  }

  /** Loads the rows before the first bad one. @returns its index. */
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

  /** For errors that name no row: halves, until one is left. */
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

  /** @throws DataError `too_many_rejected_rows` */
  async keep(row: Cell[], error: DataError, prefix = ''): Promise<void> {
    const reason = prefix + this.into.reasonOf(error);
    this.rejected.add(1, reason);
    const cells = this.#columns.map((name, index) => [name, row[index] ?? null]);
    await this.into.keep(JSON.stringify(Object.fromEntries(cells)), reason);
  }
}
