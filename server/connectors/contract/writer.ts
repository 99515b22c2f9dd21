import type { Batch, ByteFormat, ByteStream, DestinationSyncMode, LogicalType, StreamState } from './connector.ts';

export interface TargetColumn {
  name: string;
  type: LogicalType;
  source_type: string | null;
  dialect: string | null;
  nullable: boolean;
  /** As what the stream wrote it before: where that differs, the source has changed (widening.ts). Absent: never yet. */
  previous?: ColumnType | null;
}

export type ColumnType = Pick<TargetColumn, 'type' | 'source_type' | 'dialect'>;

/** What a destination is to write one stream into. */
export interface WriteTarget {
  schema: string | null;
  table: string;
  columns: TargetColumn[];
  /** Names out of `columns`. */
  primary_key: string[];
  /** Name out of `columns`: with append_dedup the row with the highest cursor wins. */
  cursor_column: string | null;
  mode: DestinationSyncMode;
  /**
   * With append, and only where the destination declares `replaces_windows`: the rows whose `column` is in the half-open
   * window `[start, end)`, ISO as in `ReadRequest.window`, give way to those written, in the one commit that `finish`
   * makes. NULL is in no window. Absent or null: every row stays.
   */
  replace_window?: { column: string; start: string | null; end: string | null } | null;
  /**
   * The read gives all rows that the stream has: with soft_delete, those of the table that are not among them are
   * marked as deleted by the commit that `finish` makes.
   */
  complete?: boolean;
  /**
   * Only where the destination declares `keeps_rejects`: up to `limit` rows of the stream run that cannot be loaded are
   * kept beside the table, with the reason, in the commit of the others. Absent or null: the first one is an error.
   */
  rejects?: { limit: number } | null;
  /** Identity of the checkpoint that the destination keeps. */
  connection_id: string;
  stream_id: string;
  connection_run_id: string;
  stream_run_id: string;
  /** Grows with every claim: a commit with a lower one than the destination has seen is refused (FencedError). */
  fence: number;
  /**
   * The control plane's `state_version`: a destination that has a higher one tells its own state. Each commit stores
   * the higher of the two plus the number of commits since the writer was opened.
   */
  state_version: number;
  /** What the control plane has noted for this stream run, as far as it goes on from there: for who keeps no state. */
  counts?: WriteCounts;
}

/** What the destination committed for this stream earlier. */
export interface CommittedState {
  state: StreamState | null;
  state_version: number;
  /** Set when the commit was made by the very stream run of the target. */
  same_stream_run: boolean;
  /** That stream run's last commit was its final one: nothing is left to do. */
  finished: boolean;
  /** Rows and bytes that this stream run has committed. */
  counts: WriteCounts;
}

/** Totals of this stream run as committed so far, earlier attempts included. */
export interface WriteCounts {
  rows_loaded: number;
  rows_updated: number;
  rows_deleted: number;
  bytes_loaded: number;
  /** Rows that the destination did not take; absent: it takes all or fails. */
  rows_rejected?: number;
}

/**
 * Writes one stream, by the rules of row-changes.ts where batches carry changes. Order of calls:
 * (`write`* `checkpoint`?)* `finish`, or `pipe` (`checkpoint` `pipe`)* `finish`; `abort` at any time instead, also after
 * an error of another call, and then nothing that is not yet committed may stay.
 */
export interface Writer {
  /** Byte formats that `pipe` takes into this very table; absent: rows only. */
  byteFormats?: ByteFormat[];
  /** What this destination had committed when the writer was opened; null: nothing. */
  committed: CommittedState | null;
  write(batch: Batch): Promise<void>;
  /** Takes a byte stream to its end. Only with a format from `byteFormats`. */
  pipe?(stream: ByteStream): Promise<void>;
  /** Makes rows and state durable in one transaction of the destination, visible to its readers. */
  checkpoint(state: StreamState): Promise<WriteCounts>;
  /** The last commit: swaps or merges into place and records the state and that the stream run is done. */
  finish(state: StreamState | null): Promise<WriteCounts>;
  abort(): Promise<void>;
}
