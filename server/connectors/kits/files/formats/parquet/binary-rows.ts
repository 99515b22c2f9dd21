import { freeBytes } from '../../../../../platform/memory/free-bytes.ts';
import { DataError } from '../../../../contract/errors.ts';
import { boundsOf } from './write/bounds.ts';
import type { RowGroup, WaitingPage } from './write/file.ts';
import { PlainValues } from './write/plain-values.ts';
import type { BinaryColumn, RowBuffer } from './binary-column.ts';

/** Two row groups are in memory: one is filled while the one before is compressed. */
const GROUP_BYTES = 16 << 20;
const GROUP_ROWS = 122_880;
const PAGE_BYTES = 1 << 20;
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
  /** Index of the column that is being read, for errors. */
  #column = 0;
  #begun = false;

  constructor(
    private readonly columns: readonly BinaryColumn[],
    private readonly names: readonly string[],
  ) {
    this.#page = pageOf(PAGE_BYTES);
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
    try {
      while (this.#rows < this.#most && this.#bytes < GROUP_BYTES) {
        const end = this.#endOfRow();
        if (end === null) return;
        this.#readRow();
        this.#bytes += end - this.#at;
        this.#at = end;
        this.#rows += 1;
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const place = `row ${this.#rowsBefore + this.#rows + 1}, column "${this.names[this.#column]}"`;
      throw new DataError('value_does_not_fit', `A value does not fit its Parquet column: ${place}: ${error.message}`);
    }
  }

  /** Null if the row is incomplete, or at the trailer. Values are added only once their whole row is there. */
  #endOfRow(): number | null {
    const { view } = this.#page;
    const { length } = this.columns;
    let at = this.#at;
    if (at + COUNT_BYTES > this.#end) return null;
    const cells = view.getInt16(at);
    if (cells === TRAILER) return null;
    if (cells !== length) throw malformed();
    at += COUNT_BYTES;
    for (let index = 0; index < length; index += 1) {
      if (at + LENGTH_BYTES > this.#end) return null;
      const bytes = view.getInt32(at);
      at += bytes < 0 ? LENGTH_BYTES : LENGTH_BYTES + bytes;
    }
    return at > this.#end ? null : at;
  }

  #readRow(): void {
    const { columns } = this;
    const page = this.#page;
    let at = this.#at + COUNT_BYTES;
    for (let index = 0; index < columns.length; index += 1) {
      const length = page.view.getInt32(at);
      at += LENGTH_BYTES;
      if (length < 0) {
        this.#values[index]!.addNull(this.#rows);
        continue;
      }
      this.#column = index;
      columns[index]!.add(this.#values[index]!, page, at, length);
      at += length;
    }
  }
}

const malformed = () =>
  new DataError('malformed_copy', 'The source sent incomplete or malformed rows in binary format');

function pageOf(size: number): RowBuffer {
  const bytes = new Uint8Array(size);
  return { bytes, view: new DataView(bytes.buffer) };
}
