import { byte, flag, i32, struct, type Value } from './compact-protocol.ts';

/** Numbers of physical types, converted types and fields of LogicalType are those of Parquet's `parquet.thrift`. */
const PHYSICAL = { BOOLEAN: 0, INT32: 1, INT64: 2, FLOAT: 4, DOUBLE: 5, BYTE_ARRAY: 6, FIXED_LEN_BYTE_ARRAY: 7 };
const CONVERTED = { UTF8: 0, DECIMAL: 5, DATE: 6, TIME_MICROS: 8, TIMESTAMP_MICROS: 10, INT_64: 18, JSON: 19 };

/** How the smallest and largest value of a column are found. Null: not at all. */
export type ValueOrder = 'int32' | 'int64' | 'float' | 'double' | 'text' | null;

export interface ParquetType {
  physical: number;
  /** Bytes of a value of fixed length that is no number. */
  length?: number;
  converted?: number;
  scale?: number;
  precision?: number;
  logical?: Value;
  order: ValueOrder;
}

const EMPTY = struct({});
const MICROSECONDS = struct({ 2: EMPTY });
const moment = (utc: boolean) => struct({ 1: flag(utc), 2: MICROSECONDS });

/** The types that DuckDB's COPY writes for its own of these names, so that both ways of writing give the same columns. */
export const PARQUET_TYPES = {
  BIGINT: {
    physical: PHYSICAL.INT64,
    converted: CONVERTED.INT_64,
    logical: struct({ 10: struct({ 1: byte(64), 2: flag(true) }) }),
    order: 'int64',
  },
  BLOB: { physical: PHYSICAL.BYTE_ARRAY, order: null },
  BOOLEAN: { physical: PHYSICAL.BOOLEAN, order: null },
  DATE: { physical: PHYSICAL.INT32, converted: CONVERTED.DATE, logical: struct({ 6: EMPTY }), order: 'int32' },
  DOUBLE: { physical: PHYSICAL.DOUBLE, order: 'double' },
  FLOAT: { physical: PHYSICAL.FLOAT, order: 'float' },
  JSON: { physical: PHYSICAL.BYTE_ARRAY, converted: CONVERTED.JSON, logical: struct({ 12: EMPTY }), order: null },
  TIME: {
    physical: PHYSICAL.INT64,
    converted: CONVERTED.TIME_MICROS,
    logical: struct({ 7: moment(false) }),
    order: 'int64',
  },
  TIMESTAMP: {
    physical: PHYSICAL.INT64,
    converted: CONVERTED.TIMESTAMP_MICROS,
    logical: struct({ 8: moment(false) }),
    order: 'int64',
  },
  TIMESTAMPTZ: {
    physical: PHYSICAL.INT64,
    converted: CONVERTED.TIMESTAMP_MICROS,
    logical: struct({ 8: moment(true) }),
    order: 'int64',
  },
  UUID: { physical: PHYSICAL.FIXED_LEN_BYTE_ARRAY, length: 16, logical: struct({ 14: EMPTY }), order: null },
  VARCHAR: {
    physical: PHYSICAL.BYTE_ARRAY,
    converted: CONVERTED.UTF8,
    logical: struct({ 1: EMPTY }),
    order: 'text',
  },
} satisfies Record<string, ParquetType>;

/** The values are integers in units of the last digit: of 32, 64 or 128 bits, the latter with the highest byte first. */
export function decimalType(precision: number, scale: number): ParquetType {
  const base = {
    converted: CONVERTED.DECIMAL,
    scale,
    precision,
    logical: struct({ 5: struct({ 1: i32(scale), 2: i32(precision) }) }),
  };
  if (precision <= 9) return { ...base, physical: PHYSICAL.INT32, order: 'int32' };
  if (precision <= 18) return { ...base, physical: PHYSICAL.INT64, order: 'int64' };
  return { ...base, physical: PHYSICAL.FIXED_LEN_BYTE_ARRAY, length: 16, order: null };
}
