/** How the bytes of a column are converted to a cell of PostgreSQL's COPY text. */
export const FORM = {
  /** Digits, dates and the like, which need no escaping. */
  plain: 0,
  text: 1,
  /** DATE and DATETIME; one without a year, month or day becomes NULL. */
  date: 2,
  /** TIMESTAMP in UTC: like `date`, followed by the offset. */
  instant: 3,
  /** TIMESTAMP, followed by the offset, zero dates included. */
  any_instant: 4,
  /** Bytes, as hexadecimal. */
  binary: 5,
} as const;
export type Form = (typeof FORM)[keyof typeof FORM];

const TAB = 0x09;
const LINE_FEED = 0x0a;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const NULL_CELL = 0xfb;
const HEX = Buffer.from('0123456789abcdef', 'latin1');

/** By byte: the character after the backslash; 0: the byte is not escaped. */
const ESCAPES = new Uint8Array(256);
ESCAPES[BACKSLASH] = BACKSLASH;
ESCAPES[LINE_FEED] = 0x6e;
ESCAPES[0x0d] = 0x72;
ESCAPES[TAB] = 0x74;

/**
 * Converts row packets (text protocol) to lines of COPY text, byte by byte and without intermediate strings. On 1M rows
 * of ten columns this takes a third of the time. Values stay as the server sent them, also those that UTF-8 cannot hold.
 */
export class RowText {
  #out: Buffer;
  #length = 0;
  #rows = 0;
  #zeroDates = 0;

  /** @param size of the memory for a piece, which grows for a long line */
  constructor(
    private readonly forms: readonly Form[],
    private readonly size: number,
  ) {
    this.#out = Buffer.allocUnsafe(size);
  }

  /** Bytes ready to be taken. */
  get length(): number {
    return this.#length;
  }
  get rows(): number {
    return this.#rows;
  }
  /** Dates that became NULL. */
  get zeroDates(): number {
    return this.#zeroDates;
  }

  /** Returns whole lines, which then belong to the caller. */
  take(): Buffer {
    const taken = this.#out.subarray(0, this.#length);
    this.#out = Buffer.allocUnsafe(this.size);
    this.#length = 0;
    return taken;
  }

  /** `bytes` from `start` to `end`: the payload of one row packet. */
  add(bytes: Uint8Array, start: number, end: number): void {
    const { forms } = this;
    // Enough if every byte is escaped or hexadecimal, plus NULLs and separators.
    this.#reserve((end - start) * 2 + forms.length * 8);
    const out = this.#out;
    let to = this.#length;
    let at = start;
    for (let column = 0; column < forms.length; column++) {
      if (column > 0) out[to++] = TAB;
      let size = bytes[at++]!;
      if (size === NULL_CELL) {
        out[to++] = BACKSLASH;
        out[to++] = 0x4e;
        continue;
      }
      if (size > NULL_CELL) {
        const width = size === 0xfc ? 2 : size === 0xfd ? 3 : 8;
        size = lengthAt(bytes, at, width);
        at += width;
      }
      const stop = at + size;
      const form = forms[column]!;
      if (form === FORM.plain) {
        while (at < stop) out[to++] = bytes[at++]!;
      } else if (form === FORM.text) {
        to = this.#text(bytes, at, { stop, to });
      } else if (form === FORM.binary) {
        to = hex(bytes, at, { stop, out, to });
      } else to = this.#date(bytes, at, { stop, to, form });
      at = stop;
    }
    out[to++] = LINE_FEED;
    this.#length = to;
    this.#rows++;
  }

  #text(bytes: Uint8Array, from: number, { stop, to: begin }: { stop: number; to: number }): number {
    const out = this.#out;
    let to = begin;
    for (let at = from; at < stop; at++) {
      const byte = bytes[at]!;
      if (byte > BACKSLASH) {
        out[to++] = byte;
        continue;
      }
      const escaped = ESCAPES[byte]!;
      if (escaped !== 0) {
        out[to++] = BACKSLASH;
        out[to++] = escaped;
      } else out[to++] = byte;
    }
    return to;
  }

  #date(bytes: Uint8Array, from: number, { stop, to: begin, form }: { stop: number; to: number; form: Form }): number {
    const out = this.#out;
    let to = begin;
    const isZero = (at: number) => bytes[at] === ZERO && bytes[at + 1] === ZERO;
    if (form !== FORM.any_instant && ((isZero(from) && isZero(from + 2)) || isZero(from + 5) || isZero(from + 8))) {
      this.#zeroDates++;
      out[to++] = BACKSLASH;
      out[to++] = 0x4e;
      return to;
    }
    for (let at = from; at < stop; at++) out[to++] = bytes[at]!;
    if (form === FORM.date) return to;
    out[to++] = 0x2b;
    out[to++] = ZERO;
    out[to++] = ZERO;
    return to;
  }

  #reserve(more: number) {
    if (this.#length + more <= this.#out.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#out.length * 2, this.#length + more));
    this.#out.copy(grown, 0, 0, this.#length);
    this.#out = grown;
  }
}

/** Decodes a little-endian length of the protocol. */
function lengthAt(bytes: Uint8Array, at: number, width: number): number {
  let length = 0;
  for (let index = width - 1; index >= 0; index--) length = length * 256 + bytes[at + index]!;
  return length;
}

/** `\x…`, with the backslash escaped. */
function hex(
  bytes: Uint8Array,
  from: number,
  { stop, out, to: begin }: { stop: number; out: Buffer; to: number },
): number {
  let to = begin;
  out[to++] = BACKSLASH;
  out[to++] = BACKSLASH;
  out[to++] = 0x78;
  for (let at = from; at < stop; at++) {
    const byte = bytes[at]!;
    out[to++] = HEX[byte >> 4]!;
    out[to++] = HEX[byte & 15]!;
  }
  return to;
}
