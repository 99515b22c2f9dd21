import type { ByteReader } from './byte-reader.ts';

/** Bytes that hold so many decimal digits. */
const BYTES = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
const GROUP = 9;

export const decimalBytes = (digits: number, scale: number): number => {
  const whole = digits - scale;
  const bytesOf = (count: number) => Math.floor(count / GROUP) * 4 + BYTES[count % GROUP]!;
  return bytesOf(whole) + bytesOf(scale);
};

/** Numbers of so many digits are exact as a number. */
export const EXACT_DIGITS = 15;

/** A DECIMAL: groups of nine digits, the first bit inverted, all bits inverted below zero. */
export function decimalReader(digits: number, scale: number): (reader: ByteReader) => string {
  if (digits > EXACT_DIGITS) return (reader) => longDecimal(reader, digits, scale);
  const decimal = new ShortDecimal(digits, scale);
  return (reader) => {
    decimal.read(reader);
    const whole = decimal.isNegative ? `-${decimal.left}` : String(decimal.left);
    return scale === 0 ? whole : `${whole}.${String(decimal.right).padStart(scale, '0')}`;
  };
}

/** A DECIMAL whose digits before the point are one number, and those after it another one. */
export class ShortDecimal {
  isNegative = false;
  left = 0;
  right = 0;
  readonly #width: number;
  readonly #wholeBytes: number;
  readonly #hasWholeGroup: boolean;
  readonly #hasGroup: boolean;
  readonly #restBytes: number;
  readonly #restUnit: number;

  constructor(digits: number, scale: number) {
    const whole = digits - scale;
    this.#width = decimalBytes(digits, scale);
    this.#wholeBytes = BYTES[whole % GROUP]!;
    this.#hasWholeGroup = whole >= GROUP;
    this.#hasGroup = scale >= GROUP;
    this.#restBytes = BYTES[scale % GROUP]!;
    this.#restUnit = 10 ** (scale % GROUP);
  }

  /** The next value. */
  read(reader: ByteReader): void {
    const { bytes, at: start } = reader;
    const end = start + this.#width;
    if (end > reader.end) throw new RangeError('an event of the log is cut off');
    reader.at = end;
    this.isNegative = (bytes[start]! & 0x80) === 0;
    const mask = this.isNegative ? 0xff : 0;
    let at = start;
    let left = 0;
    for (const to = at + this.#wholeBytes; at < to; at++) left = left * 256 + byteAt(bytes, at, start, mask);
    if (this.#hasWholeGroup) {
      left = left * 1e9 + groupAt(bytes, at, start, mask);
      at += 4;
    }
    let right = 0;
    if (this.#hasGroup) {
      right = groupAt(bytes, at, start, mask);
      at += 4;
    }
    if (this.#restBytes > 0) {
      let last = 0;
      for (const to = at + this.#restBytes; at < to; at++) last = last * 256 + byteAt(bytes, at, start, mask);
      right = right * this.#restUnit + last;
    }
    [this.left, this.right] = [left, right];
  }
}

const byteAt = (bytes: Buffer, at: number, start: number, mask: number) =>
  bytes[at]! ^ mask ^ (at === start ? 0x80 : 0);

const groupAt = (bytes: Buffer, at: number, start: number, mask: number) =>
  ((byteAt(bytes, at, start, mask) << 24) |
    (byteAt(bytes, at + 1, start, mask) << 16) |
    (byteAt(bytes, at + 2, start, mask) << 8) |
    byteAt(bytes, at + 3, start, mask)) >>>
  0;

function longDecimal(reader: ByteReader, digits: number, scale: number): string {
  const bytes = reader.take(decimalBytes(digits, scale));
  const isNegative = (bytes[0]! & 0x80) === 0;
  const mask = isNegative ? 0xff : 0;
  let at = 0;
  const group = (count: number) => {
    let value = 0;
    for (const end = at + BYTES[count]!; at < end; at++) {
      value = value * 256 + ((bytes[at]! ^ mask) & (at === 0 ? 0x7f : 0xff));
    }
    return String(value).padStart(count, '0');
  };
  const whole = digits - scale;
  let text = whole % GROUP > 0 ? group(whole % GROUP) : '';
  for (let left = Math.floor(whole / GROUP); left > 0; left--) text += group(GROUP);
  let start = 0;
  while (start < text.length - 1 && text[start] === '0') start++;
  text = text.slice(start) || '0';
  if (scale > 0) {
    text += '.';
    for (let left = Math.floor(scale / GROUP); left > 0; left--) text += group(GROUP);
    if (scale % GROUP > 0) text += group(scale % GROUP);
  }
  return isNegative ? `-${text}` : text;
}

/** As the server writes a DOUBLE: the shortest digits that are the same number. */
export function doubleText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const [mantissa = '', exponent = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  /** Of the point, counted from before the first digit. */
  const point = Number(exponent) + 1;
  const sign = value < 0 ? '-' : '';
  if (point < -14 || (point > 15 && digits.length <= point)) {
    return `${sign}${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ''}e${exponent.replace('+', '')}`;
  }
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  if (point >= digits.length) return `${sign}${digits.padEnd(point, '0')}`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** Six digits where they are all of it, otherwise as the double that it is. */
export function floatText(value: number): string {
  const six = Number(value.toPrecision(6));
  return doubleText(Math.fround(six) === value ? six : value);
}
