import type { WriteTarget } from '../../../contract/connector.ts';
import type { ChangeFacts } from '../../../contract/change-fields.ts';
import { DELETED_AT } from '../../../contract/changes.ts';
import type { Dialect } from '../dialect.ts';
import { latestChanges, type StagedChanges } from './staged-changes.ts';
import type { Target } from '../target.ts';
import type { Joined, MergeColumn, MergeCursor } from './merge-dialect.ts';

/** Rows that wait to be merged. */
export interface StagedMerge {
  /** A table, or a subquery with an alias. */
  from: string;
  /** The name, quoted, of the last change of each key: a table, or a part of a WITH. */
  latest: string;
  columns: readonly MergeColumn[];
  /** Columns of `from`, quoted: the order of arrival, and what happened to the row (staged-changes.ts). */
  sequence: string;
  change: string;
  /** No column's name begins with it. */
  prefix: string;
  /** Null: every staged row is a whole row. */
  changes: StagedChanges | null;
  /** Rows of the table without a staged row of their key are gone. */
  complete: boolean;
  /** A condition that keeps rows of the table, `t`, although no staged row has their key. */
  spared?: string;
}

export const isSoft = ({ mode }: Pick<WriteTarget, 'mode'>) => mode === 'soft_delete';

/** Removes or marks rows of the table. `joined.where` is in terms of `t`, and of `s` where `from` is set. */
export function removal(
  { identifier, now, merge }: Dialect,
  target: Target,
  joined: Pick<Joined, 'where'> & Partial<Joined>,
): string {
  const parts = { relation: target.relation, from: null, on: '', ...joined };
  if (!isSoft(target)) return merge.remove(parts);
  const marked = identifier(DELETED_AT);
  return merge.update({ ...parts, where: `t.${marked} is null and ${parts.where}` }, [[marked, now]]);
}

export const onKey = (columns: readonly MergeColumn[]) =>
  columns
    .filter(({ isKey }) => isKey)
    .map(({ staged, own }) => `s.${staged} = t.${own}`)
    .join(' and ');

/** Removes the rows of the table that have no row of their key in `from`. */
export const missingRemoval = (
  dialect: Dialect,
  target: Target,
  { columns, spared }: Pick<StagedMerge, 'columns' | 'spared'>,
  from: string,
): string => {
  const where = `not exists (select 1 from ${from} as s where ${onKey(columns)})${spared ? ` and ${spared}` : ''}`;
  return removal(dialect, target, { where });
};

/** Rows of the table that no staged row has the key of are gone. */
export const removesMissing = (
  { mode }: Pick<WriteTarget, 'mode'>,
  { complete, changes }: Pick<StagedMerge, 'complete' | 'changes'>,
): boolean => mode !== 'update' && (complete || changes?.truncated === true);

/** The last change, or row, of each key, with what happened to it. */
export function latestRows({ merge }: Dialect, staged: StagedMerge, newest: string): string {
  const { changes, change, from, prefix, sequence } = staged;
  if (!changes) return `select newest.*, '' as ${prefix}what from (${newest}) as newest`;
  const names = columnNames(staged);
  if (changes.unchanged.size > 0 || !merge.firstOfKey)
    return latestChanges({ ...staged, ...names, unchanged: changes.unchanged });
  const what = `case when ${change} = 'd' then 'd' else '' end as ${prefix}what`;
  const columns = [...names.columns, what].join(', ');
  return merge.firstOfKey({ from, columns, key: names.key.join(', '), order: `${sequence} desc` });
}

export function removalsOf(dialect: Dialect, target: Target, staged: StagedMerge): string[] {
  const { changes, columns, prefix, latest, from } = staged;
  const removals: string[] = [];
  if (removesMissing(target, staged)) {
    removals.push(missingRemoval(dialect, target, staged, dialect.merge.indexesLatest ? latest : from));
  }
  if (changes?.deletes && target.mode !== 'update') {
    removals.push(removal(dialect, target, { from: latest, on: onKey(columns), where: `s.${prefix}what = 'd'` }));
  }
  return removals;
}

export const columnNames = ({ columns }: StagedMerge) => ({
  columns: columns.map(({ staged }) => staged),
  key: columns.filter(({ isKey }) => isKey).map(({ staged }) => staged),
});

export function cursorOf(target: Target, { columns }: StagedMerge, order: MergeCursor['order']): MergeCursor | null {
  const at = target.columns.findIndex(({ name }) => name === target.cursor_column);
  const column = columns[at];
  return column ? { staged: column.staged, own: column.own, order } : null;
}

/** The rows of a stage without changes, one per key. */
export function newestRows({ merge }: Dialect, staged: StagedMerge, cursor: MergeCursor | null): string {
  const { from, sequence, prefix } = staged;
  const names = columnNames(staged);
  const [columns, key] = [names.columns.join(', '), names.key.join(', ')];
  const order = [...(cursor ? [`${cursor.order(cursor.staged)} desc`] : []), `${sequence} desc`];
  if (merge.firstOfKey) return merge.firstOfKey({ from, columns, key, order: order.join(' nulls last, ') });
  const place = `${prefix}place`;
  return `select ${columns} from (select ${columns}, row_number() over (partition by ${key} order by ${order.join(', ')})
    as ${place} from ${from}) as ranked where ${place} = 1`;
}

export type ValueOf = (column: MergeColumn, own: string) => string;

export const stagedValue: ValueOf = ({ staged }) => `s.${staged}`;

export const keptOr =
  ({ unchanged }: StagedChanges, prefix: string): ValueOf =>
  ({ staged, at }, own) =>
    unchanged.has(at) ? `case when s.${prefix}keep${at} = 1 then ${own} else s.${staged} end` : `s.${staged}`;

export const restOf = (columns: readonly MergeColumn[]) => columns.filter(({ isKey }) => !isKey);

/** What a merge sets besides the columns: a row that is there is no longer marked as deleted. */
export const marksOf = ({ identifier }: Dialect, target: Target) => ({
  marks: isSoft(target) ? [`${identifier(DELETED_AT)} = null`] : [],
});

/** Where the log has the last change of a row (contract/change-fields.ts). */
const POSITION: keyof ChangeFacts = '_cdc_lsn';

export function isReplaced(
  { identifier, merge, types }: Dialect,
  target: Target,
  of: { columns: readonly MergeColumn[]; cursor: MergeCursor | null; incoming(column: MergeColumn): string },
): string {
  const { columns, cursor, incoming } = of;
  const pairs = restOf(columns).map((column) => [`t.${column.own}`, incoming(column)] as const);
  const differs = pairs.length > 0 ? [merge.differs(pairs)] : [];
  // Nearly all changes differ in it from the row that is there: then the whole rows need not be compared.
  const position = columns.find(
    ({ at }) => target.columns[at]!.name === POSITION && target.typed[at]!.type === types.text,
  );
  if (position) differs.unshift(`t.${position.own} <> ${incoming(position)}`);
  if (isSoft(target)) differs.push(`t.${identifier(DELETED_AT)} is not null`);
  const different = `(${differs.join(' or ') || 'false'})`;
  if (!cursor) return different;
  const column = columns.find(({ own }) => own === cursor.own)!;
  const { order } = cursor;
  return `(t.${cursor.own} is null or ${order(incoming(column))} >= ${order(`t.${cursor.own}`)}) and ${different}`;
}

/** An UPDATE of existing rows that counts those that really change. */
export const replacement =
  (dialect: Dialect, target: Target, { columns, on }: { columns: readonly MergeColumn[]; on: string }) =>
  (how: { from: string; where: string; cursor: MergeCursor | null; value: ValueOf }): string => {
    const { from, where, cursor, value } = how;
    const changed = replacedRow(dialect, target, { columns, cursor, value });
    const parts = { relation: target.relation, from, on, where: `${where} and ${changed.isReplaced}` };
    return dialect.merge.update(parts, changed.assignments);
  };

/** The condition of an existing row that really changes, and its new values. */
export function replacedRow(
  dialect: Dialect,
  target: Target,
  { columns, cursor, value }: { columns: readonly MergeColumn[]; cursor: MergeCursor | null; value: ValueOf },
): { isReplaced: string; assignments: (readonly [own: string, value: string])[] } {
  const incoming = (column: MergeColumn) => value(column, `t.${column.own}`);
  const assignments = restOf(columns).map((column) => [column.own, incoming(column)] as const);
  if (isSoft(target)) assignments.push([dialect.identifier(DELETED_AT), 'null']);
  // A table of nothing but key columns has nothing to update, and the condition is false.
  const [key] = columns.filter(({ isKey }) => isKey);
  if (assignments.length === 0) assignments.push([key!.own, `s.${key!.staged}`]);
  return { isReplaced: isReplaced(dialect, target, { columns, cursor, incoming }), assignments };
}
