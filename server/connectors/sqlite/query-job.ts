import type { Batch, Dataset, Field, ReadRequest } from '../contract/connector.ts';

/**
 * What `apart.ts` has a process of its own do with one query of a user's (`query-process.ts`): SQLite works in the thread
 * that calls it and cannot be interrupted there, and a query may take for ever. The job is a line on the process's
 * standard input, and its answers are lines on standard output. It ends with standard input, however busy it is.
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

/** The signal by which a process ends that took more memory than a query may. */
export const TOOK_TOO_MUCH = 'SIGTERM';
