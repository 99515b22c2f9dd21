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

/** `jsonCell` for one type and values that are not null. Checks the most common case first. */
export function jsonCellOf(type: LogicalType): (value: unknown) => Cell | undefined {
  switch (type) {
    case 'string':
      return (value) => (typeof value === 'string' ? value : jsonCell(value, type));
    case 'integer':
      return (value) => (Number.isSafeInteger(value) ? String(value) : jsonCell(value, type));
    case 'number':
      return (value) => (Number.isFinite(value) ? String(value) : jsonCell(value, type));
    case 'boolean':
      return (value) => (value === true ? 'true' : value === false ? 'false' : undefined);
    case 'json':
      return (value) => JSON.stringify(value);
    default:
      return (value) => jsonCell(value, type);
  }
}

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
