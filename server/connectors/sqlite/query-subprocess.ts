import { join } from 'node:path';
import type { Batch, Dataset, Field, ReadRequest } from '../contract/connector.ts';
import { ConfigurationError, DataError, RetryableError, SchemaChangedError, TimeoutError } from '../contract/errors.ts';
import type { Context } from './database.ts';
import { type QueryAnswer, type QueryJob, TOOK_TOO_MUCH } from './query-job.ts';

/** The limit for describing a query is the same for all databases. */
const DESCRIBE_MS = 60_000;

const ERRORS = { ConfigurationError, DataError, RetryableError, SchemaChangedError };

/** The fields of a query, determined in a process of its own. @throws ConfigurationError, TimeoutError naming the dataset */
export async function describeApart(ctx: Context, dataset: Dataset, limit_ms = DESCRIBE_MS): Promise<Field[]> {
  const late = new TimeoutError(
    'query_timeout',
    `Dataset "${dataset.name}" took more than ${limit_ms / 1000} s. All rows of a query are read to determine their types`,
  );
  for await (const answer of apart(ctx, { describe: dataset }, { limit_ms, late })) {
    if ('fields' in answer) return answer.fields;
  }
  throw new Error('the query was not described');
}

/** The rows of a query, read in a process of its own. */
export async function* readApart(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  for await (const answer of apart(ctx, { read: request })) if ('batch' in answer) yield answer.batch;
}

/** Leaving the iteration early, or a stop, ends the process. */
async function* apart(
  ctx: Context,
  job: Pick<QueryJob, 'describe' | 'read'>,
  limit?: { limit_ms: number; late: TimeoutError },
): AsyncGenerator<QueryAnswer> {
  ctx.signal.throwIfAborted();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'query-process.ts')], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
    env: { TZ: 'UTC' },
  });
  let isLate = false;
  const end = () => child.kill('SIGKILL');
  const timer = limit && setTimeout(() => ((isLate = true), end()), limit.limit_ms);
  ctx.signal.addEventListener('abort', end, { once: true });
  try {
    const { filesRoot, config } = ctx;
    void child.stdin.write(`${JSON.stringify({ ...job, filesRoot, path: config.path } satisfies QueryJob)}\n`);
    await child.stdin.flush();
    for await (const line of linesOf(child.stdout)) {
      const answer = JSON.parse(line) as QueryAnswer;
      if ('done' in answer) return;
      if ('error' in answer) throw errorOf(answer.error);
      if ('warning' in answer) ctx.warn(...answer.warning);
      else yield answer;
    }
    ctx.signal.throwIfAborted();
    if (limit && isLate) throw limit.late;
    if ((await child.exited, child.signalCode) === TOOK_TOO_MUCH) {
      throw new ConfigurationError('query_too_large', 'The query exceeded its memory limit of 512 MB');
    }
    throw new RetryableError('query_ended', 'The process that ran the query was ended by the system');
  } finally {
    clearTimeout(timer);
    ctx.signal.removeEventListener('abort', end);
    end();
    await child.exited;
  }
}

function errorOf({ name, code, message }: Extract<QueryAnswer, { error: object }>['error']): Error {
  const known = ERRORS[name as keyof typeof ERRORS];
  return known ? new known(code, message) : new Error(message);
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
