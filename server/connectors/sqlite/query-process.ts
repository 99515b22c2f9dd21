import { type ParentCalls, serveJobs } from '../../platform/limited-process/child.ts';
import { describeStream } from './catalog.ts';
import { type Context, once } from './database.ts';
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
  const { describe, describe_stream, read } = job;
  if (describe) yield { fields: await once(ctx, (database) => datasetFields(ctx, database, describe)) };
  if (describe_stream) yield { stream: await once(ctx, (database) => describeStream(ctx, database, describe_stream)) };
  if (read) for await (const batch of readRows(ctx, read)) yield { batch };
}

serveJobs(answers);
