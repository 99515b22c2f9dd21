import type { Cell } from '../../../contract/connector.ts';
import { DataError } from '../../../contract/errors.ts';
import { columnList, type SqlDatabase, type SqlSession } from '../dialect.ts';
import type { Merged } from './merge.ts';
import { DELETED, type Rejects } from '../rejects.ts';
import type { Stage } from '../stage.ts';
import { StagedChanges } from './staged-changes.ts';
import type { Column, Target } from '../target.ts';
import { removesMissing } from './staged-merge.ts';

/** Some keys of a stage by their numbers: `from` up to before `to`, as indexes into `among` where that is set. */
export interface Part {
  from: number;
  to: number;
  among?: readonly number[];
}

export interface StagedRow {
  sequence: string;
  /** In the order of the target's columns. */
  cells: Cell[];
  isDelete: boolean;
}

/**
 * A stage that could not be merged as a whole, set aside in an open transaction with savepoints. Its keys are numbered
 * from 0 in the order in which they first arrived.
 */
export interface DividedStage {
  session: SqlSession;
  keys: number;
  /** Leaves only these keys, or this one row, in the stage. */
  take(what: Part | { sequence: string }): Promise<void>;
  /** Merges what is in the stage. */
  merge(): Promise<Merged>;
  /** In the order of arrival. */
  rowsOf(key: number): Promise<StagedRow[]>;
}

/** A row that breaks one of these rules may still be merged after another row of the stage. */
const BETWEEN_ROWS = new Set(['duplicate_key', 'foreign_key_violation']);
/** How many keys, beyond those that may be rejected, are postponed until the others are merged. */
const MAX_POSTPONED = 300;

/** How a database merges a stage, and how it divides one that cannot be merged as a whole. */
export interface MergeAttempt {
  session: SqlSession;
  merge(): Promise<Merged>;
  /** Sets the rows of the stage aside. @returns `gone`: rows that were removed because no staged row has their key */
  divide(): Promise<{ divided: DividedStage; gone: number }>;
}

/**
 * Merges a stage. Rows that break a rule of the table are kept with the rejected rows, all others are merged. This costs
 * one savepoint until something fails. Then the stage is bisected: keys that fail alone are tried again after all
 * others, and the changes of one key are tried one by one in the order of arrival.
 * @returns `rejected`: rows that were counted as loaded when they were staged; deletes are not
 * @throws DataError `too_many_rejected_rows`; any error that is not about a row, unchanged
 */
export async function mergeKeeping(
  { session, merge, divide }: MergeAttempt,
  rejects: Rejects,
): Promise<Merged & { rejected?: number }> {
  await session.query('savepoint before_merge');
  try {
    const merged = await merge();
    await session.query('release savepoint before_merge');
    return merged;
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    await session.query('rollback to savepoint before_merge');
  }
  const { divided, gone } = await divide();
  const merged = await new PartialMerge(divided, rejects).run();
  return { ...merged, deleted: merged.deleted + gone };
}

/** Part of a stage: what it does not mention may be in another part, and is not gone. */
const partOf = (stage: Stage): Stage => ({
  ...stage,
  complete: false,
  changes: stage.changes && Object.assign(new StagedChanges(), stage.changes, { truncated: false }),
});

class PartialMerge {
  readonly #total = { updated: 0, deleted: 0, rejected: 0 };
  #postponed: number[] = [];

  constructor(
    private readonly stage: DividedStage,
    private readonly rejects: Rejects,
  ) {}

  async run(): Promise<Merged & { rejected: number }> {
    await this.#halves({ from: 0, to: this.stage.keys });
    for (let before = Infinity; this.#postponed.length > 0 && this.#postponed.length < before; ) {
      const among = this.#postponed;
      before = among.length;
      this.#postponed = [];
      await this.#merge({ from: 0, to: before, among });
      // And backwards: a row that depends on another one often precedes it.
      this.#postponed.reverse();
    }
    for (const key of this.#postponed) await this.#oneByOne(key);
    return this.#total;
  }

  async #merge(part: Part): Promise<void> {
    const error = await this.#try(part);
    if (error === null) return;
    if (part.to - part.from > 1) return this.#halves(part);
    const key = part.among?.[part.from] ?? part.from;
    if (!BETWEEN_ROWS.has(error.code)) return this.#oneByOne(key);
    this.#postponed.push(key);
    const { rejected } = this.rejects;
    if (this.#postponed.length > rejected.left + MAX_POSTPONED) rejected.add(this.#postponed.length, error.message);
  }

  async #halves(part: Part): Promise<void> {
    if (part.to - part.from === 1) return this.#merge(part);
    const middle = (part.from + part.to) >> 1;
    await this.#merge({ ...part, to: middle });
    await this.#merge({ ...part, from: middle });
  }

  async #oneByOne(key: number): Promise<void> {
    for (const { sequence, cells, isDelete } of await this.stage.rowsOf(key)) {
      const error = await this.#try({ sequence });
      if (error === null) continue;
      await this.rejects.keep(cells, error, isDelete ? DELETED : '');
      if (!isDelete) this.#total.rejected += 1;
    }
  }

  /** Null: merged. Undoes only what failed. */
  async #try(what: Part | { sequence: string }): Promise<DataError | null> {
    const { session } = this.stage;
    await session.query('savepoint before_part');
    try {
      await this.stage.take(what);
      const { updated, deleted } = await this.stage.merge();
      await session.query('release savepoint before_part');
      this.#total.updated += updated;
      this.#total.deleted += deleted;
      return null;
    } catch (error) {
      const known = session.translate(error);
      if (!(known instanceof DataError)) throw error;
      await session.query('rollback to savepoint before_part');
      return known;
    }
  }
}

/** SQL: the keys of a part, by the column of their numbers. */
const isOfPart = (column: string, { from, to, among }: Part): string =>
  among ? `${column} in (${among.slice(from, to).join(', ')})` : `${column} >= ${from} and ${column} < ${to}`;

/** How a database sets a stage aside. */
export interface StageDivision extends SqlDatabase {
  target: Target;
  stage: Stage;
  merge(stage: Stage): Promise<Merged>;
  /** Removes the rows of the table whose key is missing in a table. @returns how many */
  removeMissing(from: string): Promise<number>;
  /** Creates the table of `select`, indexed by the column `place`. */
  setAside(select: string, place: string): Promise<void>;
  /** A statement that empties the stage without ending the transaction. */
  empty: string;
  /** Goes between the columns and the SELECT of an INSERT into the stage. */
  overriding: string;
  /** The cell that became the value of a column. */
  cellText(column: Column): string;
}

/** Sets the rows of the stage aside, numbered by their keys, and removes the rows that no staged row mentions. */
export async function divideStage(division: StageDivision): Promise<{ divided: DividedStage; gone: number }> {
  const { session, dialect, target, stage } = division;
  const { sequence, change, prefix } = stage;
  const place = `${prefix}place`;
  const staged = [
    columnList(
      dialect,
      target.columns.map(({ name }) => name),
    ),
    change,
    sequence,
  ].join(', ');
  const first = `min(${sequence}) over (partition by ${columnList(dialect, target.primary_key)}) as ${prefix}first`;
  await division.setAside(
    `select ${staged}, dense_rank() over (order by ${prefix}first) - 1 as ${place}
       from (select ${staged}, ${first} from ${stage.relation}) as firsts`,
    place,
  );
  const { rows } = await session.query(`select coalesce(max(${place}) + 1, 0) from ${stage.aside}`);
  const gone = removesMissing(target, stage) ? await division.removeMissing(stage.aside) : 0;
  const part = partOf(stage);
  const divided: DividedStage = {
    session,
    keys: Number(rows[0]?.[0]),
    async take(what) {
      const which = 'sequence' in what ? `${sequence} = ${what.sequence}` : isOfPart(place, what);
      await session.query(division.empty, { slow: true });
      const into = `insert into ${stage.relation} (${staged}) ${division.overriding}`;
      const rowsOf = `select ${staged} from ${stage.aside} where ${which} order by ${sequence}`;
      await session.query(`${into} ${rowsOf}`, { slow: true });
    },
    merge: () => division.merge(part),
    async rowsOf(key) {
      const cells = target.typed.map((column) => division.cellText(column)).join(', ');
      const isDelete = `case when ${change} = 'd' then 1 else 0 end`;
      const found = await session.query(
        `select ${sequence}, ${isDelete}, ${cells} from ${stage.aside} where ${place} = ${key} order by ${sequence}`,
      );
      return found.rows.map(([at, deletes, ...row]) => ({ sequence: at!, isDelete: deletes === '1', cells: row }));
    },
  };
  return { divided, gone };
}

/**
 * Stages the table's own row for a row that could not be staged, so that it does not count as gone.
 * @param equals conditions on the columns of the key, `t`, for one cell each
 */
export async function stageExisting(
  { session, dialect, target, stage }: SqlDatabase & { target: Target; stage: Stage },
  row: readonly Cell[],
  equals: (column: Column, cell: string) => string,
): Promise<void> {
  const names = columnList(
    dialect,
    target.columns.map(({ name }) => name),
  );
  const key = target.typed.flatMap((column, index) =>
    target.primary_key.includes(column.name) ? [equals(column, dialect.literal(row[index] ?? ''))] : [],
  );
  const existing = `select ${names} from ${target.relation} as t where ${key.join(' and ')}`;
  await session.query('savepoint before_row');
  try {
    await session.query(`insert into ${stage.relation} (${names}) ${existing}`, { slow: true });
    await session.query('release savepoint before_row');
  } catch (error) {
    // A value that its type cannot hold is not the key of any row of the table.
    if (!(error instanceof DataError)) throw error;
    await session.query('rollback to savepoint before_row');
  }
}
