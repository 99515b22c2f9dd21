import type { ConnectorContext } from '../../../contract/connector.ts';
import { ConnectorError } from '../../../contract/errors.ts';
import { networkError, timeoutError } from '../../rest/failures.ts';
import { pause } from '../../rest/rate-limiter.ts';
import { backoff } from '../../rest/retry-after.ts';

export type NetworkContext = Pick<ConnectorContext<unknown>, 'fetch' | 'signal'>;

export interface RemoteCall {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body?: Uint8Array<ArrayBuffer> | string;
}

const MAX_TRIES = 3;
const BASE_SECONDS = 0.2;

/**
 * Sends one request and returns once the response headers are there.
 * @throws ConnectorError, or the reason of `ctx.signal`
 */
export async function request(ctx: NetworkContext, call: RemoteCall, timeout_seconds: number): Promise<Response> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeout_seconds * 1000);
  const { method, headers, body } = call;
  const signal = AbortSignal.any([ctx.signal, late.signal]);
  try {
    return await ctx.fetch(call.url.href, {
      method,
      headers,
      signal,
      redirect: 'manual',
      ...(body !== undefined && { body }),
    });
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw late.signal.aborted ? timeoutError(call.url.host, timeout_seconds) : networkError(error, call.url.host);
  } finally {
    clearTimeout(timer);
  }
}

/** Repeats `work` after connection failures and server errors, with a growing pause. Only for idempotent work. */
export async function repeated<Result>(ctx: NetworkContext, work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const isTransient = error instanceof ConnectorError && TRANSIENT.has(error.code);
      if (!isTransient || attempt >= MAX_TRIES) throw error;
      await pause(backoff(attempt, BASE_SECONDS), ctx.signal);
    }
  }
}

const TRANSIENT = new Set(['connection_failed', 'server_error']);
const MAX_TEXT_BYTES = 16 << 20;

/** The text of a response that is an error or a listing; cut off at 16 MB. */
export async function textOf(ctx: NetworkContext, answer: Response, timeout_seconds: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of bodyChunks(ctx, answer, timeout_seconds)) {
    bytes += chunk.length;
    if (bytes > MAX_TEXT_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The bytes of a response as they arrive. Leaving the loop closes the connection. @throws TimeoutError if it stalls */
export async function* bodyChunks(
  ctx: NetworkContext,
  answer: Response,
  timeout_seconds: number,
): AsyncGenerator<Uint8Array> {
  if (!answer.body) return;
  const host = URL.parse(answer.url)?.host || 'The server';
  const reader = answer.body.getReader();
  const { promise: broken, reject: give } = Promise.withResolvers<never>();
  broken.catch(() => {});
  const stop = () => give(ctx.signal.reason);
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    while (true) {
      ctx.signal.throwIfAborted();
      const timer = setTimeout(() => give(timeoutError(host, timeout_seconds)), timeout_seconds * 1000);
      try {
        const { done, value } = await Promise.race([reader.read(), broken]);
        if (done) return;
        yield value;
      } finally {
        clearTimeout(timer);
      }
    }
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw networkError(error, host);
  } finally {
    ctx.signal.removeEventListener('abort', stop);
    // Not awaited: a connection that hangs does not confirm its end either.
    reader.cancel().catch(() => {});
  }
}
