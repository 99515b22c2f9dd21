import { DELETED_AT } from '../../../contract/changes.ts';
import type { Dialect } from '../dialect.ts';
import type { Target } from '../target.ts';
import type { MergeColumn } from './merge-dialect.ts';
import {
  cursorOf,
  isReplaced,
  keptOr,
  latestRows,
  newestRows,
  onKey,
  removalsOf,
  type StagedMerge,
  stagedValue,
} from './staged-merge.ts';

/**
 * Brings a stage into its table where rows pass unique values on, as in an exchange of two of them, for which no order
 * of updates exists: all rows that change are removed, then put back with their new values. The statements run in
 * this order.
 */
export interface ExchangePlan {
  /** A SELECT of the last change of each key, to be had under the dialect's name for it. */
  latest: string;
  removals: string[];
  /** A SELECT of the rows that change, whole and as they are. */
  old: string;
  /** Removes them. */
  free: string;
  /** An INSERT of them, from the name given for `old`. */
  putBack: string;
  /** An INSERT of the rows that the table does not have; null: such rows are not created. */
  putNew: string | null;
}

/** What an exchange needs beside a stage. */
export interface ExchangedTable {
  /** Names of all columns of the table that can be inserted. */
  names: readonly string[];
  /** The name, quoted, of the rows that change. */
  old: string;
  /** Goes between the columns and the SELECT of an INSERT into the table. */
  overriding: string;
  order?: (column: string) => string;
}

export function exchangePlan(
  dialect: Dialect,
  target: Target,
  staged: StagedMerge,
  { names, old, overriding, order = (column) => column }: ExchangedTable,
): ExchangePlan {
  const { merge, identifier } = dialect;
  const { changes, columns, prefix, latest } = staged;
  const { relation } = target;
  const cursor = cursorOf(target, staged, order);
  const on = onKey(columns);
  const valueOf = changes ? keptOr(changes, prefix) : stagedValue;
  const value = (column: MergeColumn) => valueOf(column, `t.${column.own}`);
  const changed = isReplaced(dialect, target, { columns, cursor: changes ? null : cursor, incoming: value });
  const where = `s.${prefix}what <> 'd' and ${changed}`;
  const own = new Map(columns.map((column, at) => [dialect.names.fold(target.columns[at]!.name), column]));
  const values = names.map((name) => {
    const column = own.get(dialect.names.fold(name));
    if (column) return value(column);
    return target.mode === 'soft_delete' && name === DELETED_AT ? 'null' : `t.${identifier(name)}`;
  });
  const into = columns.map((column) => column.own).join(', ');
  const fresh = columns.map((column) => `s.${column.staged}`).join(', ');
  return {
    latest: latestRows(dialect, staged, newestRows(dialect, staged, cursor)),
    removals: removalsOf(dialect, target, staged),
    old: `select t.* from ${relation} as t join ${latest} as s on ${on} where ${where}`,
    free: merge.remove({ relation, from: latest, on, where }),
    putBack: `insert into ${relation} (${names.map(identifier).join(', ')}) ${overriding}
      select ${values.join(', ')} from ${old} as t join ${latest} as s on ${on}`,
    putNew:
      target.mode === 'update'
        ? null
        : `insert into ${relation} (${into}) ${overriding} select ${fresh} from ${latest} as s
             where s.${prefix}what = '' and not exists (select 1 from ${relation} as t where ${on})`,
  };
}
