import { DataError } from '../../../contract/errors.ts';
import { ByteReader } from './byte-reader.ts';
import { decimalReader, doubleText } from './number-text.ts';
import { TYPE } from '../table-map.ts';

/** Kinds of values. Large objects and arrays have offsets of four bytes. */
const KIND = {
  object: 0,
  large_object: 1,
  array: 2,
  large_array: 3,
  literal: 4,
  int16: 5,
  uint16: 6,
  int32: 7,
  uint32: 8,
  int64: 9,
  uint64: 10,
  double: 11,
  text: 12,
  opaque: 15,
} as const;

const LITERALS = ['null', 'true', 'false'];
const TIMESTAMP = 7;
const TIME = 11;
const DATETIME = 12;

/** The text that a SELECT gives of MySQL's binary JSON. */
export function jsonText(bytes: Buffer): string {
  const [kind] = bytes;
  // What an UPDATE IGNORE and the like may leave.
  if (kind === undefined) return 'null';
  return valueText(kind, bytes.subarray(1));
}

function valueText(kind: number, bytes: Buffer): string {
  switch (kind) {
    case KIND.object:
    case KIND.large_object:
      return containerText(bytes, kind === KIND.large_object, true);
    case KIND.array:
    case KIND.large_array:
      return containerText(bytes, kind === KIND.large_array, false);
    case KIND.literal:
      return LITERALS[bytes[0]!] ?? unknown(`literal ${bytes[0]}`);
    case KIND.int16:
      return String(bytes.readInt16LE(0));
    case KIND.uint16:
      return String(bytes.readUInt16LE(0));
    case KIND.int32:
      return String(bytes.readInt32LE(0));
    case KIND.uint32:
      return String(bytes.readUInt32LE(0));
    case KIND.int64:
      return String(bytes.readBigInt64LE(0));
    case KIND.uint64:
      return String(bytes.readBigUInt64LE(0));
    case KIND.double:
      return withPoint(doubleText(bytes.readDoubleLE(0)));
    case KIND.text: {
      const reader = new ByteReader(bytes);
      return quoted(reader.text(lengthOf(reader)));
    }
    case KIND.opaque:
      return opaqueText(new ByteReader(bytes));
    default:
      return unknown(`kind ${kind}`);
  }
}

/** Small numbers and literals are in the place of an offset. */
const isInline = (kind: number, large: boolean) =>
  kind === KIND.literal ||
  kind === KIND.int16 ||
  kind === KIND.uint16 ||
  (large && (kind === KIND.int32 || kind === KIND.uint32));

function containerText(bytes: Buffer, large: boolean, isObject: boolean): string {
  const width = large ? 4 : 2;
  const reader = new ByteReader(bytes);
  const count = reader.uint(width);
  reader.uint(width);
  const keys: string[] = [];
  for (let left = isObject ? count : 0; left > 0; left--) {
    const start = reader.uint(width);
    keys.push(quoted(bytes.toString('utf8', start, start + reader.uint(2))));
  }
  const values: string[] = [];
  for (let at = 0; at < count; at++) {
    const kind = reader.uint(1);
    const place = reader.at;
    const offset = reader.uint(width);
    const value = valueText(kind, bytes.subarray(isInline(kind, large) ? place : offset));
    values.push(isObject ? `${keys[at]}: ${value}` : value);
  }
  return isObject ? `{${values.join(', ')}}` : `[${values.join(', ')}]`;
}

/** Seven bits a byte, the lowest first. */
function lengthOf(reader: ByteReader): number {
  let length = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = reader.uint(1);
    length += (byte & 0x7f) * scale;
    if (byte < 0x80) return length;
  }
}

/** A double always shows that it is one. */
const withPoint = (text: string) => (/[.e]/.test(text) ? text : `${text}.0`);

const ESCAPES: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

const quoted = (text: string): string =>
  `"${text.replace(/["\\\p{Cc}]/gu, (one) => ESCAPES[one] ?? (one < ' ' ? `\\u${hexOf(one)}` : one))}"`;
const hexOf = (one: string) => one.charCodeAt(0).toString(16).padStart(4, '0');

/** A value of SQL without a counterpart in JSON. */
function opaqueText(reader: ByteReader): string {
  const type = reader.uint(1);
  const value = new ByteReader(reader.take(lengthOf(reader)));
  switch (type) {
    case TYPE.decimal:
      return decimalReader(value.uint(1), value.uint(1))(value);
    case TYPE.date:
      return `"${momentText(value.uint64()).slice(0, 10)}"`;
    case DATETIME:
    case TIMESTAMP:
      return `"${momentText(value.uint64())}"`;
    case TIME:
      return `"${durationText(BigInt.asIntN(64, value.uint64()))}"`;
    default:
      return `"base64:type${type}:${value.rest().toString('base64')}"`;
  }
}

const digits = (value: number, count = 2) => String(value).padStart(count, '0');
const clockText = (hours: number, packed: number, micros: bigint) =>
  `${digits(hours)}:${digits((packed >> 6) & 63)}:${digits(packed & 63)}.${digits(Number(micros), 6)}`;

function momentText(packed: bigint): string {
  const value = Number(packed >> 24n);
  const day = Math.floor(value / 0x20000);
  const months = day >> 5;
  const date = `${digits(Math.floor(months / 13), 4)}-${digits(months % 13)}-${digits(day & 31)}`;
  const clock = value & 0x1ffff;
  return `${date} ${clockText(clock >> 12, clock, packed & 0xffffffn)}`;
}

function durationText(packed: bigint): string {
  const value = packed < 0n ? -packed : packed;
  const clock = Number(value >> 24n);
  return `${packed < 0n ? '-' : ''}${clockText((clock >> 12) & 0x3ff, clock, value & 0xffffffn)}`;
}

function unknown(what: string): never {
  throw new DataError('binlog_corrupt', `A JSON value of the binary log has the unknown ${what}`);
}
