import type { Vector } from '@duckdb/node-bindings';
import { duckdbBindings } from '../../../duckdb/package.ts';

/** `duckdb_string_t` of DuckDB's C API: a length, then the text itself if it is short, otherwise a pointer to it. */
const STRING_BYTES = 16;
const INLINED = 12;
const LENGTH_BYTES = 4;
const POINTER_AT = 8;
const TWO_32 = 2 ** 32;

export interface JoinedTexts {
  /** Memory for so many bytes. */
  take(length: number): Uint8Array;
  /** Absent: no text is NULL. */
  isNull?(row: number): boolean;
  /** By row. Those of NULLs remain as they are. */
  lengths?: Int32Array;
  /** Texts with more bytes are left out. */
  most?: number;
}

/** The text in a row that has so many bytes, more than a vector stores itself. The memory is that of the chunk. */
export function longText(strings: Uint8Array, row: number, length: number): Uint8Array {
  const pointer = strings.byteOffset + row * STRING_BYTES + POINTER_AT;
  return duckdbBindings().get_data_from_pointer(strings.buffer as ArrayBuffer, pointer, length);
}

export const stringsOf = (vector: Vector, rows: number): Uint8Array =>
  duckdbBindings().vector_get_data(vector, rows * STRING_BYTES);

/** The joined bytes of the texts in a vector, without creating JavaScript strings. */
export function joinedTexts(
  strings: Uint8Array,
  rows: number,
  { take, isNull, lengths, most = Number.POSITIVE_INFINITY }: JoinedTexts,
): Uint8Array {
  const view = new DataView(strings.buffer, strings.byteOffset, strings.byteLength);
  let total = 0;
  for (let row = 0; row < rows; row += 1) {
    if (isNull?.(row)) continue;
    const length = view.getUint32(row * STRING_BYTES, true);
    if (lengths) lengths[row] = length;
    if (length <= most) total += length;
  }
  const bytes = take(total);
  let to = 0;
  // Texts that are adjacent in memory are copied together: the row of the first one, and their end.
  let [first, from, end] = [-1, 0, -1];
  const copyRun = () => {
    if (first >= 0) bytes.set(longText(strings, first, to - from), from);
  };
  for (let row = 0; row < rows; row += 1) {
    if (isNull?.(row)) continue;
    const at = row * STRING_BYTES;
    const length = view.getUint32(at, true);
    if (length > most) continue;
    if (length <= INLINED) {
      copyRun();
      [first, end] = [-1, -1];
      for (let index = 0; index < length; index += 1) bytes[to + index] = strings[at + LENGTH_BYTES + index]!;
    } else {
      // Addresses have 48 bits.
      const pointer = at + POINTER_AT;
      const address = view.getUint32(pointer + 4, true) * TWO_32 + view.getUint32(pointer, true);
      if (address !== end) {
        copyRun();
        [first, from] = [row, to];
      }
      end = address + length;
    }
    to += length;
  }
  copyRun();
  return bytes;
}
