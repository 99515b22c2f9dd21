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

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 48 && byte <= 57;

function digitsEnd(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && isDigit(bytes[at])) at++;
  return at;
}

/** Up to 18 digits without a leading zero. */
const plainInteger = (bytes: Uint8Array, from: number, to: number) =>
  to - from <= 18 && digitsEnd(bytes, from, to) === to && to > from && (bytes[from] !== 48 || to - from === 1);

/** Digits, a point, digits. */
function plainNumber(bytes: Uint8Array, from: number, to: number): boolean {
  const point = digitsEnd(bytes, from, to);
  if (!plainInteger(bytes, from, point)) return false;
  return (
    point === to ||
    (bytes[point] === 46 && point + 1 < to && to - point <= 18 && digitsEnd(bytes, point + 1, to) === to)
  );
}

/** The number that two digits form; NaN if they are not digits. */
const twoAt = (bytes: Uint8Array, at: number) =>
  isDigit(bytes[at]) && isDigit(bytes[at + 1])
    ? (bytes[at] as number) * 10 + (bytes[at + 1] as number) - 528
    : Number.NaN;

/** Accepts only days that every month has; the normalizer decides about the others. */
function startsWithDate(bytes: Uint8Array, from: number): boolean {
  const month = twoAt(bytes, from + 5);
  const day = twoAt(bytes, from + 8);
  if (bytes[from + 4] !== 45 || bytes[from + 7] !== 45 || !(month >= 1 && month <= 12 && day >= 1 && day <= 28))
    return false;
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
