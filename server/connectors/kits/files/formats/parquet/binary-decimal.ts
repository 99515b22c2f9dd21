import type { PlainValues } from './write/plain-values.ts';
import { decimalType } from './write/types.ts';
import { type BinaryColumn, Misfit } from './binary-column.ts';

/** The limit of DuckDB's DECIMAL, and of most readers. */
const MAX_DIGITS = 38;
const TWO_32 = 2 ** 32;
const NEGATIVE = 0x4000;
const HEADER_BYTES = 8;

/** Reads NUMERIC(precision, scale) as DECIMAL, an integer of 32 to 128 bits. Null if DuckDB has no such DECIMAL. */
export function decimalColumn(precision: number, scale: number): BinaryColumn | null {
  if (precision > MAX_DIGITS || scale > precision) return null;
  const after = Math.ceil(scale / 4);
  const cut = 10 ** (4 * after - scale);
  const limit = 10 ** precision;
  const store = precision <= 9 ? INT32 : precision <= 18 ? INT64 : INT128;
  return {
    type: decimalType(precision, scale),
    add(into, { view }, starts) {
      let to = into.add(store.size * starts.length);
      for (let index = 0; index < starts.length; index += 1) {
        const at = starts[index]!;
        const sign = view.getUint16(at + 4);
        if (sign !== 0 && sign !== NEGATIVE) throw new Misfit(at, 'NaN and infinity cannot be stored as DECIMAL');
        const wanted = view.getInt16(at + 2) + 1 + after;
        const steps = asNumber(view, at, wanted);
        // Up to this limit every step of the sum is exact.
        if (steps <= Number.MAX_SAFE_INTEGER) {
          const whole = steps / cut;
          if (whole >= limit) throw tooLong(at);
          store.number(into, to, sign ? -whole : whole);
        } else {
          const whole = asBigInt(view, at, wanted) / BigInt(cut);
          if (whole >= 10n ** BigInt(precision)) throw tooLong(at);
          store.bigint(into, to, sign ? -whole : whole);
        }
        to += store.size;
      }
    },
  };
}

const tooLong = (at: number) => new Misfit(at, 'the number has too many digits');

/*
 * PostgreSQL stores a numeric as digits in base 10,000; `weight` of them follow the first before the decimal point.
 * `wanted`: the number of digits down to the last one of the column's scale.
 */

function asNumber(view: DataView, at: number, wanted: number): number {
  const count = view.getUint16(at);
  let whole = 0;
  for (let index = 0; index < wanted; index += 1)
    whole = whole * 10_000 + (index < count ? digitAt(view, at, index) : 0);
  return whole;
}

function asBigInt(view: DataView, at: number, wanted: number): bigint {
  const count = view.getUint16(at);
  let whole = 0n;
  for (let index = 0; index < wanted; index += 1) {
    whole = whole * 10_000n + BigInt(index < count ? digitAt(view, at, index) : 0);
  }
  return whole;
}

const digitAt = (view: DataView, at: number, index: number) => view.getUint16(at + HEADER_BYTES + 2 * index);

/** Of `size` bytes, at an offset. */
interface Store {
  size: number;
  number(into: PlainValues, at: number, value: number): void;
  bigint(into: PlainValues, at: number, value: bigint): void;
}

const INT32: Store = {
  size: 4,
  number({ words }, at, value) {
    words[at >> 2] = value;
  },
  bigint: (into, at, value) => INT32.number(into, at, Number(value)),
};

const INT64: Store = {
  size: 8,
  number({ words }, at, value) {
    const high = Math.floor(value / TWO_32);
    words[at >> 2] = value - high * TWO_32;
    words[(at >> 2) + 1] = high;
  },
  bigint: ({ view }, at, value) => view.setBigInt64(at, value, true),
};

const INT128: Store = {
  size: 16,
  number: (into, at, value) => INT128.bigint(into, at, BigInt(value)),
  bigint({ view }, at, value) {
    view.setBigInt64(at, value >> 64n);
    view.setBigInt64(at + 8, BigInt.asIntN(64, value));
  },
};
