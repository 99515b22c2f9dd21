import type { WriteTarget } from '../../contract/connector.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import type { Dialect, SqlSession } from './dialect.ts';
import { latestChanges, type StagedChanges } from './staged-changes.ts';
import type { Target } from './target.ts';

/** Rows that really changed, and rows that are gone or marked as deleted. */
export interface Merged {
  updated: number;
  deleted: number;
}

/** A column as the stage and the table have it, both quoted. `at`: its place in the target. */
export interface MergeColumn {
  staged: string;
  own: string;
  at: number;
  isKey: boolean;
}

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

/** Compares cursors of the staged row and the row of the table. `order`: what a cursor is ordered by. */
interface MergeCursor {
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

/** The statements that bring a stage into its table. Without `latest`, `upsert` and `update` read the stage itself. */
export interface MergePlan {
  /** A SELECT of the last change of each key, to be had under the dialect's name for it. */
  latest: string | null;
  /** Columns of the primary key in `latest`, quoted. */
  key: readonly string[];
  removals: string[];
  /** Updates rows of which some columns stay as the table has them. */
  patch: string | null;
  put: { upsert: string } | { update: string };
}

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

const isSoft = ({ mode }: Pick<WriteTarget, 'mode'>) => mode === 'soft_delete';

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

const onKey = (columns: readonly MergeColumn[]) =>
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

/**
 * How to bring a stage into the table by the primary key (contract/changes.ts). Of rows with the same key the one with
 * the highest cursor wins, then the last to arrive. An existing row is replaced unless its cursor is higher or nothing
 * would change. Of changes the last to arrive wins.
 */
export function mergePlan(
  dialect: Dialect,
  target: Target,
  staged: StagedMerge,
  order = (column: string) => column,
): MergePlan {
  const { merge } = dialect;
  const { changes, columns, prefix, complete } = staged;
  const isUpdate = target.mode === 'update';
  const cursor = cursorOf(target, staged, order);
  const newest = newestRows(dialect, staged, cursor);
  const needsLatest = changes !== null || (merge.indexesLatest && (complete || isUpdate));
  const latest = needsLatest ? latestRows(dialect, staged, newest) : null;
  const removals = removalsOf(dialect, target, staged);
  const first = removals.length > 0 ? merge.afterRemovals?.(removals.length) : undefined;
  const after = needsLatest && first ? ` and ${first}` : '';
  const on = onKey(columns);
  const replaced = replacement(dialect, target, { columns, on });
  // Changes are in the order of arrival, so the cursor has no say.
  const compared = changes ? null : cursor;
  const whole = needsLatest ? `select * from ${staged.latest} where ${prefix}what = ''${after}` : newest;
  const patch = changes?.unchanged.size
    ? replaced({
        from: staged.latest,
        where: `s.${prefix}what = 'u'${after}`,
        cursor: compared,
        value: keptOr(changes, prefix),
      })
    : null;
  const update = () => {
    const where = needsLatest ? `s.${prefix}what = ''${after}` : 'true';
    return replaced({ from: needsLatest ? staged.latest : `(${newest})`, where, cursor: compared, value: stagedValue });
  };
  const upsert = () =>
    merge.upsert({
      relation: target.relation,
      columns,
      from: whole,
      cursor: compared,
      ...marksOf(dialect, target),
      isReplaced: (incoming) => isReplaced(dialect, target, { columns, cursor: compared, incoming }),
    });
  const key = columnNames(staged).key;
  return { latest, key, removals, patch, put: isUpdate ? { update: update() } : { upsert: upsert() } };
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

/** The last change, or row, of each key, with what happened to it. */
function latestRows({ merge }: Dialect, staged: StagedMerge, newest: string): string {
  const { changes, change, from, prefix, sequence } = staged;
  if (!changes) return `select newest.*, '' as ${prefix}what from (${newest}) as newest`;
  const names = columnNames(staged);
  if (changes.unchanged.size > 0 || !merge.firstOfKey)
    return latestChanges({ ...staged, ...names, unchanged: changes.unchanged });
  const what = `case when ${change} = 'd' then 'd' else '' end as ${prefix}what`;
  const columns = [...names.columns, what].join(', ');
  return merge.firstOfKey({ from, columns, key: names.key.join(', '), order: `${sequence} desc` });
}

function removalsOf(dialect: Dialect, target: Target, staged: StagedMerge): string[] {
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

const columnNames = ({ columns }: StagedMerge) => ({
  columns: columns.map(({ staged }) => staged),
  key: columns.filter(({ isKey }) => isKey).map(({ staged }) => staged),
});

function cursorOf(target: Target, { columns }: StagedMerge, order: MergeCursor['order']): MergeCursor | null {
  const at = target.columns.findIndex(({ name }) => name === target.cursor_column);
  const column = columns[at];
  return column ? { staged: column.staged, own: column.own, order } : null;
}

/** The rows of a stage without changes, one per key. */
function newestRows({ merge }: Dialect, staged: StagedMerge, cursor: MergeCursor | null): string {
  const { from, sequence, prefix } = staged;
  const names = columnNames(staged);
  const [columns, key] = [names.columns.join(', '), names.key.join(', ')];
  const order = [...(cursor ? [`${cursor.order(cursor.staged)} desc`] : []), `${sequence} desc`];
  if (merge.firstOfKey) return merge.firstOfKey({ from, columns, key, order: order.join(' nulls last, ') });
  const place = `${prefix}place`;
  return `select ${columns} from (select ${columns}, row_number() over (partition by ${key} order by ${order.join(', ')})
    as ${place} from ${from}) as ranked where ${place} = 1`;
}

type ValueOf = (column: MergeColumn, own: string) => string;
const stagedValue: ValueOf = ({ staged }) => `s.${staged}`;
const keptOr =
  ({ unchanged }: StagedChanges, prefix: string): ValueOf =>
  ({ staged, at }, own) =>
    unchanged.has(at) ? `case when s.${prefix}keep${at} = 1 then ${own} else s.${staged} end` : `s.${staged}`;

const restOf = (columns: readonly MergeColumn[]) => columns.filter(({ isKey }) => !isKey);

/** What a merge sets besides the columns: a row that is there is no longer marked as deleted. */
const marksOf = ({ identifier }: Dialect, target: Target) => ({
  marks: isSoft(target) ? [`${identifier(DELETED_AT)} = null`] : [],
});

function isReplaced(
  { identifier, merge }: Dialect,
  target: Target,
  of: { columns: readonly MergeColumn[]; cursor: MergeCursor | null; incoming(column: MergeColumn): string },
): string {
  const { columns, cursor, incoming } = of;
  const pairs = restOf(columns).map((column) => [`t.${column.own}`, incoming(column)] as const);
  const differs = pairs.length > 0 ? [merge.differs(pairs)] : [];
  if (isSoft(target)) differs.push(`t.${identifier(DELETED_AT)} is not null`);
  const different = `(${differs.join(' or ') || 'false'})`;
  if (!cursor) return different;
  const column = columns.find(({ own }) => own === cursor.own)!;
  const { order } = cursor;
  return `(t.${cursor.own} is null or ${order(incoming(column))} >= ${order(`t.${cursor.own}`)}) and ${different}`;
}

/** An UPDATE of existing rows that counts those that really change. */
const replacement =
  (dialect: Dialect, target: Target, { columns, on }: { columns: readonly MergeColumn[]; on: string }) =>
  (how: { from: string; where: string; cursor: MergeCursor | null; value: ValueOf }): string => {
    const { from, where, cursor, value } = how;
    const changed = replacedRow(dialect, target, { columns, cursor, value });
    const parts = { relation: target.relation, from, on, where: `${where} and ${changed.isReplaced}` };
    return dialect.merge.update(parts, changed.assignments);
  };

/** The condition of an existing row that really changes, and its new values. */
function replacedRow(
  dialect: Dialect,
  target: Target,
  { columns, cursor, value }: { columns: readonly MergeColumn[]; cursor: MergeCursor | null; value: ValueOf },
): Pick<OneMerge, 'isReplaced' | 'assignments'> {
  const incoming = (column: MergeColumn) => value(column, `t.${column.own}`);
  const assignments = restOf(columns).map((column) => [column.own, incoming(column)] as const);
  if (isSoft(target)) assignments.push([dialect.identifier(DELETED_AT), 'null']);
  // A table of nothing but key columns has nothing to update, and the condition is false.
  const [key] = columns.filter(({ isKey }) => isKey);
  if (assignments.length === 0) assignments.push([key!.own, `s.${key!.staged}`]);
  return { isReplaced: isReplaced(dialect, target, { columns, cursor, incoming }), assignments };
}

/**
 * Runs a plan statement by statement.
 * @param how.keep creates and fills the table of the last change of each key
 * @param how.upsert runs the upsert and returns the rows that it replaced
 */
export async function runMerge(
  session: SqlSession,
  plan: MergePlan,
  how: { keep(latest: string): Promise<void>; upsert(text: string): Promise<number>; drop(): Promise<void> },
): Promise<Merged> {
  const run = async (text: string) => (await session.query(text, { slow: true })).count;
  const merged = { updated: 0, deleted: 0 };
  if (plan.latest !== null) await how.keep(plan.latest);
  for (const text of plan.removals) merged.deleted += await run(text);
  if (plan.patch !== null) merged.updated += await run(plan.patch);
  merged.updated += 'upsert' in plan.put ? await how.upsert(plan.put.upsert) : await run(plan.put.update);
  if (plan.latest !== null) await how.drop();
  return merged;
}

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
        : `insert into ${relation} (${into}) select ${fresh} from ${latest} as s
             where s.${prefix}what = '' and not exists (select 1 from ${relation} as t where ${on})`,
  };
}
