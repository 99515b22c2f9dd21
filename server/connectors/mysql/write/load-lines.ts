import type { TargetColumn } from '../../contract/connector.ts';
import type { DataError } from '../../contract/errors.ts';
import { decodeCopyText } from '../../cells/copy-text.ts';
import { instantText, type Shape, wholeText } from '../connection/cell-shapes.ts';
import type { MysqlTarget } from './target.ts';

const [TAB, LINE_FEED, BACKSLASH] = [0x09, 0x0a, 0x5c];
const [FORM_FEED, VERTICAL_TAB] = [0x0c, 0x0b];
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

/**
 * Turns COPY text of PostgreSQL into the lines of LOAD DATA. A cell is copied while its end is looked for: to find the end
 * first costs twice as much.
 */
export class LoadLines {
  readonly #shapes: readonly Shape[];
  /** The beginning of a line whose end has not arrived, and room for what follows it. */
  #text: Buffer = Buffer.alloc(0);
  #begun = 0;
  #lines: Buffer;
  #length = 0;
  #rows = 0;

  /**
   * @param size of the memory for lines, which grows where it is too small
   * @param nullRefusal why this column of this row, from 1, cannot be NULL; null if it can
   */
  constructor(
    shapes: readonly Shape[],
    private readonly size: number,
    private readonly nullRefusal: (column: number, row: number) => DataError | null = () => null,
  ) {
    this.#shapes = shapes;
    this.#lines = Buffer.allocUnsafeSlow(size);
  }

  /** Bytes of the lines that are complete. */
  get length(): number {
    return this.#length;
  }

  /** Takes any piece of the text. Its bytes are not needed any more. @throws DataError of `nullRefusal` */
  add(chunk: Uint8Array): void {
    const filled = this.#begun + chunk.length;
    this.#text = withRoom(this.#text, this.#begun, filled);
    const bytes = this.#text;
    bytes.set(chunk, this.#begun);
    const end = bytes.subarray(0, filled).lastIndexOf(LINE_FEED) + 1;
    // No cell takes more bytes than it had.
    this.#reserve(end);
    let at = 0;
    let to = this.#length;
    const lines = this.#lines;
    while (at < end) {
      this.#rows += 1;
      for (let column = 0; column < this.#shapes.length; column++) {
        const shape = this.#shapes[column]!;
        const begun = at;
        const isNull = bytes[at] === BACKSLASH && bytes[at + 1] === LETTER_N;
        if (isNull) this.#takeNull(column);
        if (shape === 'bytes' && !isNull) {
          at += 3;
          for (; bytes[at]! > LINE_FEED; at += 2) {
            const byte = (DIGITS[bytes[at]!]! << 4) | DIGITS[bytes[at + 1]!]!;
            if (byte === 0 || byte === TAB || byte === LINE_FEED || byte === BACKSLASH) lines[to++] = BACKSLASH;
            lines[to++] = byte === 0 ? ZERO : byte;
          }
        } else if (shape === 'text') {
          for (let byte = bytes[at]!; byte !== TAB && byte !== LINE_FEED; byte = bytes[++at]!) {
            if (byte !== BACKSLASH) lines[to++] = byte;
            else to = writeEscape(bytes[++at]!, lines, to);
          }
        } else {
          for (let byte = bytes[at]!; byte !== TAB && byte !== LINE_FEED; byte = bytes[++at]!) lines[to++] = byte;
          if (!isNull) to = CHECKED[shape]!(bytes, { at: begun, stop: at }, lines, to);
        }
        lines[to++] = bytes[at++]!;
      }
    }
    this.#length = to;
    bytes.copyWithin(0, end, filled);
    this.#begun = filled - end;
  }

  /** The complete lines so far, whose memory then belongs to the caller. */
  take(): Buffer {
    const taken = this.#lines.subarray(0, this.#length);
    this.#lines = Buffer.allocUnsafeSlow(this.size);
    this.#length = 0;
    return taken;
  }

  #takeNull(column: number): void {
    const refusal = this.nullRefusal(column, this.#rows);
    if (refusal) throw refusal;
  }

  #reserve(more: number): void {
    this.#lines = withRoom(this.#lines, this.#length, this.#length + more);
  }
}

/** @returns this memory, or a larger one with its first `used` bytes */
function withRoom(memory: Buffer, used: number, size: number): Buffer {
  if (size <= memory.length) return memory;
  const grown = Buffer.allocUnsafeSlow(Math.max(2 * memory.length, size));
  memory.copy(grown, 0, 0, used);
  return grown;
}

interface CopiedCell {
  at: number;
  stop: number;
}

/** What follows where a cell was copied as it is, up to `to` in `lines`. @returns where it ends */
type Check = (bytes: Buffer, cell: CopiedCell, lines: Buffer, to: number) => number;

const CHECKED: Partial<Record<Shape, Check>> = {
  flag(bytes, { at, stop }, lines, to) {
    const begun = to - (stop - at);
    lines[begun] = bytes[at] === LETTER_t ? ONE : ZERO;
    return begun + 1;
  },
  whole(bytes, { at, stop }, _lines, to) {
    for (let index = at; index < stop; index++) {
      const byte = bytes[index]!;
      if (byte === POINT || byte === LETTER_e || byte === LETTER_E) wholeText(cellAt(bytes, at, stop));
    }
    return to;
  },
  /** A moment in UTC, without its offset. */
  instant(bytes, { at, stop }, lines, to) {
    const isUtc = bytes[stop - 3] === PLUS && bytes[stop - 2] === ZERO && bytes[stop - 1] === ZERO;
    if (isUtc) return to - 3;
    const begun = to - (stop - at);
    return begun + lines.write(instantText(cellAt(bytes, at, stop)), begun, 'latin1');
  },
};

const cellAt = (bytes: Buffer, at: number, stop: number): string =>
  decodeCopyText(`${bytes.toString('utf8', at, stop)}\n`)[0]![0]!;

/** Both have the same escapes, but for a form feed and a vertical tab, which LOAD DATA reads as letters. */
function writeEscape(escaped: number, lines: Buffer, to: number): number {
  if (escaped === LETTER_f) lines[to] = FORM_FEED;
  else if (escaped === LETTER_v) lines[to] = VERTICAL_TAB;
  else {
    lines[to] = BACKSLASH;
    lines[to + 1] = escaped;
    return to + 2;
  }
  return to + 1;
}

/** By the code of a hexadecimal digit in lower case. */
const DIGITS = Uint8Array.from({ length: 256 }, (_, code) => (code <= 0x39 ? code - ZERO : code - 0x57));
