const MAX_DELAY_SECONDS = 1_000_000_000;
const MIN_EPOCH_MS = 100_000_000_000;

/**
 * How long a response asks to wait, in ms; null when it does not say. Times are taken relative to the response's own
 * Date header, so that the two clocks need not agree.
 */
export function requestedWait(headers: Headers, now: Date): number | null {
  const date = Date.parse(headers.get('date') ?? '');
  const sent = Number.isNaN(date) ? now.getTime() : date;
  return retryAfter(headers.get('retry-after'), sent) ?? resetIn(headers, sent);
}

/** Seconds or an HTTP date. */
function retryAfter(value: string | null, sent: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - sent);
}

/** Services differ: a delay in seconds, or a Unix time in seconds or milliseconds. */
function resetIn(headers: Headers, sent: number): number | null {
  const text = headers.get('x-ratelimit-reset') ?? headers.get('ratelimit-reset');
  const value = Number(text ?? Number.NaN);
  if (text === null || text.trim() === '' || !Number.isFinite(value) || value < 0) return null;
  if (value < MAX_DELAY_SECONDS) return value * 1000;
  return Math.max(0, (value < MIN_EPOCH_MS ? value * 1000 : value) - sent);
}

/** The response says that the quota is used up. */
export const isExhausted = (headers: Headers): boolean =>
  (headers.get('x-ratelimit-remaining') ?? headers.get('ratelimit-remaining'))?.trim() === '0';

/** Exponential backoff with full jitter, at most 30 s. */
export const backoff = (attempt: number, base_seconds: number): number =>
  Math.random() * Math.min(30_000, base_seconds * 1000 * 2 ** (attempt - 1));
