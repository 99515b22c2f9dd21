import { LRUCache } from 'lru-cache';
import { ApiError } from '../platform/errors.ts';

const WINDOW_MS = 60_000;
const MAX_FAILURES = 20;
const MAX_ADDRESSES = 10_000;

/**
 * Limits failed sign-ins to 20 a minute for each address, counted in this process. A key has 256 random bits, so the
 * limit protects the database from load rather than a key from guesses.
 */
export function createSignInLimit() {
  // A further failure does not extend the minute that the first one began.
  const failures = new LRUCache<string, number>({ max: MAX_ADDRESSES, ttl: WINDOW_MS, noUpdateTTL: true });
  return {
    /** @throws ApiError 429 `too_many_sign_ins` with `retry_after_seconds` */
    require(address: string): void {
      if ((failures.get(address) ?? 0) < MAX_FAILURES) return;
      const retry_after_seconds = Math.max(1, Math.ceil(failures.getRemainingTTL(address) / 1000));
      throw new ApiError(429, 'too_many_sign_ins', `Too many failed sign-ins. Try again in ${retry_after_seconds} s`, {
        retry_after_seconds,
      });
    },
    noteFailure(address: string): void {
      failures.set(address, (failures.get(address) ?? 0) + 1);
    },
  };
}
