import { LRUCache } from 'lru-cache';
import { apiKeyPrefix } from '../platform/api-keys.ts';
import { ApiError } from '../platform/errors.ts';

const WINDOW_MS = 60_000;
const MAX_FAILURES = 20;
const MAX_COUNTED = 10_000;

/**
 * Limits failed sign-ins to 20 a minute for each address and for each prefix of a key, counted in this process. Only wrong
 * keys are refused: clients behind one proxy share an address, and others must not lock out the owner of a key.
 */
export function createSignInLimit() {
  // A further failure does not extend the minute that the first one began.
  const failures = new LRUCache<string, number>({ max: MAX_COUNTED, ttl: WINDOW_MS, noUpdateTTL: true });
  return {
    /** Counts a failure. @throws ApiError 429 `too_many_sign_ins` with `retry_after_seconds` */
    noteFailure({ address, api_key }: { address: string; api_key: string }): void {
      const counted = [`address ${address}`, `key ${apiKeyPrefix(api_key)}`];
      const exceeded = counted.filter((name) => (failures.get(name) ?? 0) >= MAX_FAILURES);
      for (const name of counted) failures.set(name, (failures.get(name) ?? 0) + 1);
      if (exceeded.length === 0) return;
      const remaining = Math.max(...exceeded.map((name) => failures.getRemainingTTL(name)));
      const retry_after_seconds = Math.max(1, Math.ceil(remaining / 1000));
      throw new ApiError(429, 'too_many_sign_ins', `Too many failed sign-ins. Try again in ${retry_after_seconds} s`, {
        retry_after_seconds,
      });
    },
  };
}
