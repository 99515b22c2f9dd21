import type { Cell } from '../../../contract/connector.ts';
import { type RowChange, UPSERT } from '../../../contract/changes.ts';

/**
 * A row's change as a stage stores it in one text column: null or '' for a complete upsert, `d` for a delete, `u,3,7,`
 * for an upsert that leaves the columns 3 and 7 unchanged.
 */
export function changeCell(change: RowChange): string | null {
  if (change.operation === 'delete') return 'd';
  return change.operation === 'upsert' && change.unchanged?.length ? `u,${change.unchanged.join(',')},` : null;
}

/** The kinds of changes in a stage, which decide what a merge has to handle. */
export class StagedChanges {
  /** The table is emptied before the staged rows are merged. */
  truncated = false;
  deletes = false;
  /** Columns that at least one staged row leaves unchanged. */
  readonly unchanged = new Set<number>();

  note(change: RowChange): void {
    if (change.operation === 'delete') this.deletes = true;
    else if (change.operation === 'upsert') for (const index of change.unchanged ?? []) this.unchanged.add(index);
  }

  /** Discards the rows staged so far and all rows of the table. */
  truncate(): void {
    this.truncated = true;
    this.unchanged.clear();
  }
}

/**
 * Drops rows that a later row of the same key overwrites, so that they need not be staged. Rows before one that leaves
 * columns unchanged are kept, because it needs their values.
 */
export function withoutOverwritten(
  rows: Cell[][],
  changes: readonly RowChange[],
  key: readonly number[],
): { rows: Cell[][]; changes: readonly RowChange[] } {
  const last = new Map<string, number>();
  const overwritten = new Set<number>();
  const [only] = key;
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index]!;
    const text = key.length === 1 ? (row[only!] ?? '') : JSON.stringify(key.map((at) => row[at]));
    const before = last.get(text);
    const change = changes[index];
    const whole = change?.operation !== 'upsert' || !change.unchanged?.length;
    if (before !== undefined && whole) overwritten.add(before);
    last.set(text, index);
  }
  if (overwritten.size === 0) return { rows, changes };
  const isKept = (_: unknown, index: number) => !overwritten.has(index);
  return { rows: rows.filter(isKept), changes: changes.filter(isKept) };
}

/**
 * Prepares a batch for the stage: drops overwritten rows, notes the changes, and appends the change cell to each row.
 * `unstaged`: upserts that need no staging, minus staged deletes.
 */
export function rowsToStage(
  rows: Cell[][],
  changes: readonly RowChange[],
  { key, noted }: { key: readonly number[]; noted: StagedChanges },
): { rows: Cell[][]; unstaged: number } {
  const kept = withoutOverwritten(rows, changes, key);
  for (let index = 0; index < kept.rows.length; index++) {
    const change = kept.changes[index] ?? UPSERT;
    noted.note(change);
    kept.rows[index]!.push(changeCell(change));
  }
  const upserts = changes.filter(({ operation }) => operation === 'upsert').length;
  return { rows: kept.rows, unstaged: upserts - kept.rows.length };
}

export interface StagedRows {
  /** A table or a subquery with an alias. */
  from: string;
  /** Quoted names. `columns` in the order of the target, `key` a subset of them. */
  columns: readonly string[];
  key: readonly string[];
  /** The column of `changeCell`. */
  change: string;
  /** Column that increases in order of arrival. */
  sequence: string;
  unchanged: Iterable<number>;
  /** Not the beginning of any column name. */
  prefix: string;
}

/**
 * A SELECT of the last change of each key, in SQL that PostgreSQL, MySQL and DuckDB accept: the columns, and
 * `<prefix>what`: `d`, `u` or '' for a complete row. Unchanged columns get their value from earlier changes of the same
 * key. If those have none, `<prefix>keep<index>` is 1 and the row is a `u`.
 */
export function latestChanges({ from, columns, key, change, sequence, unchanged, prefix }: StagedRows): string {
  const indexes = Array.from(unchanged).toSorted((a, b) => a - b);
  const untouched = (index: number) => `coalesce(${change}, '') like '%,${index},%'`;
  const known = (index: number) => `not (${untouched(index)}) and coalesce(${change}, '') <> 'd'`;
  const partition = `partition by ${key.join(', ')}`;
  const found = indexes.flatMap((index) => [
    `first_value(${columns[index]}) over (${partition} order by case when ${known(index)} then 0 else 1 end, ${sequence} desc) as ${prefix}v${index}`,
    `max(case when ${known(index)} then 1 else 0 end) over (${partition}) as ${prefix}k${index}`,
  ]);
  const ranked = [
    ...columns,
    change,
    ...found,
    `row_number() over (${partition} order by ${sequence} desc) as ${prefix}place`,
  ];
  const missing = (index: number) => `(${untouched(index)} and ${prefix}k${index} = 0)`;
  const values = columns.map((column, index) =>
    indexes.includes(index)
      ? `case when ${untouched(index)} then ${prefix}v${index} else ${column} end as ${column}`
      : column,
  );
  const what = indexes.length > 0 ? `when ${indexes.map(missing).join(' or ')} then 'u'` : '';
  const kept = indexes.map((index) => `case when ${missing(index)} then 1 else 0 end as ${prefix}keep${index}`);
  const shown = [...values, `case when ${change} = 'd' then 'd' ${what} else '' end as ${prefix}what`, ...kept];
  return `select ${shown.join(', ')} from (select ${ranked.join(', ')} from ${from}) as ranked where ${prefix}place = 1`;
}

/** Underscores that are not the beginning of any name. */
export function unusedPrefix(names: readonly string[]): string {
  let prefix = '_';
  while (names.some((name) => name.toLowerCase().startsWith(prefix))) prefix += '_';
  return prefix;
}
