import type postgres from 'postgres';
import { spell, targetSql } from './canonical.ts';
import type { Form } from './kinds.ts';
import type { Place, Texts } from './places.ts';
import type { Column, Row } from './source-table.ts';

/** A source's rows as they should be at the destination. */
export async function expectedRows(
  sql: postgres.Sql,
  { columns, rows }: { columns: Column[]; rows: Texts[] },
): Promise<Row[]> {
  const forms: Form[] = ['decimal', 'decimal', 'text', 'decimal', ...columns.map(({ kind }) => kind.form)];
  const spelled = await spell(sql, forms, rows);
  const changed = columns.filter(({ kind, form }) => form !== kind.form);
  const values = spelled.map((row) => columns.map((column, at) => treated(column, row[at + 4] ?? null)));
  const respelled = await spell(
    sql,
    changed.map(({ form }) => form),
    values.map((row) => changed.map((column) => row[columns.indexOf(column)] ?? null)),
  );
  return spelled.map(([id, step, k, wide], at) => ({
    id: id ?? null,
    step: step ?? null,
    k: k ?? null,
    wide: wide ?? null,
    ...Object.fromEntries(columns.map(({ target }, index) => [target, values[at]?.[index] ?? null])),
    ...Object.fromEntries(changed.map(({ target }, index) => [target, respelled[at]?.[index] ?? null])),
  }));
}

function treated({ treatment, kind, form }: Column, value: string | null): string | null {
  if (value === null) return null;
  if (treatment === 'redact') return Buffer.from('***').toString('hex');
  const isText = kind.form === 'text' || kind.form === 'padded';
  if (treatment === 'hash_sha256') {
    return Buffer.from(Bun.SHA256.hash(Buffer.from(value, 'hex'), 'hex')).toString('hex');
  }
  return treatment === 'retype' && isText && form !== kind.form ? Buffer.from(value, 'hex').toString('utf8') : value;
}

/** The rows of the destination's table. Null: there is no such table. */
export async function actualRows(
  sql: postgres.Sql,
  place: Place,
  { table, columns, wide }: { table: string; columns: Column[]; wide: boolean },
): Promise<Row[] | null> {
  const types = await place.columns(table);
  if (types.size === 0) return null;
  const present = columns.filter(({ target }) => types.has(target));
  const name = place.dialect === 'mysql' ? `\`${table.replaceAll('`', '``')}\`` : `"${table.replaceAll('"', '""')}"`;
  const list = present.map(
    ({ form, target }) => `, ${targetSql(place.dialect, { form, type: types.get(target)! }, target)}`,
  );
  const key = targetSql(place.dialect, { form: 'text', type: 'text' }, 'k');
  const rows = await place.rows(`select id, step, ${key}, ${wide ? 'length(wide)' : '0'}${list.join('')} from ${name}`);
  const forms: Form[] = ['decimal', 'decimal', 'text', 'decimal', ...present.map(({ form }) => form)];
  return (await spell(sql, forms, rows)).map(([id, step, k, length, ...values]) => ({
    id: id ?? null,
    step: step ?? null,
    k: k ?? null,
    wide: length ?? null,
    ...Object.fromEntries(
      columns.map(({ target }) => [target, values[present.findIndex((one) => one.target === target)] ?? null]),
    ),
  }));
}

export interface Difference {
  /** Rows that only one side has; a failure shows the first few. */
  missing: Row[];
  extra: Row[];
  /** Values that differ in rows that both sides have, by column. */
  changed: Record<string, { count: number; expected: string | null; actual: string | null }>;
}

const textOf = (row: Row, names: readonly string[]) => JSON.stringify(names.map((name) => row[name] ?? null));

/** Null: the same rows, as often. */
export function difference(expected: Row[], actual: Row[], columns: readonly Column[]): Difference | null {
  const names = ['id', 'step', 'k', 'wide', ...new Set(columns.map(({ target }) => target))];
  const left = new Map<string, { row: Row; count: number }>();
  for (const row of expected) {
    const text = textOf(row, names);
    const found = left.get(text) ?? { row, count: 0 };
    left.set(text, { row, count: found.count + 1 });
  }
  const extra: Row[] = [];
  for (const row of actual) {
    const found = left.get(textOf(row, names));
    if (found && found.count > 0) found.count -= 1;
    else extra.push(row);
  }
  const missing = [...left.values()].flatMap(({ row, count }) => Array.from({ length: count }, () => row));
  return missing.length + extra.length > 0 ? pairedUp({ missing, extra, names }) : null;
}

/** Rows of one identity on both sides differ in some values. */
function pairedUp({ missing, extra, names }: { missing: Row[]; extra: Row[]; names: string[] }): Difference {
  const changed: Difference['changed'] = {};
  const lost: Row[] = [];
  const left = [...extra];
  for (const row of missing) {
    const at = left.findIndex((one) => one.id === row.id && one.step === row.step);
    if (at < 0) {
      lost.push(row);
      continue;
    }
    const [other] = left.splice(at, 1);
    for (const name of names) {
      const [expected, actual] = [row[name] ?? null, other?.[name] ?? null];
      if (expected === actual) continue;
      const count = (changed[name]?.count ?? 0) + 1;
      changed[name] = { count, expected: changed[name]?.expected ?? expected, actual: changed[name]?.actual ?? actual };
    }
  }
  return { missing: lost, extra: left, changed };
}
