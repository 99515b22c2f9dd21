import type { Cell, WriteTarget } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { StagedChanges } from './staged-changes.ts';
import type { Rejecting, Rejects } from './rejects.ts';

export interface Merged {
  updated: number;
  deleted: number;
}

/** Some keys of a stage by their numbers: from `from` to before `to`, counted in `among` where that is set. */
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
 * from 0 in the order in which they first came.
 */
export interface DividedStage {
  session: Rejecting['session'];
  keys: number;
  /** Makes these keys, or this one row, all that there is in the stage. */
  take(what: Part | { sequence: string }): Promise<void>;
  /** Brings what is in the stage into place. */
  merge(): Promise<Merged>;
  /** In the order of arrival. */
  rowsOf(key: number): Promise<StagedRow[]>;
}

/** Rules that another row of the stage may still make good, once it is there. */
const BETWEEN_ROWS = new Set(['duplicate_key', 'foreign_key_violation']);
/** So many more than may be rejected are put off until the others are there. */
const MOST_PUT_OFF = 300;

/** How a database merges a stage, and what it makes of one that cannot be merged as a whole. */
export interface MergeAttempt {
  session: Rejecting['session'];
  merge(): Promise<Merged>;
  /** Sets the rows of the stage aside. @returns `gone`: rows that no staged row speaks of, removed */
  divide(): Promise<{ divided: DividedStage; gone: number }>;
}

/**
 * Merges; what breaks a rule of the table is kept with the rejected rows and all else is merged. Until something fails
 * that costs a savepoint. Where some must go, half by half: rows that fail alone are kept behind all others, and of a
 * key with several changes each is tried in the order of arrival.
 * @returns `rejected`: rows that were counted as loaded when they were staged; deletes are not
 * @throws DataError `too_many_rejected_rows`; what is wrong with anything but a row, as it is
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

interface Stage {
  changes: StagedChanges | null;
  complete: boolean;
}

/** A part of a stage: what it does not speak of may stand in another one, and is not gone. */
export const partOf = <One extends Stage>(stage: One): One => ({
  ...stage,
  complete: false,
  changes: stage.changes && Object.assign(new StagedChanges(), stage.changes, { truncated: false }),
});

/** Whether rows that no staged row speaks of are gone. */
export const missingAreGone = ({ mode }: Pick<WriteTarget, 'mode'>, { complete, changes }: Stage): boolean =>
  mode !== 'update' && (complete || changes?.truncated === true);

class PartialMerge {
  readonly #total = { updated: 0, deleted: 0, rejected: 0 };
  #putOff: number[] = [];

  constructor(
    private readonly stage: DividedStage,
    private readonly rejects: Rejects,
  ) {}

  async run(): Promise<Merged & { rejected: number }> {
    await this.#halves({ from: 0, to: this.stage.keys });
    for (let before = Infinity; this.#putOff.length > 0 && this.#putOff.length < before; ) {
      const among = this.#putOff;
      before = among.length;
      this.#putOff = [];
      await this.#merge({ from: 0, to: before, among });
      // And backwards, as a row that needs another one often stands in front of it.
      this.#putOff.reverse();
    }
    for (const key of this.#putOff) await this.#oneByOne(key);
    return this.#total;
  }

  async #merge(part: Part): Promise<void> {
    const error = await this.#try(part);
    if (error === null) return;
    if (part.to - part.from > 1) return this.#halves(part);
    const key = part.among?.[part.from] ?? part.from;
    if (!BETWEEN_ROWS.has(error.code)) return this.#oneByOne(key);
    this.#putOff.push(key);
    const { rejected } = this.rejects;
    if (this.#putOff.length > rejected.left + MOST_PUT_OFF) rejected.add(this.#putOff.length, error.message);
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
      await this.rejects.keep(cells, error, isDelete ? 'it was to be deleted: ' : '');
      if (!isDelete) this.#total.rejected += 1;
    }
  }

  /** Null: merged. Undoes what failed, and nothing that came before. */
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

/** In SQL: the keys of a part, by the column of their numbers. */
export const isOfPart = (column: string, { from, to, among }: Part): string =>
  among ? `${column} in (${among.slice(from, to).join(', ')})` : `${column} >= ${from} and ${column} < ${to}`;
