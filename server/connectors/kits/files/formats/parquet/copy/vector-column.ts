import type { Vector } from '@duckdb/node-bindings';
import { duckdbBindings } from '../../../../duckdb/package.ts';

/** NULL in place of the length of a field. */
export const NULL_LENGTH = -1;
export const LENGTH_BYTES = 4;
/** Of a chunk. */
export const MAX_ROWS = 2048;
/** Validity has a bit for each row, in words of 64. */
const VALIDITY_BITS = 64;

/** Turns the values of one column, in chunks of DuckDB's, into fields of PostgreSQL's binary COPY: a length, and the value. */
export abstract class VectorColumn {
  #validity: Uint8Array | null = null;

  /** Begins a chunk. @throws DataError for a value that PostgreSQL cannot hold */
  read(vector: Vector, rows: number): void {
    this.#validity = duckdbBindings().vector_get_validity(
      vector,
      (Math.ceil(rows / VALIDITY_BITS) * VALIDITY_BITS) / 8,
    );
    this.readValues(vector, rows);
  }

  protected abstract readValues(vector: Vector, rows: number): void;

  /** Adds the size of each value to that of its row. */
  abstract measure(sizes: Int32Array, rows: number): void;

  /** Writes each field at the offset of its row, and moves the offset on. */
  abstract write(into: DataView, offsets: Int32Array, rows: number): void;

  protected isNull(row: number): boolean {
    // DuckDB has none for a column without NULLs.
    return this.#validity !== null && ((this.#validity[row >> 3]! >> (row & 7)) & 1) === 0;
  }
}

export const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => new DataView(buffer, byteOffset, byteLength);
