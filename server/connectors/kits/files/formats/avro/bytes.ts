/** The data ends within a value. */
export class AvroEndError extends RangeError {}

const NO_LIMIT = 10n;

/** Reads the binary encoding of Avro from memory. */
export class AvroBytes {
  at = 0;

  constructor(private readonly bytes: Buffer) {}

  get left(): number {
    return this.bytes.length - this.at;
  }

  byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw new AvroEndError('the data ends within a value');
    return byte;
  }

  /** `int` and `long`: a number in zigzag form, 7 bits per byte. */
  long(): bigint | number {
    let value = 0;
    let shift = 1;
    for (let count = 0; count < 6; count++) {
      const byte = this.byte();
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      shift *= 128;
    }
    let long = BigInt(value);
    for (let count = 6n; count < NO_LIMIT; count++) {
      const byte = this.byte();
      long += BigInt(byte & 0x7f) << (7n * count);
      if (byte < 0x80) return BigInt.asIntN(64, long & 1n ? -(long >> 1n) - 1n : long >> 1n);
    }
    throw new AvroEndError('a number has more than 10 bytes');
  }

  /** A count or length. */
  size(): number {
    const size = Number(this.long());
    if (Number.isSafeInteger(size)) return size;
    throw new AvroEndError(`${size} is not a length`);
  }

  take(length: number): Buffer {
    if (length < 0 || length > this.left) throw new AvroEndError('the data ends within a value');
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  float = (): number => this.take(4).readFloatLE();
  double = (): number => this.take(8).readDoubleLE();
}
