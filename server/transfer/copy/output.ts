import { freeBytes } from '../../platform/memory/free-bytes.ts';

const HEX = Buffer.from('0123456789abcdef', 'latin1');

/** Bytes that grow as they are written. */
export class Output {
  #bytes: Buffer;
  #length = 0;

  constructor(expected: number) {
    this.#bytes = Buffer.allocUnsafe(expected);
  }

  get written(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  append(input: Buffer, from: number, to: number): void {
    this.#reserve(to - from);
    input.copy(this.#bytes, this.#length, from, to);
    this.#length += to - from;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  int32(value: number): void {
    this.#reserve(4);
    this.#length = this.#bytes.writeInt32BE(value, this.#length);
  }

  /** A text without other characters. */
  latin1(text: string): void {
    this.#reserve(text.length);
    this.#length += this.#bytes.write(text, this.#length, 'latin1');
  }

  /** Bytes as hexadecimal digits. */
  hex(bytes: Uint8Array): void {
    this.#reserve(2 * bytes.length);
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      this.#bytes[this.#length++] = HEX[byte >> 4]!;
      this.#bytes[this.#length++] = HEX[byte & 0xf]!;
    }
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    this.#bytes.copy(grown, 0, 0, this.#length);
    freeBytes(this.#bytes);
    this.#bytes = grown;
  }
}
