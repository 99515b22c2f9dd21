/** A column as the stage and the table have it, both quoted. `at`: its place in the target. */
export interface MergeColumn {
  staged: string;
  own: string;
  at: number;
  isKey: boolean;
}

/** Compares cursors of the staged row and the row of the table. `order`: what a cursor is ordered by. */
export interface MergeCursor {
  staged: string;
  own: string;
  order(column: string): string;
}

/** What a dialect makes an upsert of. */
export interface Upsert {
  relation: string;
  columns: readonly MergeColumn[];
  /** A subquery without an alias, one row per key. */
  from: string;
  /** Assignments beside the columns. */
  marks: string[];
  cursor: MergeCursor | null;
  /** True for a row that is to be replaced: not newer than the staged one, and different from it. */
  isReplaced(incoming: (column: MergeColumn) => string): string;
}

/** An UPDATE or DELETE of the table, `t`, joined with `from` as `s`. */
export interface Joined {
  relation: string;
  from: string | null;
  on: string;
  where: string;
}

/** How a database merges. */
export interface MergeDialect {
  /** Where `latest` is a table with an index, it is also worth having for a complete stage and for `update`. */
  indexesLatest: boolean;
  /** Condition: some of the pairs of values differ. Never called without a pair. */
  differs(pairs: readonly (readonly [string, string])[]): string;
  update(joined: Joined, assignments: readonly (readonly [own: string, value: string])[]): string;
  remove(joined: Joined): string;
  upsert(parts: Upsert): string;
  /**
   * Where all statements of a plan run as one: the condition of the rows to put that makes `count` removals come first,
   * so that a row takes the unique value of one that is removed. Absent: statements run in their order.
   */
  afterRemovals?(count: number): string;
  /** A SELECT of one row per key, the first in the order; absent: by row_number(). */
  firstOfKey?(rows: { from: string; columns: string; key: string; order: string }): string;
}

/** UPDATE … FROM, as PostgreSQL and DuckDB have it. */
export const updateFrom: MergeDialect['update'] = ({ relation, from, on, where }, assignments) => {
  const set = assignments.map(([own, value]) => `${own} = ${value}`).join(', ');
  return `update ${relation} as t set ${set} ${from === null ? '' : `from ${from} as s`} where ${both(on, where)}`;
};

/** DELETE … USING, as PostgreSQL and DuckDB have it. */
export const deleteUsing: MergeDialect['remove'] = ({ relation, from, on, where }) =>
  `delete from ${relation} as t ${from === null ? '' : `using ${from} as s`} where ${both(on, where)}`;

const both = (on: string, where: string) => (on ? `${on} and ${where}` : where);
