import type { Recorder, ResponseRecord } from '../connectors/contract/connector.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import { guardedFetch } from '../platform/net/guarded-fetch.ts';
import { activeSpan, type Span } from '../platform/tracing/span.ts';
import { EgressError, type EgressRules } from '../platform/net/egress-rules.ts';
import { MAX_RECORDED_BYTES } from './network-log/logged-body.ts';

const LAST_REQUEST_MS = 10_000;

/**
 * A fetch that records every request, aborts with `signal` and reaches only addresses that the egress rules allow.
 * `reach` is awaited with the host; `beforeSend` throws when no request may be sent any more.
 */
export function recordingFetch(
  recorder: Recorder,
  signal: AbortSignal,
  { reach, beforeSend, ...rules }: EgressRules & { reach?(host: string): Promise<void>; beforeSend?(): void },
): typeof globalThis.fetch {
  const guarded = guardedFetch(rules, { keepAlive: true });
  // Streams call from outside of the work that opened the connector.
  const opener = activeSpan();
  const recorded = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const request = input instanceof Request ? new Request(input, init) : new Request(String(input), init);
    const url = new URL(request.url);
    await reach?.(url.host);
    beforeSend?.();
    const body = typeof init.body === 'string' ? init.body : null;
    const span = requestSpan(activeSpan() ?? opener, request, url);
    if (span?.propagates) request.headers.set('traceparent', span.traceparent);
    const pending = recorder.start({
      method: request.method,
      url: `${url.origin}${url.pathname}`,
      query: Object.fromEntries(url.searchParams),
      headers: Object.fromEntries(request.headers),
      body,
    });
    const start = performance.now();
    try {
      // As in browsers, `keepalive` is for a request that outlives what sent it, such as the end of a job after a stop.
      const own = init.keepalive ? [AbortSignal.timeout(LAST_REQUEST_MS)] : [signal];
      const response = await guarded(request, {
        signal: AbortSignal.any(init.signal ? [...own, init.signal] : own),
      });
      span?.set({ 'http.response.status_code': response.status });
      return watchBody(response, (received) => {
        span?.end();
        pending.done(
          { status: response.status, headers: Object.fromEntries(response.headers), ...received },
          { wait: Math.round(performance.now() - start) },
        );
      });
    } catch (error) {
      span?.fail(error);
      span?.end();
      pending.failed('request_failed', error instanceof Error ? error.message : String(error));
      throw error instanceof EgressError ? new ConfigurationError(error.code, error.message) : error;
    }
  };
  return Object.assign(recorded, { preconnect: fetch.preconnect });
}

/** Without path and query, which can hold values of users. */
const requestSpan = (parent: Span | null, { method }: Request, { protocol, hostname, port }: URL) =>
  parent?.child(method, {
    kind: 'client',
    attributes: {
      'http.request.method': method,
      'url.scheme': protocol.slice(0, -1),
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
    },
  }) ?? null;

/** Passes the body through. At its end, or when the reader cancels, reports its size and its beginning. */
function watchBody(
  response: Response,
  report: (received: Omit<ResponseRecord, 'status' | 'headers'>) => void,
): Response {
  if (!response.body) {
    report({ body: null, body_bytes: 0 });
    return response;
  }
  const reader = response.body.getReader();
  const head: Uint8Array[] = [];
  let bytes = 0;
  let reported = false;
  const finish = () => {
    if (reported) return;
    reported = true;
    const text = Buffer.concat(head).subarray(0, MAX_RECORDED_BYTES).toString('utf8');
    report({ body: text, body_bytes: bytes, is_incomplete: bytes > MAX_RECORDED_BYTES });
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) {
        finish();
        controller.close();
        return;
      }
      if (bytes < MAX_RECORDED_BYTES) head.push(value);
      bytes += value.length;
      controller.enqueue(value);
    },
    async cancel(reason) {
      finish();
      await reader.cancel(reason);
    },
  });
  const { status, statusText, headers } = response;
  const watched = new Response(body, { status, statusText, headers });
  Object.defineProperty(watched, 'url', { value: response.url });
  return watched;
}
