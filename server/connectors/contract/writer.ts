import type { Batch, ByteFormat, ByteStream } from './cells.ts';
import type { SentRows } from './sent-rows.ts';
import type { DestinationSyncMode, LogicalType, StreamState } from './stream.ts';
import type { WriteCounts } from './write-counts.ts';

export interface TargetColumn {
  name: string;
  type: LogicalType;
  source_type: string | null;
  dialect: string | null;
  nullable: boolean;
  /** Values are texts that stand for those of the source, in every byte format. */
  masked?: boolean;
  /** The type of the cells that arrive, where it is another one. */
  from?: ColumnType;
  /** The type that the stream wrote before. If it differs, the source has changed. Absent: never written. */
  previous?: ColumnType | null;
}

export type ColumnType = Pick<TargetColumn, 'type' | 'source_type' | 'dialect'>;

/** How a destination names tables and columns. */
export interface NameRules {
  /** For messages, such as `PostgreSQL`. */
  product: string;
  /** Null: names may have any length. */
  max: { length: number; unit: 'bytes' | 'characters' } | null;
  /** Matches the names that cannot be stored as they are. */
  invalid: RegExp;
  /** Folded names of columns that every table has already. */
  system_columns?: ReadonlySet<string>;
  /** Two names are the same one if their folded forms are. */
  fold(name: string): string;
}

/** Where a destination keeps its tables. */
export interface TableLocation {
  /** Account connectors with the same store write to the same tables. */
  store: string;
  /** The schema of connections that set none. */
  schema: string;
}

/** The table that one stream is written to, and how. */
export interface WriteTarget {
  schema: string | null;
  table: string;
  columns: TargetColumn[];
  /** Names in `columns`. */
  primary_key: string[];
  /** A name in `columns`. With `append_dedup` the row with the highest cursor wins. */
  cursor_column: string | null;
  mode: DestinationSyncMode;
  /**
   * Only with `append`, and only if the destination declares `replaces_windows`: the written rows replace those whose
   * `column` is in the half-open window `[start, end)`, as in `ReadRequest.window`. That is one commit, in `finish`. NULL
   * is in no window. Absent or null: every row stays.
   */
  replace_window?: { column: string; start: string | null; end: string | null } | null;
  /**
   * The read yields all rows of the stream: with `soft_delete`, the commit in `finish` marks the rows of the table that
   * are not among them as deleted.
   */
  complete?: boolean;
  /**
   * The rows are those of a whole table, all of them before the first commit and none of them a change but for a truncate
   * that comes first. A table that is missing may be filled before its key is built.
   */
  whole_table?: boolean;
  /**
   * Only if the destination declares `keeps_rejects`: up to `limit` rows of the stream run that cannot be loaded are kept
   * in a table beside it, with the reason, in the commit of the other rows. Absent or null: the first one is an error.
   */
  rejects?: { limit: number } | null;
  /** `allow`: a value that its column cannot hold exactly is written as the nearest one and counted. Absent: refused. */
  inexact_values?: 'refuse' | 'allow';
  /**
   * Only with `overwrite`, and only if the destination implements `publish`: `finish` commits the new table without
   * making it visible. `publish` does that for all streams with the same value. Absent or null: `finish` does.
   */
  publish_with?: string | null;
  /** With `stream_id`: identifies the state that the destination stores. */
  connection_id: string;
  stream_id: string;
  connection_run_id: string;
  stream_run_id: string;
  /** Fencing token that grows with every claim. A destination that has seen a higher one rejects commits (FencedError). */
  fence: number;
  /**
   * The control plane's `state_version`. A destination with a higher one returns its own state in `committed`. Each
   * commit stores the higher of the two plus the number of commits since the writer was opened.
   */
  state_version: number;
  /** The control plane's counts of this stream run, if it resumes there: for destinations that store no state. */
  counts?: WriteCounts;
  /** Set for destinations that declare `at_least_once`. */
  deliveries?: DeliveryLog;
  /** Set for destinations with `identifyRows`, when a full read is merged by its key: only differences are sent. */
  sent?: SentRows;
}

/** What defines the table of a stream. */
export type TableOfStream = Pick<WriteTarget, 'schema' | 'table' | 'columns' | 'primary_key' | 'mode'>;

/** Batches that earlier attempts at a stream run have delivered, for destinations that store no state. */
export interface DeliveryLog {
  /** Rows of the batch that the destination rejected; undefined: the batch has not arrived. */
  rejectedOf(key: string): number | undefined;
  /** Call it before the next batch is sent. @throws an error that ends the attempt when the batch cannot be recorded */
  record(key: string, batch: DeliveredBatch): Promise<void>;
}

export interface DeliveredBatch {
  rows: number;
  rejected: number;
}

/** What the destination committed for this stream earlier. */
export interface CommittedState {
  state: StreamState | null;
  state_version: number;
  /** Whether the target's own stream run made the commit. */
  same_stream_run: boolean;
  /** Whether that was the stream run's final commit: nothing is left to do. */
  finished: boolean;
  /** The table of this stream run is complete and waits for `publish`, with the target's own `publish_with`. */
  ready?: boolean;
  /** Rows and bytes that this stream run has committed. */
  counts: WriteCounts;
}

/** What a destination holds of a stream, read from the destination itself when it is opened. */
export interface HeldPosition {
  /** `state_version` of its last commit; 0: it knows of none. */
  state_version: number;
  state: StreamState | null;
  /** The stream run of its last commit; null: it knows of none. */
  stream_run_id: string | null;
  /** Rows that the destination committed earlier can still be there. False: their table is gone. */
  has_table: boolean;
  /** The table held rows after the last commit and holds none now. Absent: it does, or the destination cannot know. */
  was_emptied?: boolean;
  /** Columns that earlier runs wrote and the table lacked; it has them again, without a value in its rows. Absent: none. */
  lost_columns?: readonly string[];
}

/**
 * Writes one stream; if batches carry changes, by the rules of `RowChange`. Order of calls:
 * (`write`* `checkpoint`?)* `finish`, or `pipe` (`checkpoint` `pipe`)* `finish`. `abort` can replace any of them, also
 * after one has failed; nothing uncommitted may remain after it.
 */
export interface Writer {
  /** Byte formats that `pipe` accepts for this table. Absent: rows only. */
  byteFormats?: ByteFormat[];
  /** What this destination had committed when the writer was opened; null if nothing, or nothing newer. */
  committed: CommittedState | null;
  /** The position that the destination proves; null if it stores no state. */
  held: HeldPosition | null;
  write(batch: Batch): Promise<void>;
  /** Writes a byte stream to its end. Only for formats in `byteFormats`. */
  pipe?(stream: ByteStream): Promise<void>;
  /** `pipe` may be called while a `checkpoint` is under way, which takes what came before it. One at a time. */
  writes_while_committing?: boolean;
  /** Commits rows and state in one transaction of the destination. */
  checkpoint(state: StreamState): Promise<WriteCounts>;
  /**
   * The final commit: swaps or merges the rows into place and records the state and the end of the stream run. With
   * `publish_with` the rows are complete and not visible yet.
   */
  finish(state: StreamState | null): Promise<WriteCounts>;
  abort(): Promise<void>;
}
