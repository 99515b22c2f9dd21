import type { ByteReader } from './byte-reader.ts';

const two = (value: number) => (value < 10 ? `0${value}` : String(value));
const four = (value: number) => String(value).padStart(4, '0');

/** Fractions are stored in pairs of digits. */
export const fractionBytes = (scale: number): number => (scale + 1) >> 1;

function bigEndian(reader: ByteReader, width: number): number {
  const value = reader.bytes.readUIntBE(reader.at, width);
  reader.at += width;
  return value;
}

function fractionText(value: number, scale: number): string {
  if (scale === 0) return '';
  return `.${String(value)
    .padStart(fractionBytes(scale) * 2, '0')
    .slice(0, scale)}`;
}

const clock = (packed: number) => `${two(packed >> 12)}:${two((packed >> 6) & 63)}:${two(packed & 63)}`;

/** Null: a date without a year, month or day. */
export const isZeroDay = (text: string): boolean =>
  text.startsWith('0000') || text.startsWith('00', 5) || text.startsWith('00', 8);

export function dateText(reader: ByteReader): string {
  const packed = reader.uint(3);
  return `${four(packed >> 9)}-${two((packed >> 5) & 15)}-${two(packed & 31)}`;
}

/**
 * Reads a value that has a fraction of a second. The rows of a statement often have the same value, and those of a
 * transaction the same second: neither is turned into text again.
 * @param of the text of the whole seconds, which take so many bytes
 */
function momentReader(bytes: number, scale: number, of: (packed: number) => string): (reader: ByteReader) => string {
  const width = fractionBytes(scale);
  let [seconds, head, value, text] = [-1, '', 0, ''];
  return (reader) => {
    const packed = bigEndian(reader, bytes);
    const part = width === 0 ? 0 : bigEndian(reader, width);
    if (packed === seconds && part === value) return text;
    if (packed !== seconds) [seconds, head] = [packed, of(packed)];
    value = part;
    text = head + fractionText(part, scale);
    return text;
  };
}

export const datetimeReader = (scale: number) => momentReader(5, scale, datetimeText);

function datetimeText(stored: number): string {
  const packed = stored - 0x8000000000;
  const day = Math.floor(packed / 0x20000);
  const months = day >> 5;
  const date = `${four(Math.floor(months / 13))}-${two(months % 13)}-${two(day & 31)}`;
  return `${date} ${clock(packed & 0x1ffff)}`;
}

/** In UTC. */
export const timestampReader = (scale: number) =>
  momentReader(4, scale, (seconds) => (seconds === 0 ? '0000-00-00 00:00:00' : secondsText(seconds)));

export function secondsText(seconds: number): string {
  const text = new Date(seconds * 1000).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

/** A TIME, which may be negative: then the whole value, with its fraction, is. */
export function timeText(reader: ByteReader, scale: number): string {
  const width = fractionBytes(scale);
  const unit = 256 ** width;
  const stored = bigEndian(reader, 3 + width) - 0x800000 * unit;
  const value = Math.abs(stored);
  const packed = Math.floor(value / unit);
  const hours = (packed >> 12) & 0x3ff;
  const text = `${two(hours)}:${two((packed >> 6) & 63)}:${two(packed & 63)}${fractionText(value % unit, scale)}`;
  return stored < 0 ? `-${text}` : text;
}
