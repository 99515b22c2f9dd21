import type { LogicalType } from '../contract/connector.ts';
import { instantText, parseTime } from './timestamp-text.ts';

/** Converts a text to the canonical form of its type; undefined if it is not of the type. */
export type Normalizer = (text: string) => string | undefined;

const EXPONENT = /^-?(?:0|[1-9]\d*)(?:\.\d+)?[eE][+-]?\d{1,3}$/;
const ZONE = /^[+-](?:0\d|1[0-5])(?::?[0-5]\d)?$/;
const NO_OFFSET = /^[+-][0:]+$/;
const MONTH_DAYS = [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const BIGINT_DIGITS = '9223372036854775807';

/** An integer in the range of bigint, without plus sign, leading zeros or minus zero. */
export function isBigint(text: string): boolean {
  const negative = text.charCodeAt(0) === 45;
  const first = negative ? 1 : 0;
  const digits = text.length - first;
  if (digits < 1 || digits > 19) return false;
  for (let at = first; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 48 || code > 57) return false;
  }
  if (text.charCodeAt(first) === 48 && (digits > 1 || negative)) return false;
  return digits < 19 || text.slice(first) <= BIGINT_DIGITS;
}

const digitAt = (text: string, at: number) => {
  const digit = text.charCodeAt(at) - 48;
  return digit >= 0 && digit <= 9 ? digit : Number.NaN;
};
const twoAt = (text: string, at: number) => digitAt(text, at) * 10 + digitAt(text, at + 1);

/** The end of the run of digits that starts at `from`. */
function digitsEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57) at++;
  return at;
}

/** A number of any precision. Minus zero and exponents beyond a double's are excluded: they would not round-trip. */
function isNumber(text: string): boolean {
  const first = text.charCodeAt(0) === 45 ? 1 : 0;
  const whole = digitsEnd(text, first);
  if (whole === first || (text.charCodeAt(first) === 48 && whole > first + 1) || text.length > 1000) return false;
  let end = whole;
  if (text.charCodeAt(whole) === 46) {
    end = digitsEnd(text, whole + 1);
    if (end === whole + 1) return false;
  }
  if (end === text.length) return first === 0 || Number(text) !== 0;
  return EXPONENT.test(text) && Number.isFinite(Number(text)) && Number(text) !== 0;
}

/** Whether the first ten characters are a valid date. */
function startsWithDate(text: string): boolean {
  const year = twoAt(text, 0) * 100 + twoAt(text, 2);
  const month = twoAt(text, 5);
  const day = twoAt(text, 8);
  if (!(year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= (MONTH_DAYS[month] as number))) return false;
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return false;
  return month !== 2 || day < 29 || (year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0));
}

/** Where `2026-01-31 23:59:59.123456` ends, with optional seconds and fraction; -1 if the text has another form. */
function timestampEnd(text: string): number {
  const separator = text.charCodeAt(10);
  if ((separator !== 32 && separator !== 84) || !startsWithDate(text)) return -1;
  if (!(twoAt(text, 11) < 24 && text.charCodeAt(13) === 58 && twoAt(text, 14) < 60)) return -1;
  if (text.charCodeAt(16) !== 58) return 16;
  if (!(twoAt(text, 17) < 60)) return -1;
  if (text.charCodeAt(19) !== 46) return 19;
  const end = digitsEnd(text, 20);
  return end > 20 && end <= 26 ? end : -1;
}

/** The first `end` characters, with a space instead of the T and with seconds. */
function localForm(text: string, end: number): string {
  const local = text.charCodeAt(10) === 32 ? text.slice(0, end) : `${text.slice(0, 10)} ${text.slice(11, end)}`;
  return end === 16 ? `${local}:00` : local;
}

const timestamp: Normalizer = (text) => {
  const end = timestampEnd(text);
  return end > 0 && end === text.length ? localForm(text, end) : undefined;
};

const timestampTz: Normalizer = (text) => {
  const end = timestampEnd(text);
  if (end < 0 || end === text.length) return undefined;
  const zone = text.slice(end);
  if (zone === '+00' && end > 16 && text.charCodeAt(10) === 32) return text;
  if (zone === 'Z' || (ZONE.test(zone) && NO_OFFSET.test(zone))) return `${localForm(text, end)}+00`;
  const at = ZONE.test(zone) ? parseTime(text)?.at : undefined;
  return at === undefined || typeof at === 'string' ? undefined : instantText(at);
};

const boolean: Normalizer = (text) => {
  if (text === 'true' || text === 'TRUE' || text === 'True') return 'true';
  return text === 'false' || text === 'FALSE' || text === 'False' ? 'false' : undefined;
};

const accepting =
  (test: (text: string) => boolean): Normalizer =>
  (text) =>
    test(text) ? text : undefined;

/** By type. Types without an entry accept any text. */
export const NORMALIZERS: Partial<Record<LogicalType, Normalizer>> = {
  integer: accepting(isBigint),
  number: accepting(isNumber),
  boolean,
  date: accepting((text) => text.length === 10 && startsWithDate(text)),
  timestamp,
  timestamp_tz: timestampTz,
};

const INFERRED: LogicalType[] = ['integer', 'number', 'boolean', 'date', 'timestamp', 'timestamp_tz'];

/** Infers the narrowest type that holds all texts without loss; `string` if there are none. */
export class TypeInference {
  private candidates = INFERRED;
  private seen = false;

  add(text: string | null): void {
    if (text === null) return;
    this.seen = true;
    this.candidates = this.candidates.filter((type) => NORMALIZERS[type]?.(text) !== undefined);
  }

  result(): LogicalType {
    return this.seen ? (this.candidates[0] ?? 'string') : 'string';
  }
}
