import { freeBytes } from '../../../../../../platform/memory/free-bytes.ts';
import { writeVarint } from './compact-protocol.ts';

/** Before the bits of the definition levels: their length in bytes, and a varint with the length of their only run. */
const LENGTH_BYTES = 4;
const LEVELS_AT = 8;
const INITIAL_BYTES = 4096;

/** The values of a column in one row group, in Parquet's encoding PLAIN: little-endian, NULLs left out. */
export class PlainValues {
  bytes!: Uint8Array<ArrayBuffer>;
  /** The same memory. */
  words!: Int32Array;
  view!: DataView;
  /** Where the values begin, and where they end so far. Before them there is room for the definition levels. */
  readonly begin: number;
  end: number;
  nulls = 0;
  /** Of values of one bit, in the byte that ends at `end`. */
  #bits = 0;
  /** Of the group before the last one. */
  #spare: ArrayBuffer | null = null;
  #closed = false;

  /** @param most the largest number of rows of a group */
  constructor(most: number) {
    this.begin = LEVELS_AT + 8 * Math.ceil(most / 64);
    this.end = this.begin;
    this.#use(new Uint8Array(this.begin + INITIAL_BYTES));
  }

  /** Room for a value of so many bytes, at most a few more than it has. @returns its offset */
  add(length: number): number {
    const at = this.end;
    if (at + length > this.bytes.length) this.#grow(length);
    this.end = at + length;
    return at;
  }

  addBit(bit: number): void {
    if (this.#bits === 0) this.bytes[this.add(1)] = 0;
    this.bytes[this.end - 1]! |= bit << this.#bits;
    this.#bits = (this.#bits + 1) & 7;
  }

  addNull(row: number): void {
    if (this.nulls === 0) this.bytes.fill(0xff, LEVELS_AT, this.begin);
    this.nulls += 1;
    this.bytes[LEVELS_AT + (row >> 3)]! &= ~(1 << (row & 7));
  }

  /** Ends the group. @returns the definition levels and values of its rows, in memory of their own */
  take(rows: number): Uint8Array<ArrayBuffer> {
    const page = this.bytes.subarray(this.#writeLevels(rows), this.end);
    this.#reset();
    return page;
  }

  /** Takes back what `take` gave: memory that is only dropped is freed late, and every page of new memory costs time. */
  reuse(page: Uint8Array<ArrayBuffer>): void {
    const { buffer, length } = page;
    const isFilled = buffer.byteLength <= 4 * length + this.begin + INITIAL_BYTES;
    if (isFilled && !this.#closed) this.#spare = buffer;
    else freeBytes(page);
  }

  /** Ends the last group. Pages that were taken are still valid. */
  close(): void {
    this.#closed = true;
    freeBytes(this.bytes);
    if (this.#spare) freeBytes(new Uint8Array(this.#spare));
  }

  /** Begins a group with as much memory as the last one needed, and a little more. */
  #reset(): void {
    const expected = Math.max(this.begin + INITIAL_BYTES, 8 * Math.ceil((this.end * 9) / 64));
    [this.end, this.nulls, this.#bits] = [this.begin, 0, 0];
    this.#use(new Uint8Array(this.#spare ?? new ArrayBuffer(expected)));
    this.#spare = null;
  }

  /** One run for all rows: of the level 1, or of one bit for each row. @returns where it begins */
  #writeLevels(rows: number): number {
    const run: number[] = [];
    const bytes = Math.ceil(rows / 8);
    if (this.nulls > 0) writeVarint(run, (bytes << 1) | 1);
    else {
      writeVarint(run, rows << 1);
      run.push(1);
    }
    const bits = this.nulls > 0 ? bytes : 0;
    this.bytes.copyWithin(this.begin - bits, LEVELS_AT, LEVELS_AT + bits);
    const at = this.begin - bits - run.length;
    this.bytes.set(run, at);
    this.view.setUint32(at - LENGTH_BYTES, run.length + bits, true);
    return at - LENGTH_BYTES;
  }

  #grow(length: number): void {
    const larger = new Uint8Array(Math.max(2 * this.bytes.length, 8 * Math.ceil((this.end + length) / 8)));
    larger.set(this.bytes.subarray(0, this.end));
    freeBytes(this.bytes);
    this.#use(larger);
  }

  #use(bytes: Uint8Array<ArrayBuffer>): void {
    this.bytes = bytes;
    this.words = new Int32Array(bytes.buffer, 0, bytes.length >> 2);
    this.view = new DataView(bytes.buffer);
  }
}
