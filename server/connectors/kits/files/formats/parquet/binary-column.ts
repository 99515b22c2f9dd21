import type { PlainValues } from './write/plain-values.ts';
import type { ParquetType } from './write/types.ts';

/** Rows as they arrived. Replaced by a larger buffer if a row does not fit. */
export interface RowBuffer {
  bytes: Uint8Array<ArrayBuffer>;
  view: DataView;
}

/** Converts the values of one column from PostgreSQL's binary form to that of a Parquet page. */
export interface BinaryColumn {
  type: ParquetType;
  /**
   * @param starts where the values begin in the page, behind their lengths; without NULLs
   * @throws Misfit for a value outside the range of the type
   */
  add(into: PlainValues, page: RowBuffer, starts: Int32Array): void;
}

export class Misfit extends Error {
  /** @param start of the value */
  constructor(
    readonly start: number,
    message: string,
  ) {
    super(message);
  }
}
