import type { Cell, LogicalType } from '../contract/connector.ts';
import { NORMALIZERS } from '../cells/normalizers.ts';
import { isOrdered } from '../kits/sql/streams.ts';

/** Values as SQLite returns them, with integers as bigint. */
export type SqliteValue = null | bigint | number | string | Uint8Array;

/** A column has this type if none of its values is a misfit. `misfit`: SQL on a value that is not NULL. */
export interface Candidate {
  type: LogicalType;
  misfit(column: string): string;
}

const stored = (type: LogicalType, ...classes: string[]): Candidate => ({
  type,
  misfit: (column) => `typeof(${column}) not in (${classes.map((name) => `'${name}'`).join(', ')})`,
});
const digits = (count: number) => '[0-9]'.repeat(count);
const DAY = `${digits(4)}-${digits(2)}-${digits(2)}`;
const TIME = `${digits(2)}:${digits(2)}:${digits(2)}`;

/** Texts of different forms do not sort together, so a column has one form. SQLite's calendar decides which dates exist. */
const moment = (type: LogicalType, glob: string, more: (column: string) => string): Candidate => ({
  type,
  misfit: (column) =>
    `(typeof(${column}) <> 'text' or ${column} not glob '${glob}' or ${column} < '0001' or ${more(column)} or
      datetime(substr(${column}, 1, 19)) is not replace(substr(${column}, 1, 19), 'T', ' '))`,
});
const local = (separator: string) =>
  moment(
    'timestamp',
    `${DAY}${separator}${TIME}*`,
    (column) => `length(${column}) > 26 or
      (length(${column}) > 19 and (substr(${column}, 20) not glob '.[0-9]*' or substr(${column}, 21) glob '*[^0-9]*'))`,
  );
const utc = (fraction: number) =>
  moment('timestamp_tz', `${DAY}T${TIME}${fraction ? `.${digits(fraction)}` : ''}Z`, () => 'false');

const INTEGER = stored('integer', 'integer');
const NUMBER = stored('number', 'integer', 'real');
const BINARY = stored('binary', 'blob');
const BOOLEAN: Candidate = {
  type: 'boolean',
  misfit: (column) => `(typeof(${column}) <> 'integer' or ${column} not in (0, 1))`,
};
const DATE: Candidate = {
  type: 'date',
  misfit: (column) =>
    `(typeof(${column}) <> 'text' or ${column} not glob '${DAY}' or ${column} < '0001' or date(${column}) is not ${column})`,
};
const JSON_TEXT: Candidate = {
  type: 'json',
  misfit: (column) => `(typeof(${column}) <> 'text' or not json_valid(${column}))`,
};
const TIMESTAMPS = [local(' '), local('T'), utc(0), utc(3), utc(6)];

/**
 * What a column of this declared type may be, best first; text if nothing fits. Columns of SQLite accept values of any
 * type, so discovery reads all of them.
 */
export function candidatesOf(declared: string): Candidate[] {
  const type = declared.toUpperCase();
  if (/BOOL/.test(type)) return [BOOLEAN, INTEGER, NUMBER];
  if (/DATETIME|TIMESTAMP/.test(type)) return [...TIMESTAMPS, INTEGER, NUMBER];
  if (type === 'DATE') return [DATE, ...TIMESTAMPS, INTEGER, NUMBER];
  if (/INT/.test(type)) return [INTEGER, NUMBER];
  if (/JSON/.test(type)) return [JSON_TEXT];
  if (/CHAR|CLOB|TEXT|UUID/.test(type)) return [];
  if (/BLOB|BINARY/.test(type)) return [BINARY];
  return isUndeclared(type) ? [INTEGER, NUMBER, BINARY] : [NUMBER];
}

/** What a computed column of a query may be. */
export const COMPUTED: Candidate[] = [INTEGER, NUMBER, BINARY, DATE, ...TIMESTAMPS];

export const isUndeclared = (declared: string) => /^(ANY)?$/i.test(declared);

/** SQLite stores fractions as doubles, whatever a DECIMAL(10,2) declares: other databases would round them. */
export const shownType = (declared: string, type: LogicalType): string | null => {
  if (type !== 'number' || /INT/i.test(declared)) return declared === '' ? null : declared;
  return /REAL|FLOA|DOUB/i.test(declared) ? 'DOUBLE' : declared.replace(/\s*\(.*$/, '') || null;
};

export const isCursorType = (type: LogicalType, declared: string) => isOrdered(type) && !isUndeclared(declared);

export function doubleText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

const hexText = (bytes: Uint8Array) =>
  `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;

/** Any value as text. */
export function textOf(value: Exclude<SqliteValue, null>): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return doubleText(value);
  return typeof value === 'bigint' ? value.toString() : hexText(value);
}

/** The cell of a value; undefined when the value is not of the type. */
export function cellOf(value: SqliteValue, type: LogicalType): Cell | undefined {
  if (value === null) return null;
  switch (type) {
    case 'integer':
      return typeof value === 'bigint' ? value.toString() : undefined;
    case 'number':
      return typeof value === 'bigint' || typeof value === 'number' ? textOf(value) : undefined;
    case 'boolean':
      return value === 0n ? 'false' : value === 1n ? 'true' : undefined;
    case 'date':
    case 'timestamp':
    case 'timestamp_tz':
      return typeof value === 'string' ? NORMALIZERS[type]?.(value) : undefined;
    case 'binary':
      return value instanceof Uint8Array ? hexText(value) : undefined;
    case 'json':
      return typeof value === 'string' ? value : undefined;
    default:
      return textOf(value);
  }
}
