import type { DuckDBDataChunk } from '@duckdb/node-api';
import { duckdbBindings } from '../../../../duckdb/package.ts';
import type { ChunkPool } from '../../chunk-pool.ts';
import type { CopyColumn } from './columns.ts';
import { LENGTH_BYTES, MAX_ROWS, viewOf } from './vector-column.ts';

/** The number of fields before a row. */
const COUNT_BYTES = 2;

/** Encodes chunks of DuckDB as rows of a binary COPY, column by column: a loop over values of one type is fast. */
export class CopyRows {
  /** Of each row its size, then where its next field begins. */
  readonly #offsets = new Int32Array(MAX_ROWS);

  constructor(
    private readonly columns: readonly CopyColumn[],
    private readonly pool: ChunkPool,
  ) {}

  /** @throws DataError for a value that PostgreSQL cannot hold */
  rowsOf({ chunk, rowCount }: DuckDBDataChunk): Uint8Array<ArrayBuffer> {
    const { columns } = this;
    const offsets = this.#offsets;
    offsets.fill(COUNT_BYTES + LENGTH_BYTES * columns.length, 0, rowCount);
    for (const [index, { values }] of columns.entries()) {
      values.read(duckdbBindings().data_chunk_get_vector(chunk, index), rowCount);
      values.measure(offsets, rowCount);
    }
    const bytes = this.pool.take(this.#placeRows(rowCount));
    const view = viewOf(bytes);
    for (let row = 0; row < rowCount; row += 1) {
      view.setInt16(offsets[row]!, columns.length);
      offsets[row]! += COUNT_BYTES;
    }
    for (const { values } of columns) values.write(view, offsets, rowCount);
    return bytes;
  }

  /** @returns the size of all rows */
  #placeRows(rows: number): number {
    let end = 0;
    for (let row = 0; row < rows; row += 1) {
      const size = this.#offsets[row]!;
      this.#offsets[row] = end;
      end += size;
    }
    return end;
  }

  /** Whether a text of the last chunk contains the character NUL. */
  hasNul(): boolean {
    return this.columns.some(({ texts }) => texts?.hasNul);
  }
}
