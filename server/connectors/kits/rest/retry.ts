import type { ConnectorError } from '../../contract/errors.ts';
import { pause } from './rate-limiter.ts';

/** How long a client keeps trying. `timeout_seconds` is an upper limit for each request. */
export interface Patience {
  max_attempts: number;
  /** Total of the pauses that the service asks for during one request. A longer one ends the attempt of the run. */
  max_wait_seconds: number;
  timeout_seconds: number;
}

/** For a check of the settings, which has 20 seconds in all: two timeouts fit into it. */
export const INTERACTIVE: Patience = { max_attempts: 2, max_wait_seconds: 5, timeout_seconds: 9 };
export const BACKGROUND: Patience = { max_attempts: 6, max_wait_seconds: 600, timeout_seconds: 120 };

export interface Failure {
  error: ConnectorError;
  /** Replaces the token that was refused; absent when a new token cannot help. False: there is no other token. */
  renew?: (() => boolean) | undefined;
}

export type RequestAttempt<Result, Failed extends Failure = Failure> =
  | { ok: true; result: Result }
  | { ok: false; failed: Failed };

export interface Pause {
  ms: number;
  /** False for a pause that the service asked for: it does not use up an attempt. */
  counts: boolean;
}

/**
 * Sends until an attempt succeeds. A refused token is renewed once, at no cost.
 * @param pauseAfter decides on the pause before the next attempt, or throws the error that ends the request
 */
export async function withRetries<Result, Failed extends Failure>(
  signal: AbortSignal,
  send: () => Promise<RequestAttempt<Result, Failed>>,
  pauseAfter: (failed: Failed, attempt: number) => Pause | Promise<Pause>,
): Promise<Result> {
  let renewed = false;
  for (let attempt = 1; ; ) {
    const tried = await send();
    if (tried.ok) return tried.result;
    if (!renewed && tried.failed.renew?.()) {
      renewed = true;
      continue;
    }
    const { ms, counts } = await pauseAfter(tried.failed, attempt);
    await pause(ms, signal);
    if (counts) attempt += 1;
  }
}
