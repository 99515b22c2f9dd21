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

const TRIES = 3;
const BASE_SECONDS = 0.2;

/** One request through the recorded and guarded fetch, up to the answer's head. @throws ConnectorError, or the signal's reason */
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

/** Does it again where that may help, a moment later each time: only for what may be done twice. */
export async function repeated<Result>(ctx: NetworkContext, work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const passes = error instanceof ConnectorError && PASSING.has(error.code);
      if (!passes || attempt >= TRIES) throw error;
      await pause(backoff(attempt, BASE_SECONDS), ctx.signal);
    }
  }
}

const PASSING = new Set(['connection_failed', 'server_error']);
/** What of an answer may be read whole: errors and listings. */
const TEXT_LIMIT = 16 << 20;

/** The text of an answer that is no file. */
export async function textOf(ctx: NetworkContext, answer: Response, timeout_seconds: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of bodyChunks(ctx, answer, timeout_seconds)) {
    bytes += chunk.length;
    if (bytes > TEXT_LIMIT) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The bytes of an answer as they come; leaving the loop closes the connection. @throws TimeoutError when it stalls */
export async function* bodyChunks(
  ctx: NetworkContext,
  answer: Response,
  timeout_seconds: number,
): AsyncGenerator<Uint8Array> {
  if (!answer.body) return;
  const host = URL.parse(answer.url)?.host || 'The server';
  const reader = answer.body.getReader();
  let give: (reason: unknown) => void = () => {};
  const broken = new Promise<never>((_, reject) => {
    give = reject;
  });
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
    // A connection that hangs does not answer to its end either.
    reader.cancel().catch(() => {});
  }
}
