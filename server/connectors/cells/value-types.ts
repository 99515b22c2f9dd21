import type { LogicalType } from '../contract/stream.ts';
import { MICROSECONDS, type ValueType } from './casts.ts';

/** A type as a database declares it, beside its logical type. */
export interface DeclaredType {
  type: LogicalType;
  source_type: string | null;
  dialect: string | null;
}

/** Digits of whole numbers, by the name of their type. */
const WHOLE_DIGITS: Record<string, number> = {
  tinyint: 3,
  utinyint: 3,
  smallint: 5,
  usmallint: 5,
  year: 4,
  mediumint: 8,
  int: 10,
  integer: 10,
  uinteger: 10,
  oid: 10,
  bigint: 20,
  ubigint: 20,
  hugeint: 39,
  uhugeint: 39,
};
/** Digits of a second where none are declared. MySQL's times have none then, PostgreSQL's six. */
const DEFAULT_PLACES: Record<string, number> = { timestamp_s: 0, timestamp_ms: 3 };

/** What limits the values of a declared type. */
export function valueType({ type, source_type, dialect }: DeclaredType): ValueType {
  const declared = (source_type ?? '').toLowerCase();
  const name = /^\w+/.exec(declared)?.[0] ?? '';
  const [, first, second = '0'] = /\((\d+)(?:, ?(-?\d+))?\)/.exec(declared) ?? [];
  switch (type) {
    case 'integer':
      return { type, digits: { whole: WHOLE_DIGITS[name] ?? 20, scale: 0 } };
    case 'number':
      return { type, ...numberLimits({ name, declared, dialect, precision: first, scale: second }) };
    case 'string':
      return { type, ...textLimits(declared, dialect, first) };
    case 'time':
    case 'timestamp':
    case 'timestamp_tz':
      if (name === '' || dialect === null) return { type };
      return { type, places: first === undefined ? (DEFAULT_PLACES[name] ?? defaultPlaces(dialect)) : Number(first) };
    default:
      return { type };
  }
}

/** SQLite and DuckDB declare lengths that they do not keep to. */
const LIMITS_TEXT: ReadonlySet<string | null> = new Set(['postgres', 'mysql']);

function textLimits(declared: string, dialect: string | null, length: string | undefined): Omit<ValueType, 'type'> {
  const [name] = /^(character varying|varchar|character|char|bpchar)\b/.exec(declared) ?? [];
  if (!name || !LIMITS_TEXT.has(dialect) || declared.endsWith(']')) return {};
  const limit = length === undefined ? {} : { length: Number(length) };
  if (name.endsWith('varying') || name === 'varchar') return limit;
  return { ...limit, blanks: dialect === 'mysql' ? 'trims' : 'pads' };
}

const defaultPlaces = (dialect: string) => (dialect === 'mysql' ? 0 : MICROSECONDS);

interface DeclaredNumber {
  name: string;
  declared: string;
  dialect: string | null;
  precision: string | undefined;
  scale: string;
}

function numberLimits({ name, declared, dialect, precision, scale }: DeclaredNumber): Omit<ValueType, 'type'> {
  const digits =
    precision === undefined ? {} : { digits: { whole: Number(precision) - Number(scale), scale: Number(scale) } };
  if (name === 'numeric' || name === 'decimal') return digits;
  const float = floatOf(name, dialect);
  // In MySQL, float(7,4) rounds to four digits. In other dialects the parentheses hold the size.
  if (float) return dialect === 'mysql' && declared.includes(',') ? { float, ...digits } : { float };
  const whole = WHOLE_DIGITS[name];
  return whole === undefined ? {} : { digits: { whole, scale: 0 } };
}

function floatOf(name: string, dialect: string | null): ValueType['float'] | null {
  if (name === 'double' || name === 'float8') return 'double';
  if (dialect === 'sqlite') return name === 'real' || name === 'float' ? 'double' : null;
  return name === 'real' || name === 'float' || name === 'float4' ? 'single' : null;
}
