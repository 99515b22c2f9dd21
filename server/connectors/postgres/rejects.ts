import type { Cell, WriteTarget } from '../define.ts';
import { DataError } from '../errors.ts';
import type { PgSession } from './session.ts';
import { relation } from './sql.ts';
import type { Target } from './target.ts';

/** In the schema of the tables it speaks of, one row for each that could not be loaded: committed with the others. */
export const REJECTED_TABLE = '_rejected';

/** Call it in a transaction that holds `lockDefinitions`. */
export async function ensureRejectedTable(session: PgSession, schema: string): Promise<void> {
  const table = relation(schema, REJECTED_TABLE);
  const { rows } = await session.query('select to_regclass($1)', [table]);
  if (rows[0]?.[0] != null) return;
  await session.query(
    `create table ${table} (
       connection_id text not null, connection_run_id text not null, stream_run_id text not null,
       table_name text not null, reason text not null, "row" jsonb not null,
       rejected_at timestamptz not null default now())`,
  );
  await session.query(`create index on ${table} (connection_run_id)`);
}

export interface Copied {
  rows: number;
  bytes: number;
}
type Copy = (rows: Cell[][]) => Promise<Copied>;

/** Loads what can be loaded of each batch and keeps the rest in the table `_rejected`, up to a limit. */
export class Rejects {
  /** Of the stream run, earlier attempts included. */
  count: number;
  reason: string | null = null;
  readonly #columns: string[];
  readonly #limit: number;

  constructor(
    private readonly session: PgSession,
    private readonly target: Target,
    rejects: NonNullable<WriteTarget['rejects']> & { count: number },
  ) {
    this.#limit = rejects.limit;
    this.count = rejects.count;
    this.#columns = target.columns.map(({ name }) => name);
  }

  /** @throws DataError `too_many_rejected_rows`; what is wrong with anything but a row, as it is. */
  async load(rows: Cell[][], copy: Copy): Promise<Copied> {
    const total = { rows: 0, bytes: 0 };
    const add = (copied: Copied) => {
      total.rows += copied.rows;
      total.bytes += copied.bytes;
    };
    for (let rest = rows; rest.length > 0; ) {
      const tried = await this.#try(() => copy(rest));
      if (tried.copied) {
        add(tried.copied);
        break;
      }
      const bad = lineOf(tried.error) ?? (await this.#firstBad(rest, copy));
      if (bad > 0) add(await copy(rest.slice(0, bad)));
      await this.#keep(rest[bad]!, tried.reason);
      rest = rest.slice(bad + 1);
    }
    return total;
  }

  /** Undoes what failed, and nothing that came before. */
  async #try(
    work: () => Promise<Copied>,
  ): Promise<{ copied: Copied } | { copied: null; error: unknown; reason: string }> {
    await this.session.query('savepoint before_rows');
    try {
      const copied = await work();
      await this.session.query('release savepoint before_rows');
      return { copied };
    } catch (error) {
      const known = this.session.translate(error);
      if (!(known instanceof DataError)) throw error;
      await this.session.query('rollback to savepoint before_rows');
      // The place of a row in its COPY tells users nothing.
      return { copied: null, error, reason: known.message.replace(/\(row \d+, /, '(').replace(/ \(row \d+\)$/, '') };
    }
  }

  /** For errors that name no row: halves, until one is left. */
  async #firstBad(rows: Cell[][], copy: Copy): Promise<number> {
    let [good, bad] = [0, rows.length];
    while (bad - good > 1) {
      const middle = (good + bad) >> 1;
      await this.session.query('savepoint before_half');
      const { copied } = await this.#try(() => copy(rows.slice(0, middle)));
      await this.session.query('rollback to savepoint before_half');
      if (copied) good = middle;
      else bad = middle;
    }
    return good;
  }

  async #keep(row: Cell[], reason: string): Promise<void> {
    const { schema, table, connection_id, connection_run_id, stream_run_id } = this.target;
    this.count += 1;
    this.reason = reason;
    if (this.count > this.#limit) {
      throw new DataError(
        'too_many_rejected_rows',
        `More than ${this.#limit} rows of ${table} cannot be loaded; the last one: ${reason}`,
      );
    }
    // JSON in PostgreSQL has no NUL either.
    const cells = this.#columns.map((name, index) => [name, row[index]?.replaceAll('\0', '') ?? null]);
    const content = JSON.stringify(Object.fromEntries(cells));
    await this.session.query(
      `insert into ${relation(schema, REJECTED_TABLE)}
         (connection_id, connection_run_id, stream_run_id, table_name, reason, "row")
       values ($1, $2, $3, $4, $5, $6)`,
      [connection_id, connection_run_id, stream_run_id, table, reason, content],
    );
  }
}

/** From 0; null: the error names none. */
function lineOf(error: unknown): number | null {
  const [, line] = /^COPY [^\n]*?, line (\d+)/.exec((error as { where?: string })?.where ?? '') ?? [];
  return line === undefined ? null : Number(line) - 1;
}
