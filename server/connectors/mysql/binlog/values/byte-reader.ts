import { decodeText } from '../../connection/decode-text.ts';

/** Reads the little-endian values of an event, one after the other. */
export class ByteReader {
  constructor(
    readonly bytes: Buffer,
    public at = 0,
    readonly end = bytes.length,
  ) {}

  get isAtEnd(): boolean {
    return this.at >= this.end;
  }

  uint(width: number): number {
    if (width === 1) return this.#byte();
    const { bytes, at } = this;
    this.at = at + width;
    // The generic reader takes several times as long.
    if (width === 2) return bytes.readUInt16LE(at);
    return width === 4 ? bytes.readUInt32LE(at) : bytes.readUIntLE(at, width);
  }

  uint64(): bigint {
    const value = this.bytes.readBigUInt64LE(this.at);
    this.at += 8;
    return value;
  }

  /** A number of the protocol's variable length. */
  length(): number {
    const first = this.uint(1);
    if (first < 0xfb) return first;
    if (first === 0xfc) return this.uint(2);
    if (first === 0xfd) return this.uint(3);
    return Number(this.uint64());
  }

  take(size: number): Buffer {
    const { at } = this;
    this.skip(size);
    return this.bytes.subarray(at, this.at);
  }

  skip(size: number): void {
    if (size < 0 || this.at + size > this.end) throw new RangeError('an event of the log is cut off');
    this.at += size;
  }

  rest(): Buffer {
    return this.take(this.end - this.at);
  }

  /** Of bytes in UTF-8. A view of them alone would take longer than their text. */
  text(size: number): string {
    const { bytes, at } = this;
    if (at + size > this.end) throw new RangeError('an event of the log is cut off');
    this.at = at + size;
    return decodeText(bytes, at, at + size);
  }

  #byte(): number {
    const value = this.bytes[this.at];
    if (value === undefined) throw new RangeError('an event of the log is cut off');
    this.at += 1;
    return value;
  }
}
