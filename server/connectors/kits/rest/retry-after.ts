const LARGEST_DELAY = 1_000_000_000;
const SMALLEST_MS_EPOCH = 100_000_000_000;

/**
 * How long an answer asks to wait, in ms; null when it does not say. Points in time are taken relative to the
 * answer's own Date, so that clocks need not agree.
 */
export function askedWait(headers: Headers, now: Date): number | null {
  const date = Date.parse(headers.get('date') ?? '');
  const sent = Number.isNaN(date) ? now.getTime() : date;
  return retryAfter(headers.get('retry-after'), sent) ?? resetIn(headers, sent);
}

/** Seconds, or a date. */
function retryAfter(value: string | null, sent: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - sent);
}

/** A delay in seconds, or a Unix time in seconds or milliseconds: services differ. */
function resetIn(headers: Headers, sent: number): number | null {
  const text = headers.get('x-ratelimit-reset') ?? headers.get('ratelimit-reset');
  const value = Number(text ?? Number.NaN);
  if (text === null || text.trim() === '' || !Number.isFinite(value) || value < 0) return null;
  if (value < LARGEST_DELAY) return value * 1000;
  return Math.max(0, (value < SMALLEST_MS_EPOCH ? value * 1000 : value) - sent);
}

/** Nothing is left of the quota. */
export const isExhausted = (headers: Headers): boolean =>
  (headers.get('x-ratelimit-remaining') ?? headers.get('ratelimit-remaining'))?.trim() === '0';

/** Full jitter: anything up to a limit that doubles with each attempt, 30 s at the most. */
export const backoff = (attempt: number, base_seconds: number): number =>
  Math.random() * Math.min(30_000, base_seconds * 1000 * 2 ** (attempt - 1));
