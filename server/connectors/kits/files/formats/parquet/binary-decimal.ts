import { duckdb } from '../../../duckdb/package.ts';
import type { BinaryColumn, RowBuffer } from './binary-columns.ts';
import { CHUNK_ROWS } from './chunk-tables.ts';

/** The limit of DuckDB's DECIMAL. */
const MAX_DIGITS = 38;
const TWO_32 = 2 ** 32;
const NEGATIVE = 0x4000;
const HEADER_BYTES = 8;

/** PostgreSQL stores a numeric as digits in base 10,000; `weight` of them follow the first before the decimal point. */
interface Digits {
  page: RowBuffer;
  at: number;
  count: number;
  /** Number of digits down to the last one of the column's scale. */
  wanted: number;
}

/** Reads NUMERIC(precision, scale) as DECIMAL, an integer of 16 to 128 bits. Null if DuckDB has no such DECIMAL. */
export function decimalColumn(precision: number, scale: number): BinaryColumn | null {
  if (precision > MAX_DIGITS || scale > precision) return null;
  const width = precision <= 4 ? 2 : precision <= 9 ? 4 : precision <= 18 ? 8 : 16;
  const values = new ArrayBuffer(CHUNK_ROWS * width);
  const store = storeOf(values, width);
  const after = Math.ceil(scale / 4);
  const cut = 4 * after - scale;
  const limit = 10 ** precision;
  return {
    type: duckdb().DECIMAL(precision, scale),
    width,
    values,
    read(page, row, at) {
      const { view } = page;
      const sign = view.getUint16(at + 4);
      if (sign !== 0 && sign !== NEGATIVE) throw new RangeError('NaN and infinity cannot be stored as DECIMAL');
      const digits = { page, at, count: view.getUint16(at), wanted: view.getInt16(at + 2) + 1 + after };
      const steps = asNumber(digits);
      // Up to this limit every step of the sum is exact.
      if (steps <= Number.MAX_SAFE_INTEGER) {
        const whole = steps / 10 ** cut;
        if (whole >= limit) throw tooLong();
        store.number(row, sign ? -whole : whole);
      } else {
        const whole = asBigInt(digits) / 10n ** BigInt(cut);
        if (whole >= 10n ** BigInt(precision)) throw tooLong();
        store.bigint(row, sign ? -whole : whole);
      }
    },
  };
}

const tooLong = () => new RangeError('the number has too many digits');

const digitAt = ({ page, at, count }: Digits, index: number) =>
  index < count ? page.view.getUint16(at + HEADER_BYTES + 2 * index) : 0;

function asNumber(digits: Digits): number {
  let whole = 0;
  for (let index = 0; index < digits.wanted; index += 1) whole = whole * 10_000 + digitAt(digits, index);
  return whole;
}

function asBigInt(digits: Digits): bigint {
  let whole = 0n;
  for (let index = 0; index < digits.wanted; index += 1) whole = whole * 10_000n + BigInt(digitAt(digits, index));
  return whole;
}

interface Store {
  number(row: number, value: number): void;
  bigint(row: number, value: bigint): void;
}

function storeOf(values: ArrayBuffer, width: number): Store {
  if (width < 8) {
    const into = width === 2 ? new Int16Array(values) : new Int32Array(values);
    const number = (row: number, value: number) => {
      into[row] = value;
    };
    return { number, bigint: (row, value) => number(row, Number(value)) };
  }
  const [words, longs] = [new Int32Array(values), new BigInt64Array(values)];
  const [wordsEach, longsEach] = [width / 4, width / 8];
  return {
    number(row, value) {
      const high = Math.floor(value / TWO_32);
      words[wordsEach * row] = value - high * TWO_32;
      words[wordsEach * row + 1] = high;
      for (let word = 2; word < wordsEach; word += 1) words[wordsEach * row + word] = value < 0 ? -1 : 0;
    },
    bigint(row, value) {
      longs[longsEach * row] = BigInt.asIntN(64, value);
      if (longsEach > 1) longs[longsEach * row + 1] = value >> 64n;
    },
  };
}
