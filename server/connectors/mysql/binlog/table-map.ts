import { ConfigurationError } from '../../contract/errors.ts';
import { ByteReader } from './values/byte-reader.ts';

/** Types of columns in the log. */
export const TYPE = {
  tiny: 1,
  short: 2,
  long: 3,
  float: 4,
  double: 5,
  longlong: 8,
  int24: 9,
  date: 10,
  year: 13,
  varchar: 15,
  bit: 16,
  timestamp: 17,
  datetime: 18,
  time: 19,
  blob_compressed: 140,
  varchar_compressed: 141,
  json: 245,
  decimal: 246,
  enum: 247,
  set: 248,
  blob: 252,
  string: 254,
  geometry: 255,
} as const;

/** A column as the table was at the time of the change. */
export interface LoggedColumn {
  name: string;
  type: number;
  /** Digits, size in bytes, or how many bytes a length has. */
  size: number;
  /** Digits after the point. */
  scale: number;
  unsigned: boolean;
  /** Null: not a text. */
  collation: number | null;
  /** Of ENUM and SET, in the character set of the column. */
  labels: readonly Buffer[];
}

export interface LoggedTable {
  database: string;
  name: string;
  columns: LoggedColumn[];
  /** Everything of the event, to compare it. */
  body: Buffer;
}

/** The columns that have a bit among the signs. MariaDB counts years as numbers. */
export const SIGNED_IN_MYSQL: ReadonlySet<number> = new Set([
  TYPE.tiny,
  TYPE.short,
  TYPE.int24,
  TYPE.long,
  TYPE.longlong,
  TYPE.decimal,
  TYPE.float,
  TYPE.double,
]);
export const SIGNED_IN_MARIADB: ReadonlySet<number> = new Set([...SIGNED_IN_MYSQL, TYPE.year]);
const CHARACTER: ReadonlySet<number> = new Set([
  TYPE.string,
  TYPE.varchar,
  TYPE.blob,
  TYPE.varchar_compressed,
  TYPE.blob_compressed,
]);

/** Kinds of the metadata that follow the columns. */
const META = {
  signs: 1,
  default_charset: 2,
  charsets: 3,
  names: 4,
  set_labels: 5,
  enum_labels: 6,
  label_default_charset: 10,
  label_charsets: 11,
} as const;

/**
 * @param signed types of columns that have a sign
 * @throws ConfigurationError `binlog_row_metadata_not_full`
 */
export function parseTable(body: Buffer, signed: ReadonlySet<number>): LoggedTable {
  const reader = new ByteReader(body);
  reader.take(2);
  const database = reader.text(reader.uint(1));
  reader.take(1);
  const name = reader.text(reader.uint(1));
  reader.take(1);
  const types = reader.take(reader.length());
  const meta = new ByteReader(reader.take(reader.length()));
  const columns = Array.from(types, (type) => columnOf(type, meta));
  reader.take((columns.length + 7) >> 3);
  let named = false;
  while (!reader.isAtEnd) {
    const kind = reader.uint(1);
    const part = new ByteReader(reader.take(reader.length()));
    if (kind === META.signs)
      readSigns(
        part,
        columns.filter(({ type }) => signed.has(type)),
      );
    else readMeta(kind, part, columns);
    named ||= kind === META.names;
  }
  if (named) return { database, name, columns, body };
  throw new ConfigurationError(
    'binlog_row_metadata_not_full',
    `The log of ${database}.${name} has no column names. SET GLOBAL binlog_row_metadata = FULL on the server, and reset the cursor of its stream`,
  );
}

function columnOf(type: number, meta: ByteReader): LoggedColumn {
  const column = { name: '', type, size: 0, scale: 0, unsigned: false, collation: null, labels: [] };
  switch (type) {
    case TYPE.float:
    case TYPE.double:
    case TYPE.blob:
    case TYPE.blob_compressed:
    case TYPE.geometry:
    case TYPE.json:
      return { ...column, size: meta.uint(1) };
    case TYPE.timestamp:
    case TYPE.datetime:
    case TYPE.time:
      return { ...column, scale: meta.uint(1) };
    case TYPE.varchar:
    case TYPE.varchar_compressed:
      return { ...column, size: meta.uint(2) };
    case TYPE.decimal:
      return { ...column, size: meta.uint(1), scale: meta.uint(1) };
    case TYPE.bit: {
      const bits = meta.uint(1);
      return { ...column, size: meta.uint(1) * 8 + bits };
    }
    case TYPE.string: {
      const [first, second] = [meta.uint(1), meta.uint(1)];
      // Sizes above 255 take two bits of the type.
      const isLong = (first & 0x30) !== 0x30;
      return isLong
        ? { ...column, type: first | 0x30, size: second | (((first & 0x30) ^ 0x30) << 4) }
        : { ...column, type: first, size: second };
    }
    default:
      return column;
  }
}

function readSigns(part: ByteReader, columns: LoggedColumn[]): void {
  const bits = part.rest();
  for (const [at, column] of columns.entries()) column.unsigned = (bits[at >> 3]! & (0x80 >> (at & 7))) !== 0;
}

const isLabelled = ({ type }: LoggedColumn) => type === TYPE.enum || type === TYPE.set;

function readMeta(kind: number, part: ByteReader, columns: LoggedColumn[]): void {
  switch (kind) {
    case META.names:
      for (const column of columns) column.name = part.text(part.length());
      return;
    case META.default_charset:
    case META.label_default_charset:
      return readDefaultCharset(part, charactersOf(kind === META.default_charset, columns));
    case META.charsets:
    case META.label_charsets:
      for (const column of charactersOf(kind === META.charsets, columns)) column.collation = part.length();
      return;
    case META.enum_labels:
    case META.set_labels: {
      const type = kind === META.enum_labels ? TYPE.enum : TYPE.set;
      for (const column of columns.filter((one) => one.type === type)) {
        column.labels = Array.from({ length: part.length() }, () => part.take(part.length()));
      }
    }
  }
}

const charactersOf = (plain: boolean, columns: LoggedColumn[]) =>
  columns.filter((column) => (plain ? CHARACTER.has(column.type) : isLabelled(column)));

/** The collation of most columns, and those that differ. */
function readDefaultCharset(part: ByteReader, columns: LoggedColumn[]): void {
  const usual = part.length();
  for (const column of columns) column.collation = usual;
  while (!part.isAtEnd) {
    const column = columns[part.length()];
    const collation = part.length();
    if (column) column.collation = collation;
  }
}
