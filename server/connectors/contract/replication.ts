import type { Batch, ByteFormat, ByteStream } from './cells.ts';
import type { LogLag } from './changes.ts';
import type { ConnectorContext } from './context.ts';
import type { ReadRequest } from './read-request.ts';
import type { StreamState } from './stream.ts';
import type { Writer, WriteTarget } from './writer.ts';
import type { WriteCounts } from './write-counts.ts';

/** Streams that are read from one change log together. */
export interface ReplicationRequest {
  /** The consumer of all of them, the same in all runs. */
  reader_id: string;
  /** The `reader_id` of each is the consumer that it may have had of its own before. */
  streams: ReadRequest[];
  /** Streams, by index, whose changes may come as lines. Absent: none. */
  as_lines?: ReadonlySet<number>;
  /**
   * What every stream of the consumer has reached at the destination: the source may release its log before the lowest
   * of these states. Null: not known at the moment. Absent: only `acknowledge` releases it.
   */
  committed?(): readonly StreamState[] | null;
  /** Read on at the end of the log. Absent: the read ends there. */
  follow?: Following;
}

/** A read that waits for changes at the end of the log. */
export interface Following {
  /** Aborted: the read ends at the next border of transactions. */
  until: AbortSignal;
}

export interface ReplicatedBatch {
  /** Rows by stream, as its index in the request. */
  parts: { stream: number; batch: Batch }[];
  /**
   * Set at a border of source transactions: the state of each stream there. Everything up to here may be committed, in
   * one commit for all streams. Absent: inside a transaction, or inside the first read of a table.
   */
  states?: (StreamState | null)[];
  /** With `states`: commit here, because what has been read cannot be read again at little cost. */
  complete?: boolean;
  /** While following, with `states`: how far the read is behind the source. */
  lag?: LogLag;
}

/** Tables that are read in full, at one moment, while the log is followed. */
export interface TableCopies {
  /** Begins with a truncate. Several tables may be read at the same time. @param stream its index in the request */
  read(stream: number): AsyncIterable<Batch>;
  /** The formats that `copy` offers, best first. Absent: none. */
  byteFormats?(stream: number): ByteFormat[];
  /** The same rows encoded, without the truncate. */
  copy?(stream: number, format: ByteFormat): ByteStream;
  /** The state after the read: the log has every later change of the table. */
  state(stream: number): StreamState;
  close(): Promise<void>;
}

export interface LogMark {
  position: string;
  /**
   * Open transactions that have written to the tables. Their changes come after the position. Null: the server does not
   * show them.
   */
  open_writers: number | null;
}

/** Reads several streams from one log, so that transactions of the source stay whole across tables. */
export interface Replication<Config> {
  /** Streams without a state are read in full at one moment, the others from their states. Ends at the end of the log. */
  read(ctx: ConnectorContext<Config>, request: ReplicationRequest): AsyncIterable<ReplicatedBatch>;
  /** Whether streams without a state can be copied while these are followed, all of which have one. */
  canCopy(ctx: ConnectorContext<Config>, request: ReplicationRequest): Promise<boolean>;
  /** All tables of one `copy` are read at the same position. */
  copiesAtOnce: boolean;
  /** Opens a snapshot of tables at a position of the log. The log must not be released beyond that before they join. */
  copy(ctx: ConnectorContext<Config>, request: ReplicationRequest): Promise<TableCopies>;
  /** As `SourceConnector.acknowledge`. @param states of all streams that will be read on, in this run or later */
  acknowledge(
    ctx: ConnectorContext<Config>,
    request: ReplicationRequest,
    states: readonly StreamState[],
  ): Promise<LogLag>;
  /**
   * The current end of the log. A read that follows it commits the states of all streams soon after it has come past
   * this position.
   */
  mark(ctx: ConnectorContext<Config>, tables: readonly { namespace: string | null; name: string }[]): Promise<LogMark>;
  /** Whether everything before the position has been read. @throws ConfigurationError `invalid_cursor` */
  covers(state: StreamState, position: string): boolean;
  /** The source retains nothing for this stream any more. Idempotent. `release` ends the consumer itself. */
  leave(
    ctx: ConnectorContext<Config>,
    reader_id: string,
    table: { namespace: string | null; name: string },
  ): Promise<void>;
}

/** A stream that is written with others, and its warnings. */
export interface ReplicationTarget {
  target: WriteTarget;
  warn(code: string, message: string): void;
}

/**
 * Writes several streams with common commits. Order of calls: ((`write` | `apply`)* (`commit` | `commitUnflushed`)?)* `finish`.
 * `abort` can replace any of them, also after one has failed.
 */
export interface ReplicationWriter {
  /** In the order of the targets. */
  streams: (Pick<Writer, 'committed' | 'held'> & {
    /** Takes changes as lines: writes their cells as they are. */
    accepts_lines?: boolean;
  })[];
  write(stream: number, batch: Batch): Promise<void>;
  /** `write` and `apply` may be called while a `commit` is under way, which takes what came before it. One at a time. */
  writes_while_committing?: boolean;
  /**
   * Inside a transaction of the source: brings rows that have been written into their tables, without a commit, which has
   * less to do then. Absent: the commit does all of it.
   */
  apply?(): Promise<void>;
  /** The next call is `commit`, or `commitUnflushed`: does what it can of it beside the commit that is under way. */
  mergeAhead?(): void;
  /**
   * One transaction of the destination: the rows of all streams since the last commit, and the states of the streams
   * that have rows. Each stream has its own fence. The others keep earlier states, from which nothing is missing.
   * @param all also the states of streams without rows
   * @returns the totals of the streams that were committed
   */
  commit(states: readonly (StreamState | null)[], all?: boolean): Promise<Map<number, WriteCounts>>;
  /**
   * As `commit`, but does not wait for the disk: readers see it, and until the next `commit`, `finish` or opening of a writer a
   * crash of the destination may undo it, together with those after it. Absent: each commit waits.
   */
  commitUnflushed?(states: readonly (StreamState | null)[]): Promise<Map<number, WriteCounts>>;
  /** The final commit, with the states of all streams. */
  finish(states: readonly (StreamState | null)[]): Promise<WriteCounts[]>;
  abort(): Promise<void>;
}

/** Some streams of a replication failed; the others could go on without them. */
export class StreamsFailed extends Error {
  /** @param failures errors by the index of the stream */
  constructor(readonly failures: ReadonlyMap<number, unknown>) {
    super(`${failures.size} streams failed`);
  }
}

/** Runs work that concerns one stream. @throws StreamsFailed */
export async function ofStream<Result>(stream: number, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof StreamsFailed ? error : new StreamsFailed(new Map([[stream, error]]));
  }
}
