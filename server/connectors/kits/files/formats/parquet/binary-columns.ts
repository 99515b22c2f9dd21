import type { DuckDBType } from '@duckdb/node-api';
import { duckdb } from '../../../duckdb/package.ts';
import type { TargetColumn } from '../../../../contract/connector.ts';
import { decimalColumn } from './binary-decimal.ts';
import { CHUNK_ROWS } from './chunk-tables.ts';

/** A buffer of rows as they arrived. Replaced by a larger one if a row does not fit. */
export interface RowBuffer {
  bytes: Uint8Array<ArrayBuffer>;
  view: DataView;
}

/** Converts the values of one column from PostgreSQL's binary form to the form of a vector in a DuckDB chunk. */
export interface BinaryColumn {
  type: DuckDBType;
  /** Bytes of one value in the vector. */
  width: number;
  values: ArrayBuffer;
  /** @throws RangeError for a value outside the range of the type */
  read(page: RowBuffer, row: number, at: number, length: number): void;
  /** Positions of texts and bytes in the buffer, by row. Absent: `values` holds the values themselves. */
  places?: { at: Uint32Array; length: Uint32Array };
}

const MINUTE = 60;
const TWO_32 = 2 ** 32;
/** PostgreSQL counts days from 2000, DuckDB from 1970. */
const EPOCH_DAYS = 10_957;
const EPOCH_MICROSECONDS = EPOCH_DAYS * 24 * 60 * MINUTE * 1_000_000;
const [EPOCH_HIGH, EPOCH_LOW] = [Math.floor(EPOCH_MICROSECONDS / TWO_32), EPOCH_MICROSECONDS % TWO_32];
const [MOST, LEAST] = [0x7fffffff, -0x80000000];

/** Null for a type that cannot be read in binary form. */
export function binaryColumn({ source_type, dialect }: TargetColumn): BinaryColumn | null {
  if (dialect !== 'postgres' || source_type === null) return null;
  const decimal = /^numeric\((\d+),(\d+)\)$/.exec(source_type);
  if (decimal) return decimalColumn(Number(decimal[1]), Number(decimal[2]));
  const name = source_type.replace(/\(\d+\)/, '');
  return Object.hasOwn(COLUMNS, name) ? COLUMNS[name]!() : null;
}

type TypeName =
  | 'BIGINT'
  | 'BLOB'
  | 'DATE'
  | 'DOUBLE'
  | 'FLOAT'
  | 'TIME'
  | 'TIMESTAMP'
  | 'TIMESTAMPTZ'
  | 'UUID'
  | 'VARCHAR';

/** A column whose values have `words` words of 32 bits, the lowest first. */
function column(type: TypeName, words: number, reader: (into: Int32Array) => BinaryColumn['read']): BinaryColumn {
  const into = new Int32Array(CHUNK_ROWS * words);
  return { type: duckdb()[type], width: 4 * words, values: into.buffer, read: reader(into) };
}

const swapped = (type: TypeName) => () =>
  column(type, 2, (into) => ({ view }, row, at) => {
    into[2 * row] = view.getInt32(at + 4);
    into[2 * row + 1] = view.getInt32(at);
  });

/** Integers of every size become BIGINT. */
const integer = (value: (view: DataView, at: number) => number) => () =>
  column('BIGINT', 2, (into) => ({ view }, row, at) => {
    const whole = value(view, at);
    into[2 * row] = whole;
    into[2 * row + 1] = whole < 0 ? -1 : 0;
  });

const timestamp = (type: TypeName) => () =>
  column(type, 2, (into) => ({ view }, row, at) => {
    let [low, high] = [view.getUint32(at + 4), view.getInt32(at)];
    if (high === LEAST && low === 0) low = 1;
    else if (high !== MOST || low !== TWO_32 - 1) {
      low += EPOCH_LOW;
      high += EPOCH_HIGH + (low >= TWO_32 ? 1 : 0);
      if (high > MOST) throw new RangeError('the time is out of range');
    }
    into[2 * row] = low;
    into[2 * row + 1] = high;
  });

const date = () =>
  column('DATE', 1, (into) => ({ view }, row, at) => {
    const days = view.getInt32(at);
    into[row] = days === MOST ? MOST : days === LEAST ? LEAST + 1 : days + EPOCH_DAYS;
  });

/** DuckDB stores a UUID as a 128-bit integer with the sign bit flipped. */
const uuid = () =>
  column('UUID', 4, (into) => ({ view }, row, at) => {
    for (let word = 0; word < 4; word += 1) into[4 * row + word] = view.getInt32(at + 12 - 4 * word);
    into[4 * row + 3]! ^= LEAST;
  });

function boolean(): BinaryColumn {
  const into = new Uint8Array(CHUNK_ROWS);
  const read: BinaryColumn['read'] = ({ bytes }, row, at) => {
    into[row] = bytes[at]!;
  };
  return { type: duckdb().BOOLEAN, width: 1, values: into.buffer, read };
}

const real = () =>
  column('FLOAT', 1, (into) => ({ view }, row, at) => {
    into[row] = view.getInt32(at);
  });

/** @param skip number of bytes before the text */
const text =
  (type: TypeName, skip = 0) =>
  () => {
    const places = { at: new Uint32Array(CHUNK_ROWS), length: new Uint32Array(CHUNK_ROWS) };
    const noted = column(type, 4, () => (_, row, at, length) => {
      places.at[row] = at + skip;
      places.length[row] = length - skip;
    });
    return { ...noted, places };
  };

/** By PostgreSQL's name of the type, without the precision. */
const COLUMNS: Record<string, () => BinaryColumn> = {
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
  json: text('VARCHAR'),
  // The first byte is the version.
  jsonb: text('VARCHAR', 1),
  bytea: text('BLOB'),
};
