import { type RowChange, TRUNCATE } from './changes.ts';
import type { StreamState } from './stream.ts';

/**
 * A value in transit: null, or PostgreSQL's text form of its logical type. Text loses nothing, whereas JavaScript values
 * would lose microseconds and the digits of large numbers.
 *
 * | Type | Text |
 * |---|---|
 * | `boolean` | `true` or `false` |
 * | `integer`, `number` | digits, with all their places |
 * | `date`, `time`, `timestamp`, `timestamp_tz` | ISO 8601 with a space: `2026-01-31 23:59:59.123456+00` |
 * | `json`, `array` | JSON; arrays keep PostgreSQL's form `{…}` if `source_type` is one of its array types |
 * | `binary` | hexadecimal: `\x…` |
 */
export type Cell = string | null;

/** Rows of a stream: about 5,000 rows or 1 MB, whichever is reached first. */
export interface Batch {
  /** Cells in the order of `ReadRequest.columns`. */
  rows: Cell[][];
  /** Approximate size of the cells. Buffers are bounded by it. */
  bytes: number;
  /** What happened to each row, one entry per row. Absent: every row exists as given. */
  changes?: readonly RowChange[];
  /** Changes instead of `rows`, where the request accepts them. */
  lines?: ChangeLines;
  /** If set: once everything up to the end of this batch is committed, a read can resume from here. */
  state?: StreamState;
}

/**
 * Changes as lines of COPY text: the cells of `ReadRequest.columns`, and what happened to the row, `\N` for an upsert of all
 * columns and `d` for a delete. None of the cells has the character NUL.
 */
export interface ChangeLines {
  /** Their memory belongs to the writer that takes them. */
  bytes: Buffer;
  rows: number;
  deletes: number;
}

/**
 * Formats that a source and a destination can pass on as bytes. In `pgcopy-binary` a column has the type of its source, or,
 * if that is not one of PostgreSQL's, the one that columns of its logical type are created with.
 */
export type ByteFormat = 'pgcopy-binary' | 'pgcopy-text';

export interface ByteStream {
  format: ByteFormat;
  chunks: AsyncIterable<Uint8Array>;
  /** Takes back a chunk that nothing reads any more, to fill its memory again. Absent: chunks are not used again. */
  reuse?(chunk: Uint8Array): void;
  /** The chunks are computed by this process, which is idle while it waits for the destination. */
  computed?: boolean;
  /** Number of rows. Exact after the end, and with `state` after each chunk; in between it may grow. */
  rows(): number;
  /**
   * Only for binary formats, whose bytes do not show it: the end of the last complete row in the last chunk, 0 if no row
   * ends in it. Absent: unknown, so the rows cannot be divided.
   */
  rowsEnd?(): number;
  /**
   * Only for incremental reads, whose chunks contain whole rows: once everything up to the end of the last chunk is
   * committed, a read can resume from here. Null: not yet.
   */
  state?(): StreamState | null;
}

/** Removes all rows of a table with so many columns. */
export const truncated = (columns: number): Batch => ({
  rows: [Array.from({ length: columns }, (): Cell => null)],
  changes: [TRUNCATE],
  bytes: 0,
});
