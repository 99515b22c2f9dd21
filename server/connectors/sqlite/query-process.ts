import { type ParentCalls, serveJobs } from '../../platform/limited-process/child.ts';
import { type Context, withSnapshot } from './database.ts';
import { datasetFields } from './datasets.ts';
import type { QueryAnswer, QueryJob } from './query-job.ts';
import { readRows } from './read.ts';

async function* answers(job: QueryJob, parent: ParentCalls): AsyncGenerator<QueryAnswer> {
  const ctx = {
    config: { path: job.path },
    filesRoot: job.filesRoot,
    signal: new AbortController().signal,
    warn: (code: string, message: string) => parent.note('warn', code, message),
  } as unknown as Context;
  const { describe, read } = job;
  if (describe) {
    const fields = withSnapshot(ctx, async function* (database) {
      yield await datasetFields(ctx, database, describe);
    });
    for await (const found of fields) yield { fields: found };
  }
  if (read) for await (const batch of readRows(ctx, read)) yield { batch };
}

serveJobs(import.meta.path, answers);
