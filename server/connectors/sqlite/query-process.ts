import { periodic } from '../../platform/periodic.ts';
import { ConnectorError } from '../contract/errors.ts';
import { type Context, withSnapshot } from './database.ts';
import { datasetFields } from './datasets.ts';
import { type QueryAnswer, type QueryJob, TOOK_TOO_MUCH } from './query-job.ts';
import { readRows } from './read.ts';

/** A query must not exhaust the memory of the machine. */
const MAX_MEMORY_BYTES = 512 * 1024 * 1024;
const CHECK_MS = 50;

async function* answers(job: QueryJob): AsyncGenerator<QueryAnswer> {
  const warnings: QueryAnswer[] = [];
  const ctx = {
    config: { path: job.path },
    filesRoot: job.filesRoot,
    signal: new AbortController().signal,
    warn: (code: string, message: string) => void warnings.push({ warning: [code, message] }),
  } as unknown as Context;
  try {
    const { describe, read } = job;
    if (describe) {
      const fields = withSnapshot(ctx, async function* (database) {
        yield await datasetFields(ctx, database, describe);
      });
      for await (const found of fields) yield { fields: found };
    }
    if (read) for await (const batch of readRows(ctx, read)) yield { batch };
    yield* warnings;
    yield { done: true };
  } catch (error) {
    const { name, message } = error as Error;
    yield { error: { name, code: error instanceof ConnectorError ? error.code : 'query_failed', message } };
  }
}

async function run(job: QueryJob): Promise<void> {
  const output = Bun.stdout.writer();
  for await (const answer of answers(job)) {
    void output.write(`${JSON.stringify(answer)}\n`);
    // Waits until the reader has taken it.
    await output.flush();
  }
}

/** Runs in a thread of its own, which the query does not block. */
async function watch(): Promise<void> {
  const check = async () => {
    if (process.memoryUsage.rss() > MAX_MEMORY_BYTES) process.kill(process.pid, TOOK_TOO_MUCH);
  };
  periodic(check, { every_ms: CHECK_MS, jitter: 0, onError: () => {} });
  let text = '';
  const decoder = new TextDecoder();
  for await (const piece of Bun.stdin.stream()) {
    text += decoder.decode(piece, { stream: true });
    if (!text.endsWith('\n')) continue;
    postMessage(text);
    text = '';
  }
  process.kill(process.pid, 'SIGKILL');
}

if (import.meta.main) {
  const watching = new Worker(import.meta.path);
  watching.addEventListener('message', ({ data }: MessageEvent<string>) => void run(JSON.parse(data) as QueryJob));
} else if (!Bun.isMainThread) void watch();
