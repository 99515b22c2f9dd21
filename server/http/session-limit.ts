import { ApiError } from '../platform/errors.ts';

const WINDOW_MS = 60_000;
const MAX_FAILURES = 20;

/**
 * Failed sign-ins of one address, counted in this process: 20 a minute. A key has 256 random bits, so this keeps noise
 * from the database rather than guesses from a key.
 */
export function createSignInLimit(now: () => number = Date.now) {
  let failures = new Map<string, number>();
  let until = 0;
  const current = () => {
    if (now() >= until) {
      failures = new Map();
      until = now() + WINDOW_MS;
    }
    return failures;
  };
  return {
    /** @throws ApiError 429 `too_many_sign_ins`. */
    require(address: string): void {
      if ((current().get(address) ?? 0) < MAX_FAILURES) return;
      const retry_after_seconds = Math.ceil((until - now()) / 1000);
      throw new ApiError(429, 'too_many_sign_ins', `Too many failed sign-ins: try again in ${retry_after_seconds} s`, {
        retry_after_seconds,
      });
    },
    noteFailure(address: string): void {
      current().set(address, (current().get(address) ?? 0) + 1);
    },
  };
}
