import type { LogicalType } from '../../../../contract/connector.ts';
import { NORMALIZERS } from '../../../../cells/normalizers.ts';

/** Whether the bytes `[from, to)` are a value of a type. */
export type ByteCheck = (from: number, to: number) => boolean;

/**
 * Applies the rules of NORMALIZERS to the bytes of a buffer. Common forms are recognized directly; everything else goes
 * through the normalizer. Null for types that accept any text.
 */
export function byteCheck(type: LogicalType, bytes: Uint8Array): ByteCheck | null {
  const normalize = NORMALIZERS[type];
  if (!normalize) return null;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const ask: ByteCheck = (from, to) => normalize(text.toString('latin1', from, to)) !== undefined;
  const plain = PLAIN[type];
  return plain ? (from, to) => plain(bytes, from, to) || ask(from, to) : ask;
}

const MINUS = 45;
const POINT = 46;
const ZERO = 48;
const NINE = 57;
const MONTH_DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** Up to here a number whose digits are not all zero is no zero as a double, and no text is too long. */
const MAX_NUMBER_BYTES = 100;

function digitsEnd(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to) {
    const byte = bytes[at] as number;
    if (byte < ZERO || byte > NINE) break;
    at++;
  }
  return at;
}

/** Up to 18 digits without a leading zero, perhaps after a minus. */
function plainInteger(bytes: Uint8Array, from: number, to: number): boolean {
  const negative = bytes[from] === MINUS;
  const first = negative ? from + 1 : from;
  const digits = to - first;
  if (digits < 1 || digits > 18 || digitsEnd(bytes, first, to) !== to) return false;
  return bytes[first] !== ZERO || (digits === 1 && !negative);
}

/** Digits, perhaps a point and digits, perhaps after a minus. */
function plainNumber(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from > MAX_NUMBER_BYTES) return false;
  const negative = bytes[from] === MINUS;
  const first = negative ? from + 1 : from;
  const point = digitsEnd(bytes, first, to);
  if (point === first || (bytes[first] === ZERO && point > first + 1)) return false;
  if (point < to) {
    if (bytes[point] !== POINT || point + 1 === to || digitsEnd(bytes, point + 1, to) !== to) return false;
  }
  return !negative || hasOther(bytes, first, to);
}

/** Whether there is a digit other than zero. */
function hasOther(bytes: Uint8Array, from: number, to: number): boolean {
  let at = from;
  while (at < to && (bytes[at] === ZERO || bytes[at] === POINT)) at++;
  return at < to;
}

/** The number that two digits form; NaN if they are not digits. */
function twoAt(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - ZERO;
  const ones = (bytes[at + 1] as number) - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

/** Of a 29 February, the normalizer decides. */
function startsWithDate(bytes: Uint8Array, from: number): boolean {
  const month = twoAt(bytes, from + 5);
  const day = twoAt(bytes, from + 8);
  if (bytes[from + 4] !== MINUS || bytes[from + 7] !== MINUS || !(month >= 1 && month <= 12)) return false;
  if (!(day >= 1 && day <= (MONTH_DAYS[month] as number))) return false;
  return twoAt(bytes, from) > 0 && twoAt(bytes, from + 2) >= 0;
}

/** Where `2026-01-31 23:59:59` with a fraction of up to six digits ends; -1 if the bytes have another form. */
function timestampEnd(bytes: Uint8Array, from: number, to: number): number {
  if (to - from < 19 || !startsWithDate(bytes, from)) return -1;
  const separator = bytes[from + 10];
  if (separator !== 32 && separator !== 84) return -1;
  if (bytes[from + 13] !== 58 || bytes[from + 16] !== 58) return -1;
  if (!(twoAt(bytes, from + 11) < 24 && twoAt(bytes, from + 14) < 60 && twoAt(bytes, from + 17) < 60)) return -1;
  if (bytes[from + 19] !== 46 || to === from + 19) return from + 19;
  const end = digitsEnd(bytes, from + 20, to);
  return end > from + 20 && end <= from + 26 ? end : -1;
}

function plainTimestampTz(bytes: Uint8Array, from: number, to: number): boolean {
  const end = timestampEnd(bytes, from, to);
  if (end < 0) return false;
  if (to - end === 1) return bytes[end] === 90;
  return to - end === 3 && bytes[end] === 43 && bytes[end + 1] === 48 && bytes[end + 2] === 48;
}

const PLAIN: Partial<Record<LogicalType, (bytes: Uint8Array, from: number, to: number) => boolean>> = {
  integer: plainInteger,
  number: plainNumber,
  date: (bytes, from, to) => to - from === 10 && startsWithDate(bytes, from),
  timestamp: (bytes, from, to) => to > from && timestampEnd(bytes, from, to) === to,
  timestamp_tz: plainTimestampTz,
};
