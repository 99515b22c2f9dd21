import type { Writable } from 'node:stream';
import type { CommitRecord } from './commit-log.ts';

/** A file being written, that no reader of the table sees. */
export interface Draft {
  /** Takes the bytes in order. */
  stream: Writable;
  /** Where the bytes may be written to instead; null: only by `stream`. */
  path: string | null;
  /** A folder of this machine for what is in between, which need not be there; whoever makes it removes it. */
  scratch: string;
  /** After `stream` has finished: makes the bytes durable. @returns their number */
  keep(): Promise<number>;
  /** Leaves nothing behind. */
  discard(): Promise<void>;
  /** What publishes it; after `keep`. */
  published(): CommitRecord['publish'][number];
}

/** Where the files of one table lie and the commits of one stream into it: a folder, or a bucket. */
export interface TableStore {
  /** The last commit that counts. */
  readonly last: CommitRecord | null;
  /** @param to the name that it is to have in the table */
  draft(to: string): Promise<Draft>;
  /** Names of what readers see in the table. */
  files(): Promise<string[]>;
  /** The commit itself. @throws FencedError when another attempt has committed, or claimed the stream, since */
  append(record: CommitRecord): Promise<void>;
  /** Makes the last commit visible: what it publishes and what it removes. May be done twice. */
  apply(): Promise<void>;
  /** @throws FencedError */
  assertNewest(): Promise<void>;
  /** Removes what earlier attempts left without a commit. */
  sweep(): Promise<void>;
}
