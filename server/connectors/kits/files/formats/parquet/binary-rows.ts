import type { DuckDBDataChunk } from '@duckdb/node-api';
import { duckdb, duckdbBindings } from '../../../duckdb/package.ts';
import { DataError } from '../../../../contract/errors.ts';
import type { BinaryColumn, RowBuffer } from './binary-columns.ts';
import { CHUNK_ROWS } from './chunk-tables.ts';

/** A chunk of wide rows ends at this size, before it has `CHUNK_ROWS` rows. */
const PAGE_BYTES = 2 << 20;
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');
/** Signature, flags and length of the header extension. */
const HEAD_BYTES = SIGNATURE.length + 8;
/** The trailer is -1 in place of a row's number of cells. */
const TRAILER_BYTES = 2;
const TRAILER = -1;
const TWO_32 = 2 ** 32;
/** Texts up to this length are stored in the vector itself. */
const INLINED = 12;

/**
 * Converts PostgreSQL's binary COPY to DuckDB chunks without creating a JavaScript value per cell: fixed-size values are
 * copied as words, and texts are pointers into the buffer of rows.
 */
export class BinaryRows {
  readonly #page: RowBuffer;
  readonly #chunk: DuckDBDataChunk;
  /** Keeps a copy of the buffer in DuckDB's memory while a chunk points into it. */
  readonly #held = duckdb().DuckDBDataChunk.create([duckdb().BLOB], 1);
  readonly #nulls: Uint8Array<ArrayBuffer>[];
  readonly #hasNulls: boolean[];
  /** Offsets in the buffer: the start of the next row and the end of the data. */
  #at = 0;
  #end = 0;
  #rows = 0;
  #rowsBefore = 0;
  /** Index of the column that is being read, for errors. */
  #column = 0;
  #begun = false;

  constructor(
    private readonly columns: readonly BinaryColumn[],
    private readonly names: readonly string[],
  ) {
    this.#page = pageOf(PAGE_BYTES);
    this.#chunk = duckdb().DuckDBDataChunk.create(columns.map(({ type }) => type));
    this.#nulls = columns.map(() => new Uint8Array(CHUNK_ROWS / 8).fill(0xff));
    this.#hasNulls = columns.map(() => false);
  }

  /** Adds bytes, which can start and end anywhere. Call `next` until it returns null before adding more. */
  take(bytes: Uint8Array): void {
    const page = this.#page;
    if (this.#end + bytes.length > page.bytes.length) {
      const larger = pageOf(2 * (this.#end + bytes.length));
      larger.bytes.set(page.bytes.subarray(0, this.#end));
      Object.assign(page, larger);
    }
    page.bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /**
   * A chunk of complete rows, valid until the next call; null if more bytes are needed.
   * @param last there are no more bytes
   * @throws DataError for a value that does not fit
   */
  next(last = false): { chunk: DuckDBDataChunk; bytes: number } | null {
    if (!this.#begun && !this.#begin()) return null;
    this.#readRows();
    const full = this.#rows === CHUNK_ROWS || this.#at >= PAGE_BYTES;
    if (last && this.#end - this.#at > TRAILER_BYTES) throw malformed();
    if (this.#rows === 0 || !(full || last)) return null;
    const bytes = this.#at;
    this.#fill();
    this.#drop();
    return { chunk: this.#chunk, bytes };
  }

  #begin(): boolean {
    if (this.#end < HEAD_BYTES) return false;
    if (!SIGNATURE.equals(this.#page.bytes.subarray(0, SIGNATURE.length))) {
      throw malformed();
    }
    this.#at = HEAD_BYTES + this.#page.view.getInt32(HEAD_BYTES - 4);
    this.#begun = true;
    return true;
  }

  #readRows(): void {
    try {
      while (this.#rows < CHUNK_ROWS && this.#at < PAGE_BYTES && this.#readRow()) this.#rows += 1;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const place = `row ${this.#rowsBefore + this.#rows + 1}, column "${this.names[this.#column]}"`;
      throw new DataError('value_does_not_fit', `A value does not fit its Parquet column: ${place}: ${error.message}`);
    }
  }

  /** @returns false if the row is incomplete, or at the trailer */
  #readRow(): boolean {
    const { columns } = this;
    const page = this.#page;
    let at = this.#at;
    if (at + TRAILER_BYTES > this.#end) return false;
    const cells = page.view.getInt16(at);
    if (cells === TRAILER) return false;
    if (cells !== columns.length) throw malformed();
    at += 2;
    for (let index = 0; index < columns.length; index += 1) {
      if (at + 4 > this.#end) return false;
      const length = page.view.getInt32(at);
      at += 4;
      if (length < 0) {
        this.#setNull(index);
        continue;
      }
      if (at + length > this.#end) return false;
      this.#column = index;
      columns[index]!.read(page, this.#rows, at, length);
      at += length;
    }
    this.#at = at;
    return true;
  }

  #setNull(index: number): void {
    const row = this.#rows;
    this.#hasNulls[index] = true;
    this.#nulls[index]![row >> 3]! &= ~(1 << (row & 7));
    const { places } = this.columns[index]!;
    if (places) places.length[row] = 0;
  }

  #fill(): void {
    const bindings = duckdbBindings();
    const address = this.columns.some(({ places }) => places) ? this.#hold() : null;
    this.#chunk.reset();
    this.#chunk.rowCount = this.#rows;
    this.columns.forEach((column, index) => {
      const vector = bindings.data_chunk_get_vector(this.#chunk.chunk, index);
      if (address) pointTexts(column, { page: this.#page, rows: this.#rows, address });
      bindings.copy_data_to_vector(vector, 0, column.values, 0, this.#rows * column.width);
      if (!this.#hasNulls[index]) return;
      const nulls = this.#nulls[index]!;
      bindings.vector_ensure_validity_writable(vector);
      bindings.copy_data_to_vector_validity(vector, 0, nulls.buffer, 0, 8 * Math.ceil(this.#rows / 64));
      nulls.fill(0xff);
      this.#hasNulls[index] = false;
    });
  }

  /**
   * @returns the address of the buffer's copy. A short copy is stored inside the vector and has no address, but then every
   * text is short enough to be stored inline, too.
   */
  #hold(): Address {
    const bindings = duckdbBindings();
    this.#held.reset();
    this.#held.rowCount = 1;
    const vector = bindings.data_chunk_get_vector(this.#held.chunk, 0);
    bindings.vector_assign_string_element_len(vector, 0, this.#page.bytes.subarray(0, this.#at));
    const { buffer, byteOffset } = bindings.vector_get_data(vector, 16);
    const pointer = new DataView(buffer, byteOffset, 16);
    return { low: pointer.getUint32(8, true), high: pointer.getUint32(12, true) };
  }

  /** Drops the rows of the chunk, and the memory that a very wide row needed. */
  #drop(): void {
    const rest = this.#page.bytes.subarray(this.#at, this.#end);
    if (this.#page.bytes.length > 4 * PAGE_BYTES && rest.length < PAGE_BYTES) {
      const page = pageOf(2 * PAGE_BYTES);
      page.bytes.set(rest);
      Object.assign(this.#page, page);
    } else this.#page.bytes.copyWithin(0, this.#at, this.#end);
    this.#rowsBefore += this.#rows;
    [this.#end, this.#at, this.#rows] = [rest.length, 0, 0];
  }
}

interface Address {
  low: number;
  high: number;
}

const malformed = () =>
  new DataError('malformed_copy', 'The source sent incomplete or malformed rows in binary format');

function pageOf(size: number): RowBuffer {
  const bytes = new Uint8Array(size);
  return { bytes, view: new DataView(bytes.buffer) };
}

/** Fills in `duckdb_string_t` of DuckDB's C API: the length, then the text itself or its first four bytes and a pointer. */
function pointTexts(
  { places, values }: BinaryColumn,
  { page, rows, address }: { page: RowBuffer; rows: number; address: Address },
): void {
  if (!places) return;
  const [words, bytes] = [new Int32Array(values), new Uint8Array(values)];
  for (let row = 0; row < rows; row += 1) {
    const [at, length] = [places.at[row]!, places.length[row]!];
    const word = 4 * row;
    words[word] = length;
    if (length > INLINED) {
      const low = address.low + at;
      words[word + 1] = page.view.getInt32(at, true);
      words[word + 2] = low;
      words[word + 3] = low < TWO_32 ? address.high : address.high + 1;
    } else {
      words.fill(0, word + 1, word + 4);
      for (let index = 0; index < length; index += 1) bytes[4 * (word + 1) + index] = page.bytes[at + index]!;
    }
  }
}
