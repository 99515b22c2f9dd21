import type { DuckDBDataChunk } from '@duckdb/node-api';
import type { ChunkPool } from '../chunk-pool.ts';
import { duckdbBindings } from '../../../duckdb/package.ts';

/** `duckdb_string_t` of DuckDB's C API: a length, then the text itself if it is short, otherwise a pointer to it. */
const STRING_BYTES = 16;
const INLINED = 12;
const TWO_32 = 2 ** 32;

/** Texts that are adjacent in memory, or a single one stored in the vector. */
interface Run {
  /** Offset in the vector of the text, or of the pointer to the first one. */
  at: number;
  length: number;
  inlined: boolean;
}

/** The joined bytes of the texts in a chunk's first column, without creating JavaScript strings. There must be no NULL. */
export function joinedTexts(chunk: DuckDBDataChunk, pool: ChunkPool): Uint8Array {
  const bindings = duckdbBindings();
  const vector = bindings.data_chunk_get_vector(chunk.chunk, 0);
  const strings = bindings.vector_get_data(vector, chunk.rowCount * STRING_BYTES);
  const runs = runsOf(new DataView(strings.buffer, strings.byteOffset, strings.byteLength));
  const bytes = pool.take(runs.reduce((sum, { length }) => sum + length, 0));
  let to = 0;
  for (const { at, length, inlined } of runs) {
    const from = inlined
      ? strings.subarray(at, at + length)
      : bindings.get_data_from_pointer(strings.buffer as ArrayBuffer, strings.byteOffset + at, length);
    bytes.set(from, to);
    to += length;
  }
  return bytes;
}

function runsOf(strings: DataView): Run[] {
  const runs: Run[] = [];
  let end = -1;
  for (let at = 0; at < strings.byteLength; at += STRING_BYTES) {
    const length = strings.getUint32(at, true);
    if (length <= INLINED) {
      runs.push({ at: at + 4, length, inlined: true });
      end = -1;
      continue;
    }
    // Addresses have 48 bits.
    const address = strings.getUint32(at + 12, true) * TWO_32 + strings.getUint32(at + 8, true);
    if (address === end) runs.at(-1)!.length += length;
    else runs.push({ at: at + 8, length, inlined: false });
    end = address + length;
  }
  return runs;
}
