import { type Comparison, withoutPadding } from './comparison.ts';

/** The canonical form of an operand of a filter; null: it is not of the type. */
export function operandText(comparison: Comparison, value: unknown): string | null {
  const text = scalarText(value);
  return text === null ? null : (FORMS[comparison]?.(text) ?? null);
}

/** No database stores NUL and lone surrogates as text in the same way. */
function scalarText(value: unknown): string | null {
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : null;
  if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed()) return null;
  return value;
}

const same = (text: string) => text;
const FORMS: Record<Comparison, (text: string) => string | null> = {
  text: same,
  opaque: same,
  document: same,
  padded: withoutPadding,
  uuid,
  integer,
  decimal,
  double: (text) => floating(text, Number),
  single: (text) => floating(text, Math.fround),
  boolean: (text) => BOOLEANS.get(text.trim().toLowerCase()) ?? null,
  date: (text) => momentOf(text, 'date'),
  timestamp: (text) => momentOf(text, 'timestamp'),
  timestamp_tz: (text) => momentOf(text, 'timestamp_tz'),
  time,
  binary: (text) => (/^\\x(?:[0-9a-f]{2})*$/i.test(text) ? text.toLowerCase() : null),
};

const BOOLEANS = new Map([
  ...['true', 't', 'yes', 'y', 'on', '1'].map((text) => [text, 'true'] as const),
  ...['false', 'f', 'no', 'n', 'off', '0'].map((text) => [text, 'false'] as const),
]);

function uuid(text: string): string | null {
  const digits = text
    .trim()
    .replace(/^\{(.*)\}$/, '$1')
    .replaceAll('-', '')
    .toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(digits)) return null;
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join(
    '-',
  );
}

const NUMBER = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i;
/** What every database compares exactly. */
const MAX_DIGITS = 65;
const MAX_DECIMAL_PLACES = 30;

function integer(text: string): string | null {
  const number = decimal(text);
  return number === null || /[.NI]/.test(number) ? null : number;
}

/** Without exponent, plus sign and needless zeros. */
function decimal(text: string): string | null {
  const trimmed = text.trim();
  const special = SPECIAL.get(trimmed.toLowerCase());
  if (special) return special === 'NaN' ? special : null;
  const match = NUMBER.exec(trimmed);
  const [, sign, before = '', after = '', exponent = '0'] = match ?? [];
  if (!match || before.length + after.length === 0 || trimmed.length > 200) return null;
  const point = before.length + Number(exponent);
  const digits = `${before}${after}`;
  const whole = stripped(point <= 0 ? '' : digits.slice(0, point).padEnd(point, '0'), /^0+/);
  const fraction = stripped(point < 0 ? digits.padStart(digits.length - point, '0') : digits.slice(point), /0+$/);
  if (whole.length + fraction.length > MAX_DIGITS || fraction.length > MAX_DECIMAL_PLACES) return null;
  const plain = `${whole || '0'}${fraction && `.${fraction}`}`;
  return sign === '-' && plain !== '0' ? `-${plain}` : plain;
}

const stripped = (digits: string, zeros: RegExp) => digits.replace(zeros, '');

const SPECIAL = new Map([
  ['nan', 'NaN'],
  ['infinity', 'Infinity'],
  ['inf', 'Infinity'],
  ['+infinity', 'Infinity'],
  ['-infinity', '-Infinity'],
  ['-inf', '-Infinity'],
]);

/** The nearest number that the column can hold. Too large and too small ones are none, as in PostgreSQL. */
function floating(text: string, round: (value: number) => number): string | null {
  const trimmed = text.trim();
  const special = SPECIAL.get(trimmed.toLowerCase());
  if (special) return special;
  const match = NUMBER.exec(trimmed);
  const digits = `${match?.[2] ?? ''}${match?.[3] ?? ''}`;
  if (digits === '' || trimmed.length > 1_000) return null;
  const value = round(Number(trimmed));
  if (!Number.isFinite(value) || (value === 0 && /[1-9]/.test(digits))) return null;
  return Object.is(value, -0) ? '0' : String(value);
}

function time(text: string): string | null {
  const match = /^(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?$/.exec(text.trim());
  if (!match) return null;
  const [, hour = '', minute = '', second = '00', fraction = ''] = match;
  const place = Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  const isEnd = Number(hour) === 24 && place === 86_400 && /^0*$/.test(fraction);
  if ((Number(hour) > 23 && !isEnd) || Number(minute) > 59 || Number(second) > 59) return null;
  return `${hour.padStart(2, '0')}:${minute}:${second}${fractionText(fraction)}`;
}

function fractionText(fraction: string): string {
  const digits = stripped(fraction, /0+$/);
  return digits && `.${digits}`;
}

const MOMENT =
  /^(\d{4,6})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?\s?(Z|[+-]\d\d(?::?\d\d)?)?( BC)?$/i;

/**
 * A date has no time but midnight, and a timestamp without a zone none but UTC: PostgreSQL would drop the rest without
 * an error.
 */
function momentOf(text: string, type: 'date' | 'timestamp' | 'timestamp_tz'): string | null {
  const trimmed = text.trim();
  if (/^[+-]?infinity$/i.test(trimmed)) return trimmed.toLowerCase().replace('+', '');
  const match = MOMENT.exec(trimmed);
  if (!match) return null;
  const [, year = '', month = '', day = '', hour = '00', minute = '00', second = '00', fraction = '', zone = ''] =
    match;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  const before = match[9] ? ' BC' : '';
  if (!isDay(before ? 1 - Number(year) : Number(year), Number(month), Number(day)) || Number(year) === 0) return null;
  const offset = minutesOf(zone);
  if (Math.abs(offset) >= 16 * 60) return null;
  const places = fractionText(fraction);
  if (type === 'date') {
    return offset === 0 && /^[0:]*$/.test(`${hour}${minute}${second}`) && !places
      ? `${plainYear(year)}-${month}-${day}${before}`
      : null;
  }
  const local = `${plainYear(year)}-${month}-${day} ${hour}:${minute}:${second}${places}`;
  if (offset === 0) return `${local}${type === 'timestamp_tz' ? '+00' : ''}${before}`;
  if (type === 'timestamp' || before || year.length > 4) return null;
  const shifted = new Date(Date.parse(`${local.slice(0, 10)}T${local.slice(11, 19)}Z`) - offset * 60_000).toISOString();
  return shifted.length === 24 && shifted > '0001'
    ? `${shifted.slice(0, 10)} ${shifted.slice(11, 19)}${places}+00`
    : null;
}

const plainYear = (year: string) => year.replace(/^0+(?=\d{4})/, '');

/** Years before the first are 0 and negative, as in ISO 8601. */
function isDay(year: number, month: number, day: number): boolean {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}

function minutesOf(zone: string): number {
  if (zone === '' || zone.toUpperCase() === 'Z') return 0;
  const digits = zone.slice(1).replace(':', '').padEnd(4, '0');
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  return zone.startsWith('-') ? -minutes : minutes;
}
