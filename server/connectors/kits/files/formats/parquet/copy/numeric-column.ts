import type { Vector } from '@duckdb/node-bindings';
import { TextColumn } from './text-column.ts';
import { viewOf } from './vector-column.ts';

/** The number of digits in base 10,000, the weight of the first one (0: before the decimal point), sign, and shown decimals. */
const HEADER_BYTES = 8;
/** More than a value needs beside its header, if its text has as many bytes as it. */
const MARGIN_BYTES = 8;
const [POSITIVE, NEGATIVE] = [0x0000, 0x4000];
const SPECIAL: Record<string, number> = {
  nan: 0xc000,
  inf: 0xd000,
  '-inf': 0xf000,
};
const [ZERO, NINE] = [0x30, 0x39];
const [MINUS, POINT, EXPONENT] = [0x2d, 0x2e, 0x65];

/**
 * Numbers by the text that DuckDB gives them, so that PostgreSQL has the digits and decimals that it would read in the
 * text.
 */
export class NumericColumn extends TextColumn {
  #memory = new Uint8Array();
  #into = viewOf(this.#memory);

  protected override readValues(vector: Vector, rows: number): void {
    this.readTexts(vector, rows);
    const { lengths } = this;
    this.#reserve(rows * (HEADER_BYTES + MARGIN_BYTES) + this.values.length);
    let [at, to] = [0, 0];
    for (let row = 0; row < rows; row += 1) {
      if (this.isNull(row)) continue;
      const end = at + lengths[row]!;
      lengths[row] = this.#convert(at, end, to);
      at = end;
      to += lengths[row]!;
    }
    this.values = this.#memory.subarray(0, to);
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#memory.length) return;
    this.#memory = new Uint8Array(bytes);
    this.#into = viewOf(this.#memory);
  }

  /** @returns the bytes of the numeric */
  #convert(begin: number, end: number, to: number): number {
    const bytes = this.values;
    const into = this.#into;
    const isNegative = bytes[begin] === MINUS;
    const first = isNegative ? begin + 1 : begin;
    let point = end;
    let last = end;
    let exponent = 0;
    for (let at = first; at < end; at += 1) {
      const character = bytes[at]!;
      if (character >= ZERO && character <= NINE) continue;
      if (character === POINT && point === end) point = at;
      else if (character === EXPONENT && at > first) {
        exponent = this.#exponent(at + 1, end);
        last = at;
        if (point === end) point = last;
        break;
      } else return this.#special(begin, end, to);
    }
    if (first === last) return this.#special(begin, end, to);
    // The power of ten of the next decimal digit.
    let power = point - first + exponent - 1;
    into.setInt16(to + 2, power >> 2);
    into.setUint16(to + 4, isNegative ? NEGATIVE : POSITIVE);
    into.setInt16(to + 6, Math.max(0, Math.max(0, last - point - 1) - exponent));
    let next = to + HEADER_BYTES;
    let digit = 0;
    for (let at = first; at < last; at += 1) {
      if (at === point) continue;
      digit = 10 * digit + bytes[at]! - ZERO;
      if ((power & 3) === 0) {
        into.setInt16(next, digit);
        next += 2;
        digit = 0;
      }
      power -= 1;
    }
    if ((power & 3) !== 3) {
      for (; (power & 3) !== 3; power -= 1) digit *= 10;
      into.setInt16(next, digit);
      next += 2;
    }
    into.setInt16(to, (next - to - HEADER_BYTES) >> 1);
    return next - to;
  }

  #exponent(begin: number, end: number): number {
    const exponent = Number(this.#textAt(begin, end));
    if (!Number.isInteger(exponent)) throw this.#refused(begin, end);
    return exponent;
  }

  #special(begin: number, end: number, to: number): number {
    const sign = SPECIAL[this.#textAt(begin, end)];
    if (sign === undefined) throw this.#refused(begin, end);
    this.#into.setInt32(to, 0);
    this.#into.setUint16(to + 4, sign);
    this.#into.setInt16(to + 6, 0);
    return HEADER_BYTES;
  }

  #refused(begin: number, end: number): RangeError {
    return new RangeError(`"${this.#textAt(begin, end).slice(0, 100)}" is not a number`);
  }

  #textAt(begin: number, end: number): string {
    return Buffer.from(this.values.subarray(begin, end)).toString('utf8');
  }
}
