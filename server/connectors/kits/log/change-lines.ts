import { freeBytes } from '../../../platform/memory/free-bytes.ts';
import type { ChangeLines } from '../../contract/connector.ts';

const INITIAL_BYTES = 64 * 1024;
const EMPTY = Buffer.alloc(0);
const [TAB, LINE_FEED, RETURN, BACKSLASH] = [0x09, 0x0a, 0x0d, 0x5c];
const [LETTER_D, LETTER_N] = [0x64, 0x4e];
/** With a second byte of at least 0xa0: half of a surrogate pair, which no valid UTF-8 has. */
const [SURROGATE, SURROGATE_SECOND] = [0xed, 0xa0];

/** By byte: the character after the backslash; 0: the byte is not escaped. */
const ESCAPES = new Uint8Array(256);
ESCAPES[BACKSLASH] = BACKSLASH;
ESCAPES[LINE_FEED] = 0x6e;
ESCAPES[RETURN] = 0x72;
ESCAPES[TAB] = 0x74;

/** Where lines ended at some time. */
export interface LineMark {
  at: number;
  rows: number;
  deletes: number;
}

/**
 * Changes of one table as lines of COPY text, written where they belong: strings of their values would be garbage as soon
 * as they are encoded, and take most of the processor time of a catch-up.
 */
export class LineBuffer {
  bytes: Buffer = EMPTY;
  at = 0;
  rows = 0;
  #deletes = 0;
  /** Of the last whole line. */
  #end = 0;
  /** What was taken last: growing step by step would copy most of it. */
  #usual = INITIAL_BYTES;

  /** Room for so many more bytes. */
  reserve(more: number): void {
    if (this.at + more > this.bytes.length) this.#grow(more);
  }

  /** Ends a value that was written up to here. Its room has to have one more byte. */
  endValue(at: number): void {
    this.bytes[at] = TAB;
    this.at = at + 1;
  }

  null(): void {
    this.reserve(3);
    const { bytes, at } = this;
    bytes[at] = BACKSLASH;
    bytes[at + 1] = LETTER_N;
    bytes[at + 2] = TAB;
    this.at = at + 3;
  }

  /** A value that has nothing to escape. */
  ascii(text: string): void {
    this.reserve(text.length + 1);
    const { bytes, at } = this;
    for (let index = 0; index < text.length; index++) bytes[at + index] = text.charCodeAt(index);
    bytes[at + text.length] = TAB;
    this.at = at + text.length + 1;
  }

  /** The same as bytes. */
  plain(value: Uint8Array): void {
    this.reserve(value.length + 1);
    const { bytes, at } = this;
    for (let index = 0; index < value.length; index++) bytes[at + index] = value[index]!;
    this.endValue(at + value.length);
  }

  /** A value in UTF-8. @returns false: it has what PostgreSQL cannot store, and the line has to be undone */
  text(from: Buffer, start: number, end: number): boolean {
    this.reserve(2 * (end - start) + 1);
    const into = this.bytes;
    let to = this.at;
    for (let at = start; at < end; at++) {
      const byte = from[at]!;
      if (byte > BACKSLASH) {
        if (byte === SURROGATE && at + 1 < end && from[at + 1]! >= SURROGATE_SECOND) return false;
        into[to++] = byte;
        continue;
      }
      const escaped = ESCAPES[byte]!;
      if (escaped !== 0) {
        into[to++] = BACKSLASH;
        into[to++] = escaped;
      } else if (byte === 0) return false;
      else into[to++] = byte;
    }
    into[to] = TAB;
    this.at = to + 1;
    return true;
  }

  /** What happened to the row. */
  endLine(isDelete: boolean): void {
    this.reserve(3);
    const { bytes } = this;
    if (isDelete) bytes[this.at++] = LETTER_D;
    else {
      bytes[this.at++] = BACKSLASH;
      bytes[this.at++] = LETTER_N;
    }
    bytes[this.at++] = LINE_FEED;
    this.#end = this.at;
    this.rows += 1;
    if (isDelete) this.#deletes += 1;
  }

  /** Removes a line that has not been ended. */
  undo(): void {
    this.at = this.#end;
  }

  mark(): LineMark {
    return { at: this.#end, rows: this.rows, deletes: this.#deletes };
  }

  /** Removes the lines since then. */
  cut({ at, rows, deletes }: LineMark): void {
    [this.at, this.#end, this.rows, this.#deletes] = [at, at, rows, deletes];
  }

  /** Returns what has been collected, if anything, and empties the buffers. */
  take(): ChangeLines | null {
    if (this.rows === 0) return null;
    const lines = { bytes: this.bytes.subarray(0, this.#end), rows: this.rows, deletes: this.#deletes };
    this.#usual = Math.max(INITIAL_BYTES, this.#end);
    this.bytes = EMPTY;
    this.cut({ at: 0, rows: 0, deletes: 0 });
    return lines;
  }

  #grow(more: number): void {
    const larger = Buffer.allocUnsafe(Math.max(this.#usual, this.at + more, 2 * this.bytes.length));
    this.bytes.copy(larger, 0, 0, this.at);
    freeBytes(this.bytes);
    this.bytes = larger;
  }
}
