import type { PlainValues } from './write/plain-values.ts';
import { decimalType } from './write/types.ts';
import type { BinaryColumn, RowBuffer } from './binary-column.ts';

/** The limit of DuckDB's DECIMAL, and of most readers. */
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

/** Reads NUMERIC(precision, scale) as DECIMAL, an integer of 32 to 128 bits. Null if DuckDB has no such DECIMAL. */
export function decimalColumn(precision: number, scale: number): BinaryColumn | null {
  if (precision > MAX_DIGITS || scale > precision) return null;
  const after = Math.ceil(scale / 4);
  const cut = 4 * after - scale;
  const limit = 10 ** precision;
  const store = precision <= 9 ? INT32 : precision <= 18 ? INT64 : INT128;
  return {
    type: decimalType(precision, scale),
    add(into, page, at) {
      const { view } = page;
      const sign = view.getUint16(at + 4);
      if (sign !== 0 && sign !== NEGATIVE) throw new RangeError('NaN and infinity cannot be stored as DECIMAL');
      const digits = { page, at, count: view.getUint16(at), wanted: view.getInt16(at + 2) + 1 + after };
      const steps = asNumber(digits);
      // Up to this limit every step of the sum is exact.
      if (steps <= Number.MAX_SAFE_INTEGER) {
        const whole = steps / 10 ** cut;
        if (whole >= limit) throw tooLong();
        store.number(into, sign ? -whole : whole);
      } else {
        const whole = asBigInt(digits) / 10n ** BigInt(cut);
        if (whole >= 10n ** BigInt(precision)) throw tooLong();
        store.bigint(into, sign ? -whole : whole);
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
  number(into: PlainValues, value: number): void;
  bigint(into: PlainValues, value: bigint): void;
}

const INT32: Store = {
  number(into, value) {
    const word = into.add(4) >> 2;
    into.words[word] = value;
  },
  bigint: (into, value) => INT32.number(into, Number(value)),
};

const INT64: Store = {
  number(into, value) {
    const word = into.add(8) >> 2;
    const high = Math.floor(value / TWO_32);
    into.words[word] = value - high * TWO_32;
    into.words[word + 1] = high;
  },
  bigint(into, value) {
    const at = into.add(8);
    into.view.setBigInt64(at, value, true);
  },
};

const INT128: Store = {
  number: (into, value) => INT128.bigint(into, BigInt(value)),
  bigint(into, value) {
    const at = into.add(16);
    into.view.setBigInt64(at, value >> 64n);
    into.view.setBigInt64(at + 8, BigInt.asIntN(64, value));
  },
};
