import type { Vector } from '@duckdb/node-bindings';
import { duckdbBindings } from '../../../../duckdb/package.ts';
import { LENGTH_BYTES, NULL_LENGTH, VectorColumn, viewOf } from './vector-column.ts';

interface FixedType {
  /** Bytes of a value, the same on both sides. */
  size: number;
  put(into: DataView, to: number, from: DataView, at: number): void;
}

/** A column whose values have one size. */
export class FixedSizeColumn extends VectorColumn {
  #values: DataView = new DataView(new ArrayBuffer(0));

  constructor(private readonly type: FixedType) {
    super();
  }

  protected readValues(vector: Vector, rows: number): void {
    this.#values = viewOf(duckdbBindings().vector_get_data(vector, rows * this.type.size));
  }

  measure(sizes: Int32Array, rows: number): void {
    const { size } = this.type;
    for (let row = 0; row < rows; row += 1) if (!this.isNull(row)) sizes[row]! += size;
  }

  write(into: DataView, offsets: Int32Array, rows: number): void {
    const { type } = this;
    const { size } = type;
    const values = this.#values;
    for (let row = 0; row < rows; row += 1) {
      const at = offsets[row]!;
      offsets[row] = at + LENGTH_BYTES;
      if (this.isNull(row)) {
        into.setInt32(at, NULL_LENGTH);
        continue;
      }
      into.setInt32(at, size);
      type.put(into, at + LENGTH_BYTES, values, size * row);
      offsets[row]! += size;
    }
  }
}

/** DuckDB counts days from 1970, PostgreSQL from 2000. */
const EPOCH_DAYS = 10_957;
const TWO_32 = 2 ** 32;
const EPOCH_MICROSECONDS = EPOCH_DAYS * 24 * 60 * 60 * 1_000_000;
const [EPOCH_HIGH, EPOCH_LOW] = [Math.floor(EPOCH_MICROSECONDS / TWO_32), (EPOCH_MICROSECONDS % TWO_32) | 0];
const [MOST, LEAST] = [0x7fffffff, -0x80000000];
/** PostgreSQL refuses it. What exceeds its range so far that it exceeds the bits, too, would be a moment of the far future. */
const BEFORE_RANGE = LEAST + 1;

const int64: FixedType = {
  size: 8,
  put(into, to, from, at) {
    into.setInt32(to, from.getInt32(at + 4, true));
    into.setInt32(to + 4, from.getInt32(at, true));
  },
};

const boolean: FixedType = {
  size: 1,
  put: (into, to, from, at) => into.setInt8(to, from.getInt8(at)),
};

/** The infinities are the largest and the smallest value but one, in PostgreSQL the smallest one. */
const date: FixedType = {
  size: 4,
  put(into, to, from, at) {
    const days = from.getInt32(at, true);
    if (days === MOST || days === LEAST + 1) into.setInt32(to, days === MOST ? MOST : LEAST);
    else into.setInt32(to, Math.max(days - EPOCH_DAYS, BEFORE_RANGE));
  },
};

const timestamp: FixedType = {
  size: 8,
  put(into, to, from, at) {
    // Halves as integers with a sign: as doubles they take three times as long.
    let low = from.getInt32(at, true);
    let high = from.getInt32(at + 4, true);
    if (high === LEAST && low === 1) low = 0;
    else if (high !== MOST || low !== -1) {
      const borrows = (low ^ LEAST) < (EPOCH_LOW ^ LEAST);
      high -= EPOCH_HIGH + (borrows ? 1 : 0);
      low = (low - EPOCH_LOW) | 0;
      if (high <= LEAST) [low, high] = [0, BEFORE_RANGE];
    }
    into.setInt32(to, high);
    into.setInt32(to + 4, low);
  },
};

/** By logical type. */
export const FIXED_TYPES = { integer: int64, boolean, date, timestamp, timestamp_tz: timestamp, time: int64 };
