import type { ConnectorContext } from '../../contract/connector.ts';
import { RetryableError, TimeoutError } from '../../contract/errors.ts';
import { pause } from './rate-limiter.ts';

/** `skipped`: it has no result. `expired`: the service has given it up. */
export type JobStatus = 'running' | 'completed' | 'skipped' | 'failed' | 'expired';

export interface PolledJob<Polled> {
  status: JobStatus;
  /** As the service names the status. */
  label: string;
  response: Polled;
  /** How long the service asks to wait before the next poll, in ms; null: it does not say. */
  wait_ms: number | null;
}

/** The requests about a job that a service works on for a while. */
interface JobRequests<Created, Polled> {
  create(): Promise<Created>;
  poll(job: Created): Promise<PolledJob<Polled>>;
  /** Ends a job whose result nothing waits for. Absent: the service has no request for it. */
  cancel?: ((job: Created) => Promise<unknown>) | undefined;
}

interface JobWaiting {
  /** Of the stream, for messages. */
  name: string;
  signal: AbortSignal;
  timeout_ms: number;
  /** Between polls; each pause is half as long again as the one before. */
  first_pause_ms: number;
  max_pause_ms: number;
  /** How often a job that expires is created again. */
  recreations: number;
}

/**
 * Creates a job and waits until it is completed. A job that does not end well, or that a stop interrupts, is cancelled.
 * @returns null: it has no result
 * @throws RetryableError `job_failed`, `job_timed_out`; TimeoutError `job_timed_out`; what the requests throw
 */
export async function completedJob<Created, Polled>(
  requests: JobRequests<Created, Polled>,
  waiting: JobWaiting,
): Promise<{ job: Created; response: Polled } | null> {
  for (let left = waiting.recreations; ; left -= 1) {
    const job = await requests.create();
    // The error of the job says more than that of its end.
    const cancel = async () => void (await requests.cancel?.(job).catch(() => {}));
    const ended = await endOf(requests, job, waiting).catch(async (error: unknown) => {
      await cancel();
      throw error;
    });
    if (ended.status === 'completed') return { job, response: ended.response };
    if (ended.status === 'skipped') return null;
    await cancel();
    if (left <= 0) throw expired(waiting.name, ended.label);
  }
}

async function endOf<Created, Polled>(
  requests: JobRequests<Created, Polled>,
  job: Created,
  { name, signal, timeout_ms, first_pause_ms, max_pause_ms }: JobWaiting,
): Promise<PolledJob<Polled>> {
  const until = performance.now() + timeout_ms;
  for (let wait = first_pause_ms; ; wait = Math.min(wait * 1.5, max_pause_ms)) {
    const polled = await requests.poll(job);
    if (polled.status === 'failed')
      throw new RetryableError('job_failed', `${name}: the job of the service ended with the status "${polled.label}"`);
    if (polled.status !== 'running') return polled;
    const left = until - performance.now();
    const next = polled.wait_ms ?? wait;
    if (left <= 0 || next > left) {
      throw new TimeoutError('job_timed_out', `${name}: the job of the service did not end in time`);
    }
    await pause(next, signal);
  }
}

const expired = (name: string, label: string) =>
  new RetryableError('job_timed_out', `${name}: the job of the service ended with the status "${label}"`);

const LAST_REQUEST_MS = 5_000;

/** A context for the requests that end a job: they are sent although the read was stopped, and for 5 s at most. */
export function outlivingContext<Context extends Pick<ConnectorContext<unknown>, 'fetch' | 'signal'>>(
  ctx: Context,
): Context {
  const signal = AbortSignal.timeout(LAST_REQUEST_MS);
  const fetch = (input: string | URL | Request, init?: RequestInit) => ctx.fetch(input, { ...init, keepalive: true });
  return { ...ctx, signal, fetch: Object.assign(fetch, { preconnect: ctx.fetch.preconnect }) };
}
