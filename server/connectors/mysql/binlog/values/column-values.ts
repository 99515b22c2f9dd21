import { inflateRawSync, inflateSync } from 'node:zlib';
import type { Cell, Field } from '../../../contract/connector.ts';
import { ConfigurationError, DataError } from '../../../contract/errors.ts';
import type { ByteReader } from './byte-reader.ts';
import { type Charsets, utf8 } from './charsets.ts';
import { inet4Text, inet6Text, uuidText } from './network-text.ts';
import { jsonText } from './json-text.ts';
import { decimalBytes, decimalReader, doubleText, floatText } from './number-text.ts';
import { type LoggedColumn, TYPE } from '../table-map.ts';
import { dateText, fractionBytes, isZeroDay, Moment, momentReader, timeText } from './time-text.ts';
import { bareName } from '../../connection/types.ts';

/** Reads the value of a column as the cell that a SELECT gives. */
export type ReadValue = (reader: ByteReader) => Cell;

export interface ValueOptions {
  charsets: Charsets;
  keep_zero_dates: boolean;
  /** Called for each date that becomes NULL. */
  onZeroDate(): void;
}

/** @param field the column as the catalog has it, whose type names what the log does not */
export function valueReader(column: LoggedColumn, field: Field, options: ValueOptions): ReadValue {
  const { type, unsigned, scale, size } = column;
  switch (type) {
    case TYPE.tiny:
    case TYPE.short:
    case TYPE.int24:
    case TYPE.long:
    case TYPE.longlong:
      return zeroFilled(field, integerReader(type, unsigned));
    case TYPE.float:
      return fixedOr(field, (reader) => floatText(numberOf(reader, 4)), 4);
    case TYPE.double:
      return fixedOr(field, (reader) => doubleText(numberOf(reader, 8)), 8);
    case TYPE.decimal:
      return zeroFilled(field, decimalReader(size, scale));
    case TYPE.year:
      return (reader) => yearText(reader.uint(1));
    case TYPE.date:
      return dateReader(dateText, options);
    case TYPE.datetime:
      return dateReader(momentReader(Moment.datetime(scale)), options);
    case TYPE.timestamp:
      return dateReader(momentReader(Moment.timestamp(scale)), options, '+00');
    case TYPE.time:
      return (reader) => timeText(reader, scale);
    case TYPE.json:
      return (reader) => jsonText(reader.take(reader.uint(size)));
    case TYPE.bit:
      return bitReader(size, field.type === 'boolean');
    case TYPE.enum:
    case TYPE.set:
      return labelReader(column, options.charsets);
    default:
      return bytesReader(column, field, options);
  }
}

/** Moves past the value of a column. @throws ConfigurationError when its size is unknown */
export function valueSkipper(column: LoggedColumn): (reader: ByteReader) => void {
  const width = fixedSize(column);
  if (width !== null) return (reader) => void (reader.at += width);
  const prefix = prefixOf(column);
  return (reader) => {
    const length = reader.uint(prefix);
    reader.at += length;
  };
}

export const INTEGER_BYTES: Record<number, number> = {
  [TYPE.tiny]: 1,
  [TYPE.short]: 2,
  [TYPE.int24]: 3,
  [TYPE.long]: 4,
  [TYPE.longlong]: 8,
};

function fixedSize({ type, size, scale }: LoggedColumn): number | null {
  switch (type) {
    case TYPE.float:
      return 4;
    case TYPE.double:
      return 8;
    case TYPE.decimal:
      return decimalBytes(size, scale);
    case TYPE.year:
      return 1;
    case TYPE.date:
      return 3;
    case TYPE.datetime:
      return 5 + fractionBytes(scale);
    case TYPE.timestamp:
      return 4 + fractionBytes(scale);
    case TYPE.time:
      return 3 + fractionBytes(scale);
    case TYPE.bit:
      return (size + 7) >> 3;
    case TYPE.enum:
    case TYPE.set:
      return size;
    default:
      return INTEGER_BYTES[type] ?? null;
  }
}

/** How many bytes the length of the value has. */
export function prefixOf({ type, size, name }: LoggedColumn): number {
  switch (type) {
    case TYPE.varchar:
    case TYPE.varchar_compressed:
    case TYPE.string:
      return size > 255 ? 2 : 1;
    case TYPE.blob:
    case TYPE.blob_compressed:
    case TYPE.geometry:
    case TYPE.json:
      return size;
    default:
      throw new ConfigurationError(
        'column_not_in_log',
        `The log has ${name} in a form that is not supported (type ${type}). Rebuild the table with ALTER TABLE … FORCE, and reset the cursor of its stream`,
      );
  }
}

/** Below it, the upper half of an integer leaves it exact as a number. */
const EXACT_HIGH = 2 ** 21;

function integerReader(type: number, unsigned: boolean): ReadValue {
  const width = INTEGER_BYTES[type]!;
  if (width === 8) {
    return (reader) => {
      const { bytes, at } = reader;
      const high = unsigned ? bytes.readUInt32LE(at + 4) : bytes.readInt32LE(at + 4);
      // A bigint costs an allocation, and almost no value needs one.
      if (high < EXACT_HIGH && high >= -EXACT_HIGH) {
        reader.at = at + 8;
        return String(high * 2 ** 32 + bytes.readUInt32LE(at));
      }
      const value = reader.uint64();
      return String(unsigned ? value : BigInt.asIntN(64, value));
    };
  }
  const limit = 256 ** width;
  return (reader) => {
    const value = reader.uint(width);
    return String(unsigned || value < limit / 2 ? value : value - limit);
  };
}

function numberOf(reader: ByteReader, width: 4 | 8): number {
  const { bytes, at } = reader;
  reader.at += width;
  return width === 4 ? bytes.readFloatLE(at) : bytes.readDoubleLE(at);
}

/** FLOAT(m,d) and DOUBLE(m,d) show all their places. */
function fixedOr({ source_type }: Field, plain: ReadValue, width: 4 | 8): ReadValue {
  const [, places] = /^(?:float|double)\(\d+,(\d+)\)/.exec(source_type ?? '') ?? [];
  if (places === undefined) return plain;
  return (reader) => {
    const value = numberOf(reader, width);
    const text = value.toFixed(Number(places));
    return width === 8 || Math.fround(Number(text)) === value ? text : doubleText(value);
  };
}

/** Columns with ZEROFILL show all their digits. */
function zeroFilled({ source_type }: Field, plain: ReadValue): ReadValue {
  const [, digits, scale = '0'] = /^\w+\((\d+)(?:,(\d+))?\).* zerofill/.exec(source_type ?? '') ?? [];
  if (digits === undefined) return plain;
  const width = Number(digits) + (scale === '0' ? 0 : 1);
  return (reader) => plain(reader)!.padStart(width, '0');
}

const yearText = (stored: number) => (stored === 0 ? '0000' : String(1900 + stored));

function dateReader(
  read: (reader: ByteReader) => string,
  { keep_zero_dates, onZeroDate }: ValueOptions,
  zone = '',
): ReadValue {
  // Of the last value, which often is the next one's too.
  let [known, isZero, cell] = ['', false, ''];
  return (reader) => {
    const text = read(reader);
    if (text !== known) [known, isZero, cell] = [text, !keep_zero_dates && isZeroDay(text), text + zone];
    if (!isZero) return cell;
    onZeroDate();
    return null;
  };
}

function bitReader(bits: number, isBoolean: boolean): ReadValue {
  const width = (bits + 7) >> 3;
  return (reader) => {
    let digits = '';
    for (const byte of reader.take(width)) digits += byte.toString(2).padStart(8, '0');
    if (isBoolean && bits === 1) return digits.endsWith('1') ? 'true' : 'false';
    return digits.slice(-bits);
  };
}

function labelReader({ type, size, labels, collation, name }: LoggedColumn, charsets: Charsets): ReadValue {
  const decode = charsets.decoderOf(collation, name) ?? ((bytes: Buffer) => bytes.toString('latin1'));
  const texts = labels.map(decode);
  // An index of 0 is the empty text that stands for an invalid value.
  if (type === TYPE.enum) return (reader) => texts[reader.uint(size) - 1] ?? '';
  return (reader) => {
    let bits = 0n;
    for (const [at, byte] of reader.take(size).entries()) bits |= BigInt(byte) << BigInt(at * 8);
    return texts.filter((_, at) => (bits >> BigInt(at)) & 1n).join(',');
  };
}

/** Types of MariaDB that the log has as bytes of a fixed size. */
const BY_BYTES: Record<string, { size: number; text(bytes: Buffer): string }> = {
  uuid: { size: 16, text: uuidText },
  inet6: { size: 16, text: inet6Text },
  inet4: { size: 4, text: inet4Text },
};

const isCompressed = ({ type }: LoggedColumn) => type === TYPE.varchar_compressed || type === TYPE.blob_compressed;

/** The bytes of a value are those of its text. */
export const isPlainUtf8 = (column: LoggedColumn, charsets: Charsets): boolean =>
  charsets.decoderOf(column.collation, column.name) === utf8 && !isCompressed(column);

function bytesReader(column: LoggedColumn, field: Field, { charsets }: ValueOptions): ReadValue {
  const { type, size, collation, name } = column;
  const prefix = prefixOf(column);
  const valueOf = (reader: ByteReader) => {
    const bytes = reader.take(reader.uint(prefix));
    return isCompressed(column) ? uncompressed(bytes) : bytes;
  };
  const decode = charsets.decoderOf(collation, name);
  if (isPlainUtf8(column, charsets)) return (reader) => reader.text(reader.uint(prefix));
  if (decode) return (reader) => decode(valueOf(reader));
  const known = BY_BYTES[bareName(field.source_type ?? '')];
  if (known && type === TYPE.string) return (reader) => known.text(padded(valueOf(reader), known.size));
  // The log leaves out the zeros at the end of a BINARY(n).
  if (type === TYPE.string) return (reader) => hexText(padded(valueOf(reader), size));
  return (reader) => hexText(valueOf(reader));
}

const hexText = (bytes: Buffer) => `\\x${bytes.toString('hex')}`;

function padded(bytes: Buffer, size: number): Buffer {
  if (bytes.length >= size) return bytes;
  const full = Buffer.alloc(size);
  bytes.copy(full);
  return full;
}

/** Columns with the attribute COMPRESSED: a byte with the method and the size of the length, the length, the bytes. */
function uncompressed(bytes: Buffer): Buffer {
  const [head] = bytes;
  if (head === undefined) return bytes;
  const method = head >> 4;
  if (method === 0) return bytes.subarray(1);
  if (method !== 8) throw new DataError('binlog_corrupt', `A compressed value has the unknown method ${method}`);
  const packed = bytes.subarray(1 + (head & 0x07));
  return (head & 0x08) === 0 ? inflateSync(packed) : inflateRawSync(packed);
}
