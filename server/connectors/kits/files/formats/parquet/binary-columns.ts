import type { TargetColumn } from '../../../../contract/connector.ts';
import { moveBytes } from './move-bytes.ts';
import { decimalColumn } from './binary-decimal.ts';
import { PARQUET_TYPES } from './write/types.ts';
import { type BinaryColumn, Misfit } from './binary-column.ts';

const MINUTE = 60;
const TWO_32 = 2 ** 32;
/** PostgreSQL counts days from 2000, Parquet from 1970. */
const EPOCH_DAYS = 10_957;
const EPOCH_MICROSECONDS = EPOCH_DAYS * 24 * 60 * MINUTE * 1_000_000;
const [EPOCH_HIGH, EPOCH_LOW] = [Math.floor(EPOCH_MICROSECONDS / TWO_32), EPOCH_MICROSECONDS % TWO_32];
const [MOST, LEAST] = [0x7fffffff, -0x80000000];
/** Of the length before a text, on both sides. */
const LENGTH_BYTES = 4;

/** Null for a type that cannot be read in binary form. */
export function binaryColumn({ source_type, dialect, masked }: TargetColumn): BinaryColumn | null {
  // Masks leave texts, whatever the type at the source.
  if (masked) return COLUMNS.text!;
  if (dialect !== 'postgres' || source_type === null) return null;
  const decimal = /^numeric\((\d+),(\d+)\)$/.exec(source_type);
  if (decimal) return decimalColumn(Number(decimal[1]), Number(decimal[2]));
  const name = source_type.replace(/\(\d+\)/, '');
  return Object.hasOwn(COLUMNS, name) ? COLUMNS[name]! : null;
}

type TypeName = keyof typeof PARQUET_TYPES;

const swapped = (type: TypeName): BinaryColumn => ({
  type: PARQUET_TYPES[type],
  add(into, { view }, starts) {
    let word = into.add(8 * starts.length) >> 2;
    for (let index = 0; index < starts.length; index += 1) {
      const at = starts[index]!;
      into.words[word] = view.getInt32(at + 4);
      into.words[word + 1] = view.getInt32(at);
      word += 2;
    }
  },
});

/** Integers of every size become BIGINT. */
const integer = (valueAt: (view: DataView, at: number) => number): BinaryColumn => ({
  type: PARQUET_TYPES.BIGINT,
  add(into, { view }, starts) {
    let word = into.add(8 * starts.length) >> 2;
    for (let index = 0; index < starts.length; index += 1) {
      const value = valueAt(view, starts[index]!);
      into.words[word] = value;
      into.words[word + 1] = value < 0 ? -1 : 0;
      word += 2;
    }
  },
});

/** The infinities are the largest and the smallest value but one, as in files of DuckDB. */
const timestamp = (type: TypeName): BinaryColumn => ({
  type: PARQUET_TYPES[type],
  add(into, { view }, starts) {
    let word = into.add(8 * starts.length) >> 2;
    for (let index = 0; index < starts.length; index += 1) {
      const at = starts[index]!;
      let low = view.getUint32(at + 4);
      let high = view.getInt32(at);
      if (high === LEAST && low === 0) low = 1;
      else if (high !== MOST || low !== TWO_32 - 1) {
        low += EPOCH_LOW;
        high += EPOCH_HIGH + (low >= TWO_32 ? 1 : 0);
        if (high > MOST) throw new Misfit(at, 'the time is out of range');
      }
      into.words[word] = low;
      into.words[word + 1] = high;
      word += 2;
    }
  },
});

const date: BinaryColumn = {
  type: PARQUET_TYPES.DATE,
  add(into, { view }, starts) {
    let word = into.add(4 * starts.length) >> 2;
    for (let index = 0; index < starts.length; index += 1) {
      const days = view.getInt32(starts[index]!);
      into.words[word] = days === MOST ? MOST : days === LEAST ? LEAST + 1 : days + EPOCH_DAYS;
      word += 1;
    }
  },
};

const uuid: BinaryColumn = {
  type: PARQUET_TYPES.UUID,
  add(into, { view }, starts) {
    let word = into.add(16 * starts.length) >> 2;
    for (let index = 0; index < starts.length; index += 1) {
      const at = starts[index]!;
      for (let part = 0; part < 16; part += 4) into.words[word++] = view.getInt32(at + part, true);
    }
  },
};

const boolean: BinaryColumn = {
  type: PARQUET_TYPES.BOOLEAN,
  add(into, { bytes }, starts) {
    for (let index = 0; index < starts.length; index += 1) into.addBit(bytes[starts[index]!]!);
  },
};

const real: BinaryColumn = {
  type: PARQUET_TYPES.FLOAT,
  add(into, { view }, starts) {
    let word = into.add(4 * starts.length) >> 2;
    for (let index = 0; index < starts.length; index += 1) into.words[word++] = view.getInt32(starts[index]!);
  },
};

/** @param skip number of bytes before the text */
const text = (type: TypeName, skip = 0): BinaryColumn => ({
  type: PARQUET_TYPES[type],
  add(into, page, starts) {
    const lengthAt = (start: number) => page.view.getInt32(start - LENGTH_BYTES) - skip;
    let size = LENGTH_BYTES * starts.length;
    for (let index = 0; index < starts.length; index += 1) size += lengthAt(starts[index]!);
    let to = into.add(size);
    for (let index = 0; index < starts.length; index += 1) {
      const start = starts[index]!;
      const length = lengthAt(start);
      into.view.setUint32(to, length, true);
      moveBytes({ from: page, at: start + skip, into, to: to + LENGTH_BYTES, length });
      to += LENGTH_BYTES + length;
    }
  },
});

/** By PostgreSQL's name of the type, without the precision. */
const COLUMNS: Record<string, BinaryColumn> = {
  smallint: integer((view, at) => view.getInt16(at)),
  integer: integer((view, at) => view.getInt32(at)),
  oid: integer((view, at) => view.getUint32(at)),
  bigint: swapped('BIGINT'),
  real,
  'double precision': swapped('DOUBLE'),
  boolean,
  date,
  'timestamp without time zone': timestamp('TIMESTAMP'),
  'timestamp with time zone': timestamp('TIMESTAMPTZ'),
  'time without time zone': swapped('TIME'),
  uuid,
  text: text('VARCHAR'),
  'character varying': text('VARCHAR'),
  character: text('VARCHAR'),
  name: text('VARCHAR'),
  json: text('JSON'),
  // The first byte is the version.
  jsonb: text('JSON', 1),
  bytea: text('BLOB'),
};
