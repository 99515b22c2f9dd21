import type { Batch, Dataset, Field, ReadRequest } from '../contract/connector.ts';

/**
 * What `query-subprocess.ts` asks `query-process.ts` to do with one query of a user. SQLite runs in the calling thread,
 * cannot be interrupted there, and a query may never end.
 */
export interface QueryJob {
  filesRoot: string;
  path: string;
  describe?: Dataset;
  read?: ReadRequest;
}

export type QueryAnswer = { fields: Field[] } | { batch: Batch };
