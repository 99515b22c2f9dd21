import { join } from 'node:path';
import { LimitedProcess, LimitPassed, ProcessDied } from '../../platform/limited-process/limited-process.ts';
import { errorFrom, type ErrorMessage } from '../../platform/limited-process/messages.ts';
import type { Batch, Dataset, Field, ReadRequest, StreamSchema } from '../contract/connector.ts';
import { ConfigurationError, DataError, RetryableError, SchemaChangedError, TimeoutError } from '../contract/errors.ts';
import type { Context } from './database.ts';
import type { QueryAnswer, QueryJob } from './query-job.ts';

const PROGRAM = join(import.meta.dir, 'query-process.ts');
/** The limit for describing a query is the same for all databases. */
const DESCRIBE_MS = 60_000;
/** A read may take as long as a run. */
const READ_MS = 24 * 3_600_000;
/** A query must not exhaust the memory of the machine. */
const MEMORY_MB = 512;

const ERRORS = [ConfigurationError, DataError, RetryableError, SchemaChangedError];

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

/** A stream with its present columns, described in a process of its own. Null: it no longer exists. */
export async function describeStreamApart(ctx: Context, known: StreamSchema): Promise<StreamSchema | null> {
  for await (const answer of apart(ctx, { describe_stream: known })) if ('stream' in answer) return answer.stream;
  throw new Error('the stream was not described');
}

/** The rows of a read, from a process of its own. */
export async function* readApart(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  for await (const answer of apart(ctx, { read: request })) if ('batch' in answer) yield answer.batch;
}

/** Leaving the iteration early, or a stop, ends the process. */
async function* apart(
  ctx: Context,
  work: Pick<QueryJob, 'describe' | 'describe_stream' | 'read'>,
  { limit_ms, late }: { limit_ms: number; late?: TimeoutError } = { limit_ms: READ_MS },
): AsyncGenerator<QueryAnswer> {
  const { filesRoot, config, signal } = ctx;
  signal.throwIfAborted();
  const query = new LimitedProcess<QueryJob, QueryAnswer>(PROGRAM);
  const limits = { ms: limit_ms, cpu_ms: limit_ms, memory_mb: MEMORY_MB };
  try {
    yield* query.run({ ...work, filesRoot, path: config.path }, { limits, signal, calls: { warn: ctx.warn }, errorOf });
  } catch (error) {
    if (error instanceof ProcessDied) {
      throw new RetryableError('query_ended', 'The process that ran the query was ended by the system');
    }
    if (!(error instanceof LimitPassed)) throw error;
    if (error.limit !== 'memory' && late) throw late;
    throw new ConfigurationError('query_too_large', `The query exceeded its memory limit of ${MEMORY_MB} MB`);
  } finally {
    await query.end();
  }
}

const errorOf = (message: ErrorMessage): Error => errorFrom(message, ERRORS);
