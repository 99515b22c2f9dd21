import type { Field } from '../contract/stream.ts';

/**
 * How the values of a field compare, with PostgreSQL's meaning, for every source and for the engine. `opaque`: equal if
 * the texts are, without an order. `document`: neither.
 */
export type Comparison =
  | 'text'
  | 'padded'
  | 'uuid'
  | 'opaque'
  | 'integer'
  | 'decimal'
  | 'double'
  | 'single'
  | 'boolean'
  | 'date'
  | 'timestamp'
  | 'timestamp_tz'
  | 'time'
  | 'binary'
  | 'document';

/** Orders two canonical texts: negative, zero or positive. */
export type Order = (a: string, b: string) => number;

const bareName = (type: string) => type.toLowerCase().replace(/\(.*$/, '').trim();

const SINGLE = new Set(['postgres real', 'mysql float', 'duckdb float']);
const DOUBLE = new Set(['postgres double precision', 'mysql double', 'duckdb double', 'sqlite double']);
const STRINGS: Record<string, Comparison> = {
  'postgres text': 'text',
  'postgres character varying': 'text',
  'postgres character': 'padded',
  'postgres uuid': 'uuid',
  'mysql varchar': 'text',
  'mysql tinytext': 'text',
  'mysql text': 'text',
  'mysql mediumtext': 'text',
  'mysql longtext': 'text',
  'mysql char': 'padded',
  'mysql uuid': 'uuid',
  'duckdb varchar': 'text',
  'duckdb uuid': 'uuid',
};

/** Their types that appear as text may have an order of their own. */
const HAS_OWN_TEXTS = new Set(['postgres', 'mysql', 'duckdb']);

export function comparisonOf({
  type,
  source_type,
  dialect,
}: Pick<Field, 'type' | 'source_type' | 'dialect'>): Comparison {
  const name = `${dialect} ${bareName(source_type ?? '')}`;
  switch (type) {
    case 'string':
      return STRINGS[name] ?? (source_type !== null && HAS_OWN_TEXTS.has(dialect ?? '') ? 'opaque' : 'text');
    case 'number':
      return SINGLE.has(name) ? 'single' : DOUBLE.has(name) ? 'double' : 'decimal';
    case 'json':
    case 'array':
      return 'document';
    default:
      return type;
  }
}

/** The order of canonical texts. Texts of `opaque` and `document` have an arbitrary but stable one. */
export function orderOf(comparison: Comparison): Order {
  switch (comparison) {
    case 'padded':
      return (a, b) => compareTexts(withoutPadding(a), withoutPadding(b));
    case 'integer':
    case 'decimal':
      return compareDecimals;
    case 'double':
      return (a, b) => compareDoubles(Number(a), Number(b));
    case 'single':
      return (a, b) => compareDoubles(Math.fround(Number(a)), Math.fround(Number(b)));
    case 'date':
    case 'timestamp':
    case 'timestamp_tz':
      return (a, b) => compareTexts(momentKey(a), momentKey(b));
    case 'time':
      return (a, b) => compareTexts(timeKey(a), timeKey(b));
    default:
      return compareTexts;
  }
}

/** The blanks at the end of a `character(n)` have no meaning. */
export function withoutPadding(text: string): string {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === 32) end -= 1;
  return text.slice(0, end);
}

/** By code point, as UTF-8 bytes are. JavaScript orders UTF-16 units, where surrogates come before U+E000. */
const compareTexts: Order = (a, b) => {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x === y) continue;
    // A surrogate is a part of a code point above all others.
    return isSurrogate(x) === isSurrogate(y) ? x - y : isSurrogate(x) ? 1 : -1;
  }
  return a.length - b.length;
};
const isSurrogate = (unit: number) => unit >= 0xd8_00 && unit <= 0xdf_ff;

/** NaN equals itself and is above infinity. */
function compareDoubles(a: number, b: number): number {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1;
  if (Number.isNaN(b)) return -1;
  return a === b ? 0 : a < b ? -1 : 1;
}

const DECIMAL = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,4}))?$/;
const SAFE_LENGTH = 15;

/** Exact, whatever the number of digits. NaN and the infinities are ordered as doubles are. */
const compareDecimals: Order = (a, b) => {
  if (a.length <= SAFE_LENGTH && b.length <= SAFE_LENGTH && !a.includes('.') && !b.includes('.')) {
    return compareDoubles(Number(a), Number(b));
  }
  const [x, y] = [decimalOf(a), decimalOf(b)];
  if (!x || !y) return compareDoubles(Number(a), Number(b));
  const scale = Math.max(x.scale, y.scale);
  const difference = scaled(x, scale) - scaled(y, scale);
  return difference === 0n ? 0 : difference < 0n ? -1 : 1;
};

interface Decimal {
  digits: bigint;
  scale: number;
}

function decimalOf(text: string): Decimal | null {
  const match = DECIMAL.exec(text);
  if (!match || text.length > 2_000) return null;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const digits = BigInt(`${whole}${fraction}` || '0');
  return { digits: sign === '-' ? -digits : digits, scale: fraction.length - Number(exponent) };
}
const scaled = ({ digits, scale }: Decimal, wanted: number) => digits * 10n ** BigInt(wanted - scale);

const MOMENT = /^(\d{4,7})-(\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?(?:Z|[+-]00(?::?00)?)?( BC)?$/;

/**
 * A text that sorts as the date or timestamp does, also before the first year, after year 9999, and for infinity. It
 * takes canonical texts, which are in UTC or have no zone.
 */
export function momentKey(text: string): string {
  const match = MOMENT.exec(text);
  if (!match) return text === 'infinity' ? '~' : text === '-infinity' ? '!' : text;
  const [, year = '', day, time = '00:00', second = '00', fraction = '', before] = match;
  const era = before ? `A${String(9_999_999 - Number(year)).padStart(7, '0')}` : `B${year.padStart(7, '0')}`;
  return `${era}-${day} ${time}:${second}.${fraction.padEnd(6, '0')}`;
}

/** `12:00:00` and `12:00:00.000` are the same time. */
export const timeKey = (text: string): string => {
  const [time = '', fraction = ''] = text.split('.');
  return `${time}.${fraction.padEnd(6, '0')}`;
};
