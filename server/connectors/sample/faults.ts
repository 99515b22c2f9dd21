import { appendFile, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { ConnectorContext } from '../contract/connector.ts';
import {
  AuthenticationError,
  ConfigurationError,
  DataError,
  RateLimitedError,
  RetryableError,
  SchemaChangedError,
  TimeoutError,
} from '../contract/errors.ts';

export const FAULTS = [
  'retryable',
  'timeout',
  'auth',
  'config',
  'data',
  'schema_changed',
  'rate_limit',
  'unknown',
  'stall',
  'hang',
  'block',
  'die',
] as const;
export type Fault = (typeof FAULTS)[number];

const group = 'advanced' as const;

/** The settings that source and destination share. */
export const faultSettings = {
  fault: z.enum(FAULTS).optional().meta({
    label: 'Fault',
    directs_secrets: false,
    description:
      'What goes wrong. stall waits until it is aborted, hang ignores the abort as well, block occupies the process, die ends it',
    group,
  }),
  faulty_attempts: z.int().min(1).optional().meta({
    label: 'Faulty attempts',
    directs_secrets: false,
    description: 'Number of attempts of each stream that fail. Default: all',
    group,
  }),
  counter: z
    .string()
    .regex(/^[a-z0-9_-]{1,64}$/)
    .default('default')
    .meta({
      label: 'Counter',
      directs_secrets: false,
      description: 'Name under which attempts are counted across processes',
      group,
    }),
  rate_limit_ms: z.int().min(0).default(1000).meta({ label: 'Rate limit (ms)', directs_secrets: false, group }),
  batch_delay_ms: z.int().min(0).default(0).meta({ label: 'Delay per batch (ms)', directs_secrets: false, group }),
  check: z
    .enum(['passes', 'fails', 'stalls', 'throws'])
    .default('passes')
    .meta({ label: 'Check', directs_secrets: false, description: 'Result of the connection test', group }),
  token: z.string().optional().meta({ label: 'Token', secret: true, group: 'authentication' }),
};
export type FaultConfig = z.infer<z.ZodObject<typeof faultSettings>>;
type Context = ConnectorContext<FaultConfig>;

/** Counts this attempt at `what` in a file, so that all processes share the count. @returns whether it should fail */
export async function beginAttempt(ctx: Context, what: string): Promise<boolean> {
  const { fault, faulty_attempts, counter } = ctx.config;
  if (fault === undefined) return false;
  const folder = join(ctx.filesRoot, '.sample', counter);
  const file = join(folder, what.replaceAll(/\W/g, '_'));
  await mkdir(folder, { recursive: true });
  await appendFile(file, '.');
  return faulty_attempts === undefined || (await stat(file)).size <= faulty_attempts;
}

/** Fails as `fault` says; returns only if no fault is set. */
export async function misbehave(ctx: Context): Promise<void> {
  const { fault, rate_limit_ms } = ctx.config;
  const message = 'The sample connector fails as configured';
  switch (fault) {
    case undefined:
      return;
    case 'retryable':
      throw new RetryableError('sample_retryable', message);
    case 'timeout':
      throw new TimeoutError('sample_timeout', message);
    case 'auth':
      throw new AuthenticationError('sample_auth', message);
    case 'config':
      throw new ConfigurationError('sample_config', message);
    case 'data':
      throw new DataError('sample_data', message);
    case 'schema_changed':
      throw new SchemaChangedError('sample_schema_changed', message);
    case 'rate_limit': {
      const until = new Date(ctx.now().getTime() + rate_limit_ms);
      ctx.rateLimited(until);
      throw new RateLimitedError(until, message);
    }
    case 'unknown':
      throw new TypeError(message);
    case 'stall':
      return stall(ctx.signal);
    case 'hang':
      return new Promise(() => {});
    case 'block':
      for (const forever = new Int32Array(new SharedArrayBuffer(4)); ; ) Atomics.wait(forever, 0, 0);
    case 'die':
      process.kill(process.pid, 'SIGKILL');
  }
}

/** Waits until the signal is aborted, and rejects with its reason. */
export const stall = (signal: AbortSignal): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>();
  if (signal.aborted) reject(signal.reason);
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  return promise;
};

export async function delayBatch(ctx: Context): Promise<void> {
  if (ctx.config.batch_delay_ms > 0) await sleep(ctx.config.batch_delay_ms, undefined, { signal: ctx.signal });
}

/** The connection test of source and destination. */
export async function checkSample(ctx: Context) {
  const { check } = ctx.config;
  if (check === 'throws') throw new AuthenticationError('sample_check', 'The sample connector refuses as configured');
  if (check === 'stalls') await stall(ctx.signal);
  const status = check === 'passes' ? ('passed' as const) : ('failed' as const);
  return { checks: [{ title: 'Sample', status, message: status === 'passed' ? null : 'Fails as configured' }] };
}
