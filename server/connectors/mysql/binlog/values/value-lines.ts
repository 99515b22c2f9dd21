import type { Field } from '../../../contract/connector.ts';
import type { LineBuffer } from '../../../kits/log/change-lines.ts';
import type { ByteReader } from './byte-reader.ts';
import { INTEGER_BYTES, isPlainUtf8, prefixOf, type ValueOptions, valueReader } from './column-values.ts';
import { EXACT_DIGITS, ShortDecimal } from './number-text.ts';
import { type LoggedColumn, TYPE } from '../table-map.ts';
import { fractionBytes, isZeroDay, Moment } from './time-text.ts';

/**
 * Writes the value of a column as the cell that `valueReader` reads.
 * @returns false: it has what PostgreSQL cannot store
 */
export type WriteValue = (reader: ByteReader, lines: LineBuffer) => boolean;

const ZERO = 0x30;
const [MINUS, POINT] = [0x2d, 0x2e];
/** More than a number of 15 digits or an integer has, with what ends the value. */
const NUMBER_BYTES = 24;
/** Below it, the upper half of an integer leaves it exact as a number. */
const EXACT_HIGH = 2 ** 21;

/** The types that most values have are written from their bytes, others from the texts of their cells. */
export function valueWriter(column: LoggedColumn, field: Field, options: ValueOptions): WriteValue {
  const read = valueReader(column, field, options);
  const byCell: WriteValue = (reader, lines) => writeCell(read(reader), lines);
  const isFilled = field.source_type?.includes('zerofill') === true;
  const { type, size, scale, collation } = column;
  switch (type) {
    case TYPE.tiny:
    case TYPE.short:
    case TYPE.int24:
    case TYPE.long:
      return isFilled ? byCell : integerWriter(column);
    case TYPE.longlong:
      return isFilled ? byCell : bigintWriter(column, byCell);
    case TYPE.decimal:
      return isFilled || size > EXACT_DIGITS ? byCell : decimalWriter(new ShortDecimal(size, scale), scale);
    case TYPE.datetime:
      return momentWriter(Moment.datetime(scale), '', options);
    case TYPE.timestamp:
      return momentWriter(Moment.timestamp(scale), '+00', options);
    case TYPE.varchar:
    case TYPE.string:
    case TYPE.blob:
      return collation !== null && isPlainUtf8(column, options.charsets) ? textWriter(prefixOf(column)) : byCell;
    default:
      return byCell;
  }
}

function writeCell(cell: string | null, lines: LineBuffer): boolean {
  if (cell === null) {
    lines.null();
    return true;
  }
  if (!cell.isWellFormed()) return false;
  const bytes = Buffer.from(cell, 'utf8');
  return lines.text(bytes, 0, bytes.length);
}

function textWriter(prefix: number): WriteValue {
  return (reader, lines) => {
    const size = reader.uint(prefix);
    const start = reader.at;
    const end = start + size;
    if (end > reader.end) throw new RangeError('an event of the log is cut off');
    reader.at = end;
    return lines.text(reader.bytes, start, end);
  };
}

function integerWriter({ type, unsigned }: LoggedColumn): WriteValue {
  const width = INTEGER_BYTES[type]!;
  const limit = 256 ** width;
  return (reader, lines) => {
    const value = reader.uint(width);
    writeInteger(unsigned || value < limit / 2 ? value : value - limit, lines);
    return true;
  };
}

function bigintWriter({ unsigned }: LoggedColumn, byCell: WriteValue): WriteValue {
  return (reader, lines) => {
    const { bytes, at } = reader;
    const high = unsigned ? bytes.readUInt32LE(at + 4) : bytes.readInt32LE(at + 4);
    if (high >= EXACT_HIGH || high < -EXACT_HIGH) return byCell(reader, lines);
    reader.at = at + 8;
    writeInteger(high * 2 ** 32 + bytes.readUInt32LE(at), lines);
    return true;
  };
}

function writeInteger(value: number, lines: LineBuffer): void {
  lines.reserve(NUMBER_BYTES);
  let { at } = lines;
  if (value < 0) lines.bytes[at++] = MINUS;
  const whole = Math.abs(value);
  lines.endValue(writeDigits(whole, digitsOf(whole), lines.bytes, at));
}

function decimalWriter(decimal: ShortDecimal, scale: number): WriteValue {
  return (reader, lines) => {
    decimal.read(reader);
    lines.reserve(NUMBER_BYTES);
    const { bytes } = lines;
    let { at } = lines;
    if (decimal.isNegative) bytes[at++] = MINUS;
    at = writeDigits(decimal.left, digitsOf(decimal.left), bytes, at);
    if (scale > 0) {
      bytes[at++] = POINT;
      at = writeDigits(decimal.right, scale, bytes, at);
    }
    lines.endValue(at);
    return true;
  };
}

function momentWriter(moment: Moment, zone: string, { keep_zero_dates, onZeroDate }: ValueOptions): WriteValue {
  const { scale } = moment;
  // A fraction is stored in pairs of digits.
  const unit = 10 ** (2 * fractionBytes(scale) - scale);
  let [known, isZero] = ['', false];
  return (reader, lines) => {
    moment.read(reader);
    const { head } = moment;
    if (head !== known) [known, isZero] = [head, !keep_zero_dates && isZeroDay(head)];
    if (isZero) {
      onZeroDate();
      lines.null();
      return true;
    }
    lines.reserve(head.length + scale + zone.length + 2);
    const { bytes } = lines;
    let at = writeAscii(head, bytes, lines.at);
    if (scale > 0) {
      bytes[at++] = POINT;
      at = writeDigits(Math.floor(moment.part / unit), scale, bytes, at);
    }
    lines.endValue(writeAscii(zone, bytes, at));
    return true;
  };
}

function writeAscii(text: string, into: Buffer, at: number): number {
  for (let index = 0; index < text.length; index++) into[at + index] = text.charCodeAt(index);
  return at + text.length;
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits++;
  return digits;
}

/** @returns where they end */
function writeDigits(value: number, digits: number, into: Buffer, at: number): number {
  const end = at + digits;
  let left = value;
  for (let to = end - 1; to >= at; to--) {
    const rest = Math.floor(left / 10);
    into[to] = ZERO + (left - rest * 10);
    left = rest;
  }
  return end;
}
