import type { Batch, Dataset, Field, ReadRequest } from '../contract/connector.ts';

/**
 * What `query-subprocess.ts` asks `query-process.ts` to do with one query of a user. SQLite runs in the calling thread,
 * cannot be interrupted there, and a query may never end. The job is a line on the process's standard input, its answers
 * are lines on standard output. The process ends when standard input closes, however busy it is.
 */
export interface QueryJob {
  filesRoot: string;
  path: string;
  describe?: Dataset;
  read?: ReadRequest;
}

export type QueryAnswer =
  | { fields: Field[] }
  | { batch: Batch }
  | { warning: [code: string, message: string] }
  | { error: { name: string; code: string; message: string } }
  | { done: true };

/** The signal that ends a process which exceeds the memory limit of a query. */
export const TOOK_TOO_MUCH = 'SIGTERM';
