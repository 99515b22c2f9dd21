import type { ByteReader } from './byte-reader.ts';

const two = (value: number) => (value < 10 ? `0${value}` : String(value));
const four = (value: number) => String(value).padStart(4, '0');

/** Fractions are stored in pairs of digits. */
export const fractionBytes = (scale: number): number => (scale + 1) >> 1;

function bigEndian(reader: ByteReader, width: number): number {
  const { bytes, at } = reader;
  reader.at = at + width;
  let value = 0;
  for (let index = at; index < at + width; index++) value = value * 256 + bytes[index]!;
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
 * A value that has a fraction of a second. The rows of a statement often have the same value, and those of a transaction
 * the same second: neither is turned into text again.
 */
export class Moment {
  /** Text of the whole seconds. */
  head = '';
  /** The fraction, in pairs of digits. */
  part = 0;
  #packed = -1;
  readonly #width: number;

  private constructor(
    /** Of the whole seconds. */
    private readonly bytes: number,
    readonly scale: number,
    private readonly of: (packed: number) => string,
  ) {
    this.#width = fractionBytes(scale);
  }

  static datetime = (scale: number) => new Moment(5, scale, datetimeText);

  /** In UTC. */
  static timestamp = (scale: number) =>
    new Moment(4, scale, (seconds) => (seconds === 0 ? '0000-00-00 00:00:00' : secondsText(seconds)));

  /** The next value. @returns whether it differs from the one before it */
  read(reader: ByteReader): boolean {
    const packed = bigEndian(reader, this.bytes);
    const part = this.#width === 0 ? 0 : bigEndian(reader, this.#width);
    if (packed === this.#packed && part === this.part) return false;
    if (packed !== this.#packed) [this.#packed, this.head] = [packed, this.of(packed)];
    this.part = part;
    return true;
  }
}

/** Reads values of the kind as text. */
export function momentReader(moment: Moment): (reader: ByteReader) => string {
  let text = '';
  return (reader) => {
    if (moment.read(reader)) text = moment.head + fractionText(moment.part, moment.scale);
    return text;
  };
}

function datetimeText(stored: number): string {
  const packed = stored - 0x8000000000;
  const day = Math.floor(packed / 0x20000);
  const months = day >> 5;
  const date = `${four(Math.floor(months / 13))}-${two(months % 13)}-${two(day & 31)}`;
  return `${date} ${clock(packed & 0x1ffff)}`;
}

/** Of the last call, which often was for the same second. */
let last = { seconds: -1, text: '' };

export function secondsText(seconds: number): string {
  if (seconds !== last.seconds) {
    const text = new Date(seconds * 1000).toISOString();
    last = { seconds, text: `${text.slice(0, 10)} ${text.slice(11, 19)}` };
  }
  return last.text;
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
