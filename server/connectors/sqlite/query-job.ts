import type { Batch, Dataset, Field, ReadRequest, StreamSchema } from '../contract/connector.ts';

/**
 * What `query-subprocess.ts` asks `query-process.ts` to do with a query of a user, a view, or rows that have to be sorted
 * or searched. SQLite runs in the calling thread, cannot be interrupted there, and a step of it may never end.
 */
export interface QueryJob {
  filesRoot: string;
  path: string;
  describe?: Dataset;
  describe_stream?: StreamSchema;
  read?: ReadRequest;
}

export type QueryAnswer = { fields: Field[] } | { stream: StreamSchema | null } | { batch: Batch };
