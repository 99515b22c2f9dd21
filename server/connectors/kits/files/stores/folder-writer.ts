import type { Writable } from 'node:stream';

/** A file that is being written. */
export interface NewFile {
  /** Takes the bytes in order. */
  stream: Writable;
  /** As in `Draft`. */
  path: string | null;
  scratch: string;
  /** After `stream` has finished: makes the bytes durable. @returns their number */
  keep(): Promise<number>;
  /** Removes the file. */
  discard(): Promise<void>;
}

/**
 * What a place with folders needs for tables of files. Paths have `/`. Errors are ConnectorErrors, or those of the file
 * system, which `fileError` explains.
 */
export interface FolderWriter {
  /** The names in a folder. A listing contains every name given before it. */
  names(folder: string): Promise<string[]>;
  /** The text of a file; null if there is none. */
  read(path: string): Promise<string | null>;
  /** Writes a file, in place of one that has the name, and makes its content durable. */
  write(path: string, text: string): Promise<void>;
  /** Renames a file in one step, unless another file has the name. @returns whether none had it */
  claimName(from: string, to: string): Promise<boolean>;
  /** Renames a file in one step, in place of a file that has the name. Does nothing if there is no `from`. */
  replace(from: string, to: string): Promise<void>;
  /** Removes a file. Does nothing if there is none. */
  remove(path: string): Promise<void>;
  /** Removes an unfinished file, or the folder of its intermediate data. */
  discard(path: string): Promise<void>;
  /** Makes the names in a folder durable, where that takes a step of its own. */
  sync(folder: string): Promise<void>;
  /** Starts a file that does not exist yet. */
  create(path: string): Promise<NewFile>;
}
