import type { TargetColumn } from '../../contract/connector.ts';
import { decodeCopyText } from '../../cells/copy-text.ts';
import { instantText, type Shape, wholeText } from '../connection/cell-shapes.ts';
import type { MysqlTarget } from './target.ts';

const [TAB, LINE_FEED, BACKSLASH] = [0x09, 0x0a, 0x5c];
const [ZERO, ONE, PLUS, POINT] = [0x30, 0x31, 0x2b, 0x2e];
const [LETTER_E, LETTER_N, LETTER_e, LETTER_f, LETTER_t, LETTER_v] = [0x45, 0x4e, 0x65, 0x66, 0x74, 0x76];

const BY_BYTES: ReadonlySet<Shape> = new Set<Shape>(['text', 'whole', 'flag', 'instant', 'bytes']);

/**
 * Whether COPY text of these columns can be turned into the lines of LOAD DATA as bytes. Sources other than PostgreSQL leave
 * the character NUL out of it, which this database can store.
 */
export const takesCopyText = ({ columns, typed }: MysqlTarget): boolean =>
  columns.every((column, at) => isTaken(column, typed[at]!.shape));

const isTaken = ({ dialect, type }: TargetColumn, shape: Shape) =>
  dialect === 'postgres' && BY_BYTES.has(shape) && (shape === 'flag') === (type === 'boolean');

/** Turns COPY text of PostgreSQL into the lines of LOAD DATA. */
export class LoadLines {
  readonly #shapes: readonly Shape[];
  /** The beginning of a line whose end has not arrived. */
  #rest: Buffer = Buffer.alloc(0);

  constructor(shapes: readonly Shape[]) {
    this.#shapes = shapes;
  }

  /** @returns the lines that are complete, which takes no more bytes than they had */
  convert(chunk: Uint8Array): Buffer {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    this.#rest = Buffer.from(bytes.subarray(end));
    const into = Buffer.allocUnsafe(end);
    let [at, to] = [0, 0];
    while (at < end) {
      for (const shape of this.#shapes) {
        let stop = at;
        while (bytes[stop] !== TAB && bytes[stop] !== LINE_FEED) stop++;
        to = writeField(bytes, { at, stop, shape }, into, to);
        into[to++] = bytes[stop]!;
        at = stop + 1;
      }
    }
    return into.subarray(0, to);
  }
}

interface CopiedField {
  at: number;
  stop: number;
  shape: Shape;
}

/** @returns where it ends */
function writeField(bytes: Uint8Array, { at, stop, shape }: CopiedField, into: Buffer, to: number): number {
  const isNull = stop - at === 2 && bytes[at] === BACKSLASH && bytes[at + 1] === LETTER_N;
  if (isNull) return writeBytes(bytes, { at, stop }, into, to);
  switch (shape) {
    case 'flag':
      into[to] = bytes[at] === LETTER_t ? ONE : ZERO;
      return to + 1;
    case 'whole':
      for (let index = at; index < stop; index++) {
        const byte = bytes[index]!;
        if (byte === POINT || byte === LETTER_e || byte === LETTER_E) wholeText(cellAt(bytes, at, stop));
      }
      return writeBytes(bytes, { at, stop }, into, to);
    case 'instant':
      return writeInstant(bytes, { at, stop }, into, to);
    case 'bytes':
      return writeHex(bytes, { at, stop }, into, to);
    default:
      return writeText(bytes, { at, stop }, into, to);
  }
}

const cellAt = (bytes: Uint8Array, at: number, stop: number): string =>
  decodeCopyText(`${Buffer.from(bytes.subarray(at, stop)).toString('utf8')}\n`)[0]![0]!;

function writeBytes(bytes: Uint8Array, { at, stop }: { at: number; stop: number }, into: Buffer, to: number): number {
  for (let index = at; index < stop; index++) into[to + index - at] = bytes[index]!;
  return to + stop - at;
}

/** Both have the same escapes, but for a form feed and a vertical tab, which LOAD DATA reads as letters. */
function writeText(bytes: Uint8Array, { at, stop }: { at: number; stop: number }, into: Buffer, begin: number): number {
  let to = begin;
  for (let index = at; index < stop; index++) {
    const byte = bytes[index]!;
    if (byte !== BACKSLASH) {
      into[to++] = byte;
      continue;
    }
    index += 1;
    const escaped = bytes[index]!;
    if (escaped === LETTER_f) into[to++] = 0x0c;
    else if (escaped === LETTER_v) into[to++] = 0x0b;
    else {
      into[to++] = BACKSLASH;
      into[to++] = escaped;
    }
  }
  return to;
}

/** A moment in UTC, without its offset. */
function writeInstant(bytes: Uint8Array, { at, stop }: { at: number; stop: number }, into: Buffer, to: number): number {
  const isUtc = bytes[stop - 3] === PLUS && bytes[stop - 2] === ZERO && bytes[stop - 1] === ZERO;
  if (isUtc) return writeBytes(bytes, { at, stop: stop - 3 }, into, to);
  return to + into.write(instantText(cellAt(bytes, at, stop)), to, 'latin1');
}

/** `\\x…` as its bytes. */
function writeHex(bytes: Uint8Array, { at, stop }: { at: number; stop: number }, into: Buffer, begin: number): number {
  let to = begin;
  for (let index = at + 3; index < stop; index += 2) {
    const byte = (digitOf(bytes[index]!) << 4) | digitOf(bytes[index + 1]!);
    if (byte === 0) {
      into[to++] = BACKSLASH;
      into[to++] = ZERO;
    } else {
      if (byte === TAB || byte === LINE_FEED || byte === BACKSLASH) into[to++] = BACKSLASH;
      into[to++] = byte;
    }
  }
  return to;
}

const digitOf = (code: number): number => (code <= 0x39 ? code - ZERO : (code | 0x20) - 0x57);
