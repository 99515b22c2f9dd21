import { join } from 'node:path';
import {
  ConfigurationError,
  CONNECTOR_ERRORS,
  RateLimitedError,
  RetryableError,
  TimeoutError,
} from '../connectors/contract/errors.ts';
import { type JobOptions, LimitPassed, ProcessDied } from '../platform/limited-process/limited-process.ts';
import { errorFrom, type ErrorMessage } from '../platform/limited-process/messages.ts';
import { PoolBusy, ProcessPool } from '../platform/limited-process/process-pool.ts';
import type { ConnectorItem, ConnectorJob } from './connector-job.ts';
import { HostKeyChangedError } from './ssh-tunnel.ts';

const MEMORY_MB = 1024;
const ERRORS = [HostKeyChangedError, ...CONNECTOR_ERRORS];

const pool = new ProcessPool<ConnectorJob, ConnectorItem>(join(import.meta.dir, 'connector-process.ts'), {
  size: 4,
  size_per_owner: 3,
});

export interface JobTime {
  ms: number;
  cpu_ms: number;
}

/** Absent: the items are collected. */
export interface ItemHandler {
  onItem?: ((item: ConnectorItem) => void) | undefined;
}

/** Runs a job in one of the connector processes. @throws ConnectorError, what a connector throws or for a passed limit */
export async function runConnectorJob(
  job: ConnectorJob,
  { ms, cpu_ms, owner, calls, onItem }: JobTime & Pick<JobOptions, 'calls'> & ItemHandler & { owner: string },
): Promise<ConnectorItem[]> {
  const items: ConnectorItem[] = [];
  try {
    const running = { owner, limits: { ms, cpu_ms, memory_mb: MEMORY_MB }, calls, errorOf };
    const take = onItem ?? ((item: ConnectorItem) => void items.push(item));
    for await (const item of pool.run(job, running)) take(item);
    return items;
  } catch (error) {
    throw limitError(error, { ms, cpu_ms });
  }
}

function errorOf(message: ErrorMessage): Error {
  const error = errorFrom(message, ERRORS);
  if (error instanceof RateLimitedError) Object.assign(error, { until: new Date(error.until) });
  return error;
}

function limitError(error: unknown, { ms, cpu_ms }: JobTime): unknown {
  if (error instanceof PoolBusy) {
    return new RetryableError('service_busy', 'Too many tests and discoveries are running. Try again in a moment');
  }
  if (error instanceof ProcessDied) {
    return new RetryableError('process_ended', 'The process of the connector ended unexpectedly. Try again', {
      cause: error,
    });
  }
  if (!(error instanceof LimitPassed)) return error;
  if (error.limit === 'time') return new TimeoutError('check_timeout', `No response within ${ms / 1000} s`);
  const [what, advice] =
    error.limit === 'cpu'
      ? [`${cpu_ms / 1000} s of processor time`, 'Simplify its queries and templates']
      : [`${MEMORY_MB} MB of memory`, 'Let its queries and requests return less at once'];
  return new ConfigurationError(`${error.limit}_limit_exceeded`, `The connector used more than ${what}. ${advice}`);
}
