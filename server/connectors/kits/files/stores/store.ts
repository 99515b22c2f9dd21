import type { Writable } from 'node:stream';
import type { ChangedValues } from '../../../cells/value-gate.ts';
import type { StreamState, WriteCounts, WriteTarget } from '../../../contract/connector.ts';
import type { DestinationContext, FileSourceConfig, SourceContext } from '../settings/files.ts';
import type { CheckStep } from './check-steps.ts';

/*
 * What a store is: a kind of place that holds files, such as a folder, a bucket or a web server. Sources need a
 * SourceStore, destinations a DestinationStore. `kits/files/stores.ts` lists both by the value of `location`.
 */

/** A place that files are read from. */
export interface SourceStore {
  /** What a connection test does before it lists the files. */
  checkSteps?(ctx: SourceContext): CheckStep[];
  /**
   * Lists the files that the settings name, in a stable order. An empty list means that nothing matches.
   * @throws ConnectorError if the place cannot be reached or read
   */
  find(ctx: SourceContext): Promise<FoundFile[]>;
  /** The name of all these files together, as shown to users: `exports/orders-*.csv`. Contains no secret. */
  placeName(config: FileSourceConfig): string;
}

/** A file that a source can read. */
export interface FoundFile {
  /** Path below the root (with `/`), object key or address. Shown to users and kept in states. */
  name: string;
  /** Absolute path on this machine; empty if the file is remote. */
  path: string;
  /** Size in bytes; -1 if the server does not report it. */
  size: number;
  /** Time of the last change in microseconds since 1970; `UNKNOWN_TIME` if the server does not report it. */
  modified: number;
  /** Changes with the content, in a store that has such tags. */
  tag?: string;
  /** Reads the content of a remote file. Absent for a file on this machine. */
  remote?: RemoteContent;
}

/** `FoundFile.modified` of a file whose server does not report when it changed. */
export const UNKNOWN_TIME = 0;

/** How a remote file is read. Every error is a ConnectorError; a file that was replaced meanwhile is `file_changed`. */
export interface RemoteContent {
  /** Whether `part` works. */
  readonly has_ranges: boolean;
  /**
   * Opens the whole file. `gzip`: the transfer is compressed in addition to what the file name says. `bytes` yields the
   * content in order and closes the connection when the loop is left.
   */
  open(): Promise<{ gzip: boolean; bytes: AsyncIterable<Uint8Array> }>;
  /** Reads exactly `length` bytes that start at offset `from`. */
  part(range: { from: number; length: number }): Promise<Buffer>;
}

/** A place that files are written to. */
export interface DestinationStore {
  /** The connection test: does in small what a run does. */
  checkSteps(ctx: DestinationContext): CheckStep[];
  /**
   * Opens the files of one table.
   * @throws FencedError if a newer attempt has claimed the stream
   */
  open(ctx: DestinationContext, target: WriteTarget): Promise<TableStore>;
}

/**
 * The files of one table and the commit log of one stream into it. A commit is one atomic step (`append`); `apply` then
 * makes its files visible and can be repeated after a crash.
 */
export interface TableStore {
  /** The last commit that counts; null before the first. */
  readonly last: CommitRecord | null;
  /** @param to the file name that the draft gets in the table once it is published */
  draft(to: string): Promise<Draft>;
  /** Names of the files that readers of the table see. */
  files(): Promise<string[]>;
  /** Commits. @throws FencedError if another attempt has committed or claimed the stream since */
  append(record: CommitRecord): Promise<void>;
  /** Publishes and removes what the last commit lists. Idempotent. */
  apply(): Promise<void>;
  /** @throws FencedError if another attempt has committed or claimed the stream since */
  assertNewest(): Promise<void>;
  /** Removes what earlier attempts left uncommitted. */
  sweep(): Promise<void>;
}

/** A file that is being written and that no reader of the table sees. */
export interface Draft {
  /** Takes the bytes in order. */
  stream: Writable;
  /** A path of this machine that the bytes can be written to instead of `stream`; null if only `stream` works. */
  path: string | null;
  /** Path of a folder of this machine for intermediate data. It does not exist yet; its creator removes it. */
  scratch: string;
  /** After `stream` has finished: makes the bytes durable. @returns their number */
  keep(): Promise<number>;
  /** Leaves nothing behind. */
  discard(): Promise<void>;
  /** The entry of `CommitRecord.publish` that makes the file visible; valid after `keep`. */
  published(): CommitRecord['publish'][number];
}

/** One commit. The last one is the state of the stream. File names are relative to the table. */
export interface CommitRecord {
  fence: number;
  stream_run_id: string;
  state: StreamState | null;
  state_version: number;
  finished: boolean;
  counts: WriteCounts;
  /** Of this stream run. Absent: none. */
  changed?: ChangedValues;
  /** Number of files that this stream run has published. */
  files: number;
  /** Drafts that the commit publishes: a rename, or the completion of an upload with the tags of its `parts`. */
  publish: { from: string; to: string; parts?: string[] }[];
  /** Files that the commit replaces. Removed after the drafts are published. */
  remove: string[];
}
