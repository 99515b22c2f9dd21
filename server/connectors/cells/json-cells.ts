import type { Cell, LogicalType } from '../contract/connector.ts';
import { isBigint, NORMALIZERS } from './normalizers.ts';
import { rawNumber } from './json-line.ts';

/** All digits of a JSON number; null for any other value. */
export function digitsOf(value: unknown): string | null {
  const digits = typeof value === 'number' ? String(value) : rawNumber(value);
  return digits === '-0' ? '0' : digits;
}

/** Canonical text of a JSON value from `parseExactly`; undefined if the value is not of the type. */
export function jsonCell(value: unknown, type: LogicalType): Cell | undefined {
  if (value === null) return null;
  if (type === 'json') return JSON.stringify(value);
  if (type === 'array') return Array.isArray(value) ? JSON.stringify(value) : undefined;
  if (type === 'boolean') return typeof value === 'boolean' ? String(value) : undefined;
  // The common case, which needs no look at the digits.
  if (typeof value === 'number' && (type === 'integer' ? Number.isSafeInteger(value) : type === 'number')) {
    return Number.isFinite(value) ? String(value) : undefined;
  }
  const number = digitsOf(value);
  if (type === 'integer' || type === 'number') return number === null ? undefined : NORMALIZERS[type]?.(number);
  if (number !== null) return number;
  if (typeof value !== 'string') return JSON.stringify(value);
  const normalize = NORMALIZERS[type];
  return normalize ? normalize(value) : value;
}

export interface JsonColumn {
  records: readonly Record<string, unknown>[];
  /** Of the field. */
  name: string;
  rows: (Cell | undefined)[][];
  /** Where the rows have the column. */
  at: number;
  /** Converts values that the loop of a type does not: those of another type, and absent ones. */
  toCell(value: unknown): Cell | undefined;
}

/** Writes the cells of one field of all records into their rows. */
export type FillColumn = (column: JsonColumn) => void;

/**
 * One loop for each type, which the engine compiles for the most common values of this type: one loop over rows that calls
 * a function for each cell takes a quarter more time.
 */
const FILLS: Partial<Record<LogicalType, FillColumn>> = {
  string({ records, name, rows, at, toCell }) {
    for (let row = 0; row < records.length; row += 1) {
      const value = records[row]![name];
      rows[row]![at] = typeof value === 'string' ? value : toCell(value);
    }
  },
  integer({ records, name, rows, at, toCell }) {
    for (let row = 0; row < records.length; row += 1) {
      const value = records[row]![name];
      rows[row]![at] = Number.isSafeInteger(value) ? String(value) : toCell(value);
    }
  },
  number({ records, name, rows, at, toCell }) {
    for (let row = 0; row < records.length; row += 1) {
      const value = records[row]![name];
      rows[row]![at] = Number.isFinite(value) ? String(value) : toCell(value);
    }
  },
  json({ records, name, rows, at, toCell }) {
    for (let row = 0; row < records.length; row += 1) {
      const value = records[row]![name];
      rows[row]![at] = typeof value === 'object' && value !== null ? JSON.stringify(value) : toCell(value);
    }
  },
};

export const fillAny: FillColumn = ({ records, name, rows, at, toCell }) => {
  for (let row = 0; row < records.length; row += 1) rows[row]![at] = toCell(records[row]![name]);
};

/** For values that `jsonCell` converts. */
export const fillOf = (type: LogicalType): FillColumn => FILLS[type] ?? fillAny;

/** The narrowest type of a value; null for null. */
export function jsonType(value: unknown): LogicalType | null {
  if (value === null) return null;
  const number = digitsOf(value);
  if (number !== null) {
    if (isBigint(number)) return 'integer';
    return NORMALIZERS.number?.(number) === undefined ? 'string' : 'number';
  }
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'string') return 'string';
  return Array.isArray(value) ? 'array' : 'json';
}

/** The narrowest type that holds both: number for an integer and a number, JSON if either is nested, otherwise text. */
export function widenType(known: LogicalType | null, found: LogicalType | null): LogicalType | null {
  if (known === null || known === found) return found ?? known;
  if (found === null) return known;
  const both = new Set([known, found]);
  if (both.has('json') || both.has('array')) return 'json';
  return both.has('integer') && both.has('number') ? 'number' : 'string';
}
