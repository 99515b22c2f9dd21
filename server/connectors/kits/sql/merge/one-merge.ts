import type { Dialect } from '../dialect.ts';
import type { Target } from '../target.ts';
import type { MergeColumn } from './merge-dialect.ts';
import {
  cursorOf,
  isSoft,
  keptOr,
  latestRows,
  newestRows,
  onKey,
  removesMissing,
  replacedRow,
  type StagedMerge,
  stagedValue,
} from './staged-merge.ts';

/** A merge of all rows of a stage by one MERGE into the table, `t`, from `from` as `s`. */
export interface OneMerge {
  /** A SELECT of the last change of each key. */
  from: string;
  on: string;
  columns: readonly MergeColumn[];
  /** Conditions of what happens to a row that is there: it is removed (null: none is), or else it is replaced. */
  isRemoved: string | null;
  isReplaced: string;
  assignments: readonly (readonly [own: string, value: string])[];
  /** Condition of a row that is put in; null: always. */
  isNew: string | null;
}

/** Null: the stage takes more than one kind of statement. */
export function oneMerge(dialect: Dialect, target: Target, staged: StagedMerge): OneMerge | null {
  const { changes, columns, prefix } = staged;
  const removes = changes?.deletes === true;
  if (target.mode === 'update' || removesMissing(target, staged) || (removes && isSoft(target))) return null;
  const cursor = cursorOf(target, staged, (column) => column);
  const newest = newestRows(dialect, staged, cursor);
  const value = changes ? keptOr(changes, prefix) : stagedValue;
  return {
    from: changes ? latestRows(dialect, staged, newest) : newest,
    on: onKey(columns),
    columns,
    isRemoved: removes ? `s.${prefix}what = 'd'` : null,
    // Changes are in the order of arrival, so the cursor has no say.
    ...replacedRow(dialect, target, { columns, cursor: changes ? null : cursor, value }),
    isNew: changes ? `s.${prefix}what = ''` : null,
  };
}
