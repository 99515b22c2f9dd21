import type { Batch, Cell, Filter, LogicalType } from '../connectors/define.ts';
import { fieldChange } from './field-mapping.ts';
import { filterChanges } from './mapping-changes.ts';
import type { PlannedColumn, TransferPlan } from './transfer-plan.ts';

/** Keyed hash of a value under the account's salt, hexadecimal. */
export type Salt = (value: string | Uint8Array) => string;

/** The text that stands for a redacted value; null stays null, so that its absence is still seen. */
export const REDACTION = '***';

/**
 * Does to each row what the source could not: filters, field mappings and masks. Changes the rows in place.
 * The results are the same as a source's pushdown gives (one table of tests runs over both). `history`: the destination
 * keeps every change as a row.
 */
export function createMapper(plan: TransferPlan, salt: Salt, history = false): (batch: Batch) => Batch {
  const changes = plan.columns
    .map((column, index) => ({ index, change: changeOf(column, salt) }))
    .filter((entry): entry is { index: number; change: (cell: Cell) => Cell } => entry.change !== null);
  const width = plan.columns.length;
  const tests = plan.filters.map(({ index, type, filter }) => ({ index, matches: filterTest(filter, type) }));
  const key = new Set(
    plan.columns.flatMap(({ target }, index) => (plan.primary_key.includes(target.name) ? [index] : [])),
  );
  return (given) => {
    const batch = given.changes ? filterChanges(given, { tests, key, width, history }) : given;
    const rows =
      tests.length === 0 || batch.changes
        ? batch.rows
        : batch.rows.filter((row) => tests.every(({ index, matches }) => matches(row[index] ?? null)));
    for (const row of rows) {
      for (const { index, change } of changes) row[index] = change(row[index] ?? null);
      if (row.length > width) row.length = width;
    }
    return { ...batch, rows };
  };
}

/** A value that the source has masked already is not looked into. */
function changeOf({ mapping, masking, pushed }: PlannedColumn, salt: Salt): ((cell: Cell) => Cell) | null {
  const mapped = mapping && (pushed === 'none' || mapping.constant_value !== null) ? fieldChange(mapping) : null;
  const mask = mapping?.constant_value == null ? maskerOf(masking, salt) : null;
  const masked = mask && ((cell: Cell) => (cell === null ? null : mask(cell)));
  return mapped && masked ? (cell) => masked(mapped(cell)) : (mapped ?? masked);
}

/** Takes a value as text or as its UTF-8 bytes; both give the same. */
export type Mask = (cell: string | Uint8Array) => string;

export function maskerOf(masking: string, salt: Salt): Mask | null {
  switch (masking) {
    case 'none':
      return null;
    case 'redact':
      return () => REDACTION;
    case 'hash_sha256':
      return (cell) => Bun.SHA256.hash(cell, 'hex');
    default:
      return salt;
  }
}

const NUMERIC: ReadonlySet<LogicalType> = new Set(['integer', 'number']);

/** Null never matches, as in SQL, but for `is_null`. */
export function filterTest(filter: Filter, type: LogicalType): (cell: Cell) => boolean {
  const operand = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  const compare = NUMERIC.has(type)
    ? (a: string, b: string) => compareNumbers(a, b)
    : (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);
  const list = (Array.isArray(filter.value) ? filter.value : [filter.value]).map(operand);
  const [first = '', second = ''] = list;
  const known = (test: (cell: string) => boolean) => (cell: Cell) => cell !== null && test(cell);
  switch (filter.operator) {
    case 'is_null':
      return (cell) => cell === null;
    case 'is_not_null':
      return (cell) => cell !== null;
    case 'eq':
      return known((cell) => compare(cell, first) === 0);
    case 'ne':
      return known((cell) => compare(cell, first) !== 0);
    case 'gt':
      return known((cell) => compare(cell, first) > 0);
    case 'gte':
      return known((cell) => compare(cell, first) >= 0);
    case 'lt':
      return known((cell) => compare(cell, first) < 0);
    case 'lte':
      return known((cell) => compare(cell, first) <= 0);
    case 'between':
      return known((cell) => compare(cell, first) >= 0 && compare(cell, second) <= 0);
    case 'in':
      return known((cell) => list.some((value) => compare(cell, value) === 0));
    case 'not_in':
      return known((cell) => list.every((value) => compare(cell, value) !== 0));
    case 'contains':
      return known((cell) => cell.includes(first));
    case 'starts_with':
      return known((cell) => cell.startsWith(first));
  }
}

/** Exact for whole numbers of any size; others as doubles. */
function compareNumbers(a: string, b: string): number {
  if (/^-?\d+$/.test(a) && /^-?\d+$/.test(b)) {
    const [x, y] = [BigInt(a), BigInt(b)];
    return x === y ? 0 : x < y ? -1 : 1;
  }
  return Number(a) - Number(b);
}
