import type { Deps } from '../deps.ts';
import { sweepIdempotencyKeys } from '../lib/idempotency-keys.ts';
import { sweepExports } from './export-metadata.ts';
import { sweepKeys } from './key-expiry.ts';

const EVERY_MS = 15 * 60_000;

/** What has to be done now and then: API keys about to expire are announced, old idempotency keys forgotten, exports deleted. */
export function startChores(deps: Deps): { stop(): Promise<void> } {
  const doAll = async () => {
    const outcomes = await Promise.allSettled([sweepKeys(deps), sweepIdempotencyKeys(deps), sweepExports(deps)]);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') deps.log.error({ err: outcome.reason }, 'a chore failed');
    }
  };
  let doing = doAll();
  const timer = setInterval(() => {
    doing = doing.then(doAll);
  }, EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      await doing;
    },
  };
}
