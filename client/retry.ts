export type Fetch = (input: Request | URL | string, init?: RequestInit) => Promise<Response>;

/** What came is not of the service: a proxy's page, or somebody else's address. */
export class UnreadableAnswer extends Error {
  override readonly name = 'UnreadableAnswer';
  readonly status: number;
  readonly request_id: string | null;

  constructor({ status, headers }: Response) {
    super(`HTTP ${status} without an answer of the service; is the address right?`);
    this.status = status;
    this.request_id = headers.get('x-request-id');
  }
}

const RETRIED = new Set([429, 502, 503, 504]);
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 250;
/** Who is told to wait longer than this hears of it instead. */
const LONGEST_PAUSE_MS = 30_000;

/**
 * Sends again what got no answer, or 429, 502, 503 or 504: four times in all, with growing pauses or the one that
 * `Retry-After` asks for. Safe for reads, and for changes that carry an Idempotency-Key, as every attempt is the same.
 * @throws UnreadableAnswer for what is no JSON.
 */
export function retryingFetch(fetch: Fetch): Fetch {
  return async (input, init) => {
    for (let attempt = 1; ; attempt++) {
      const outcome = await fetch(input, init).catch((error: unknown) => ({ error }));
      const failed = 'error' in outcome;
      const last = attempt === ATTEMPTS || init?.signal?.aborted === true;
      if (failed && last) throw outcome.error;
      if (!failed && (last || !RETRIED.has(outcome.status))) return readable(outcome);
      const asked = failed ? null : retryAfterMs(outcome.headers.get('retry-after'));
      const pause = asked ?? FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random());
      if (!failed && pause > LONGEST_PAUSE_MS) return readable(outcome);
      // The connection is free for the next attempt only when the body is done with.
      if (!failed) await outcome.body?.cancel();
      await waited(pause, init?.signal);
    }
  };
}

function readable(answer: Response): Response {
  if (answer.headers.get('content-type')?.startsWith('application/json')) return answer;
  throw new UnreadableAnswer(answer);
}

/** Seconds, or a date; null for nothing that can be read. */
function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

/** @throws what the signal was aborted with. */
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
