import type { Vector } from '@duckdb/node-bindings';
import { moveBytes } from '../move-bytes.ts';
import { joinedTexts, longText, stringsOf } from '../text-bytes.ts';
import { LENGTH_BYTES, MAX_ROWS, NULL_LENGTH, VectorColumn, viewOf } from './vector-column.ts';

/** Longer texts are copied one by one: a chunk of them can take a third of what the process may have. */
const MAX_JOINED = 4096;

/** A column whose values are texts or bytes. */
export class TextColumn extends VectorColumn {
  /** Of the chunk, without NULLs and texts that are not joined. */
  protected values: Uint8Array = new Uint8Array();
  protected readonly lengths = new Int32Array(MAX_ROWS);
  #strings: Uint8Array = new Uint8Array();
  /** Longer texts are not joined. */
  #most = MAX_JOINED;
  #memory = new Uint8Array();
  #hasNul = false;

  /** @param version the byte before each text of a jsonb */
  constructor(private readonly version: number | null = null) {
    super();
  }

  protected readValues(vector: Vector, rows: number): void {
    this.readTexts(vector, rows, MAX_JOINED);
    this.#hasNul = this.values.includes(0);
  }

  protected readTexts(vector: Vector, rows: number, most = Number.POSITIVE_INFINITY): void {
    this.#most = most;
    this.#strings = stringsOf(vector, rows);
    this.values = joinedTexts(this.#strings, rows, {
      take: (length) => this.#take(length),
      isNull: (row) => this.isNull(row),
      lengths: this.lengths,
      most,
    });
  }

  measure(sizes: Int32Array, rows: number): void {
    const more = this.version === null ? 0 : 1;
    for (let row = 0; row < rows; row += 1) if (!this.isNull(row)) sizes[row]! += this.lengths[row]! + more;
  }

  write(into: DataView, offsets: Int32Array, rows: number): void {
    const { lengths, values: bytes, version } = this;
    const from = { bytes, view: viewOf(bytes) };
    const target = { bytes: new Uint8Array(into.buffer as ArrayBuffer), view: into };
    let start = 0;
    for (let row = 0; row < rows; row += 1) {
      const at = offsets[row]!;
      let to = at + LENGTH_BYTES;
      if (this.isNull(row)) into.setInt32(at, NULL_LENGTH);
      else {
        const length = lengths[row]!;
        if (version !== null) into.setUint8(to++, version);
        if (length > this.#most) this.#copyLong(row, target.bytes.subarray(to, to + length));
        else {
          moveBytes({ from, at: start, into: target, to, length });
          start += length;
        }
        to += length;
        into.setInt32(at, to - at - LENGTH_BYTES);
      }
      offsets[row] = to;
    }
  }

  #copyLong(row: number, into: Uint8Array): void {
    const text = longText(this.#strings, row, into.length);
    this.#hasNul ||= text.includes(0);
    into.set(text);
  }

  /** In what was written of the last chunk. */
  get hasNul(): boolean {
    return this.#hasNul;
  }

  #take(length: number): Uint8Array {
    if (length > this.#memory.length) this.#memory = new Uint8Array(length + (length >> 2));
    return this.#memory.subarray(0, length);
  }
}
