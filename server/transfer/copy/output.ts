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

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
