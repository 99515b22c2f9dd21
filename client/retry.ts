import { NetworkError } from './network-error.ts';

export type Fetch = (input: Request | URL | string, init?: RequestInit) => Promise<Response>;

/** The response is not the service's: a proxy's error page, or another server at that URL. */
export class UnreadableAnswer extends Error {
  override readonly name = 'UnreadableAnswer';
  readonly status: number;
  readonly request_id: string | null;

  constructor({ status, headers }: Response) {
    super(`HTTP ${status}: the response is not from the service. Check the URL.`);
    this.status = status;
    this.request_id = headers.get('x-request-id');
  }
}

const RETRIED = new Set([429, 502, 503, 504]);
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 250;
/** A longer Retry-After is returned to the caller instead of being waited for. */
const MAX_PAUSE_MS = 30_000;

/**
 * Retries requests that got no response, or 429, 502, 503 or 504: up to four attempts with growing pauses, or after
 * `Retry-After`. Safe for reads, and for changes that carry an Idempotency-Key, because every attempt sends the same.
 * @throws UnreadableAnswer if the response is not JSON, NetworkError without a response.
 */
export function retryingFetch(fetch: Fetch): Fetch {
  return async (input, init) => {
    for (let attempt = 1; ; attempt++) {
      const outcome = await fetch(input, init).catch((error: unknown) => ({ error }));
      const failed = 'error' in outcome;
      const last = attempt === ATTEMPTS || init?.signal?.aborted === true;
      if (failed && last)
        throw init?.signal?.aborted === true ? outcome.error : new NetworkError(addressOf(input), outcome.error);
      if (!failed && (last || !RETRIED.has(outcome.status))) return readable(outcome);
      const asked = failed ? null : retryAfterMs(outcome.headers.get('retry-after'));
      const pause = asked ?? FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random());
      if (!failed && pause > MAX_PAUSE_MS) return readable(outcome);
      // The connection is reused only after its body is consumed or cancelled.
      if (!failed) await outcome.body?.cancel();
      await waited(pause, init?.signal);
    }
  };
}

const addressOf = (input: Request | URL | string): string => (input instanceof Request ? input.url : String(input));

function readable(answer: Response): Response {
  if (answer.headers.get('content-type')?.startsWith('application/json')) return answer;
  throw new UnreadableAnswer(answer);
}

/** Parses seconds or a date; null if neither. */
function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

/** @throws the signal's reason when it is aborted. */
function waited(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
