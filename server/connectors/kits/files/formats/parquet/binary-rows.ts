import { freeBytes } from '../../../../../platform/memory/free-bytes.ts';
import { DataError } from '../../../../contract/errors.ts';
import { boundsOf } from './write/bounds.ts';
import type { RowGroup, WaitingPage } from './write/file.ts';
import { PlainValues } from './write/plain-values.ts';
import { type BinaryColumn, Misfit, type RowBuffer } from './binary-column.ts';

/** Two row groups are in memory: one is filled while the one before is compressed. */
const GROUP_BYTES = 16 << 20;
const GROUP_ROWS = 122_880;
const PAGE_BYTES = 1 << 20;
/** Rows that are converted at once. */
const BLOCK_ROWS = 512;
/** In place of the start of a value. */
const NULL = 0;
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');
/** Signature, flags and length of the header extension. */
const HEAD_BYTES = SIGNATURE.length + 8;
/** The number of cells before a row, and the length before a cell. */
const [COUNT_BYTES, LENGTH_BYTES] = [2, 4];
/** In place of a row's number of cells. */
const TRAILER = -1;

/**
 * Converts PostgreSQL's binary COPY to the pages of Parquet without a JavaScript value per cell: both store fixed-size
 * values and texts alike but for the order of their bytes.
 */
export class BinaryRows {
  readonly #page: RowBuffer;
  readonly #values: readonly PlainValues[];
  /** By the least bytes that a row takes, so that the rows of a group have room for their NULLs. */
  readonly #most: number;
  /** Offsets in the buffer: the start of the next row and the end of the data. */
  #at = 0;
  #end = 0;
  /** Of the group, its rows and bytes so far. */
  #rows = 0;
  #bytes = 0;
  #rowsBefore = 0;
  #begun = false;
  /** Of a block: where each row begins, and, column by column, where its values begin. */
  readonly #begins = new Int32Array(BLOCK_ROWS);
  readonly #starts: Int32Array;

  constructor(
    private readonly columns: readonly BinaryColumn[],
    private readonly names: readonly string[],
  ) {
    this.#page = pageOf(PAGE_BYTES);
    this.#starts = new Int32Array(BLOCK_ROWS * columns.length);
    this.#most = Math.min(GROUP_ROWS, Math.ceil(GROUP_BYTES / (COUNT_BYTES + LENGTH_BYTES * columns.length)));
    this.#values = columns.map(() => new PlainValues(this.#most));
  }

  /** Adds bytes, which can start and end anywhere. Call `next` until it returns null before adding more. */
  take(bytes: Uint8Array): void {
    const page = this.#page;
    const rest = this.#end - this.#at;
    if (rest + bytes.length > page.bytes.length || (rest < PAGE_BYTES && page.bytes.length > 4 * PAGE_BYTES)) {
      const other = pageOf(Math.max(PAGE_BYTES, 2 * (rest + bytes.length)));
      other.bytes.set(page.bytes.subarray(this.#at, this.#end));
      Object.assign(page, other);
    } else page.bytes.copyWithin(0, this.#at, this.#end);
    page.bytes.set(bytes, rest);
    [this.#at, this.#end] = [0, rest + bytes.length];
  }

  /**
   * A group of complete rows; null if more bytes are needed.
   * @param last there are no more bytes
   * @throws DataError for a value that does not fit
   */
  next(last = false): (RowGroup & { bytes: number }) | null {
    if (!this.#begun && !this.#begin()) return null;
    this.#readRows();
    const full = this.#rows === this.#most || this.#bytes >= GROUP_BYTES;
    if (last && !full && this.#end - this.#at > COUNT_BYTES) throw malformed();
    if (this.#rows === 0 || !(full || last)) return null;
    const group = {
      rows: this.#rows,
      bytes: this.#bytes,
      columns: this.#values.map((one, at) => this.#ended(one, at)),
    };
    this.#rowsBefore += this.#rows;
    [this.#rows, this.#bytes] = [0, 0];
    return group;
  }

  close(): void {
    freeBytes(this.#page.bytes);
    for (const values of this.#values) values.close();
  }

  #ended(values: PlainValues, index: number): WaitingPage {
    const [nulls, bounds] = [values.nulls, boundsOf(values, this.columns[index]!.type.order)];
    return { nulls, bounds, page: values.take(this.#rows), reuse: (page) => values.reuse(page) };
  }

  #begin(): boolean {
    if (this.#end < HEAD_BYTES) return false;
    if (!SIGNATURE.equals(this.#page.bytes.subarray(0, SIGNATURE.length))) throw malformed();
    const head = HEAD_BYTES + this.#page.view.getInt32(HEAD_BYTES - LENGTH_BYTES);
    if (this.#end < head) return false;
    this.#at = head;
    this.#begun = true;
    return true;
  }

  #readRows(): void {
    while (this.#rows < this.#most && this.#bytes < GROUP_BYTES) {
      const rows = this.#readBlock();
      if (rows === 0) return;
      for (let index = 0; index < this.columns.length; index += 1) this.#convert(index, rows);
      this.#rows += rows;
    }
  }

  /**
   * Finds the values of the next complete rows. Converting them column by column, in loops over values of one type, takes
   * half the time of converting row by row.
   * @returns their number; 0: the next row is incomplete, or there is only the trailer
   */
  #readBlock(): number {
    const begin = this.#at;
    const full = begin + GROUP_BYTES - this.#bytes;
    const most = Math.min(BLOCK_ROWS, this.#most - this.#rows);
    let rows = 0;
    while (rows < most && this.#at < full) {
      const end = this.#findValues(rows);
      if (end === null) break;
      this.#begins[rows] = this.#at;
      this.#at = end;
      rows += 1;
    }
    this.#bytes += this.#at - begin;
    return rows;
  }

  /** @returns the end of the row; null: it is incomplete, or there is only the trailer */
  #findValues(row: number): number | null {
    const { view } = this.#page;
    const starts = this.#starts;
    const stop = this.#end;
    let at = this.#at;
    if (at + COUNT_BYTES > stop) return null;
    const cells = view.getInt16(at);
    if (cells === TRAILER) return null;
    if (cells !== this.columns.length) throw malformed();
    at += COUNT_BYTES;
    for (let cell = row; cell < cells * BLOCK_ROWS; cell += BLOCK_ROWS) {
      if (at + LENGTH_BYTES > stop) return null;
      const bytes = view.getInt32(at);
      at += LENGTH_BYTES;
      starts[cell] = bytes < 0 ? NULL : at;
      if (bytes > 0) at += bytes;
    }
    return at > stop ? null : at;
  }

  #convert(index: number, rows: number): void {
    const values = this.#values[index]!;
    const starts = this.#starts.subarray(index * BLOCK_ROWS, index * BLOCK_ROWS + rows);
    let count = 0;
    for (let row = 0; row < rows; row += 1) {
      const start = starts[row]!;
      if (start === NULL) values.addNull(this.#rows + row);
      else starts[count++] = start;
    }
    try {
      this.columns[index]!.add(values, this.#page, starts.subarray(0, count));
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      const row = this.#begins.subarray(0, rows).findLastIndex((begin) => begin < error.start);
      const place = `row ${this.#rowsBefore + this.#rows + row + 1}, column "${this.names[index]}"`;
      throw new DataError('value_does_not_fit', `A value does not fit its Parquet column: ${place}: ${error.message}`);
    }
  }
}

const malformed = () =>
  new DataError('malformed_copy', 'The source sent incomplete or malformed rows in binary format');

function pageOf(size: number): RowBuffer {
  const bytes = new Uint8Array(size);
  return { bytes, view: new DataView(bytes.buffer) };
}
