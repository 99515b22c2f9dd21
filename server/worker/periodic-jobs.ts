import type { Deps } from '../deps.ts';
import { sweepIdempotencyKeys } from '../api/idempotency-keys.ts';
import { resendLostDeliveries } from '../automation/delivery/queue-deliveries.ts';
import { periodic } from '../platform/periodic.ts';
import { recoverStuckRuns } from '../runs/recover-stuck-runs.ts';
import { disableBroken } from '../runs/disable-connections.ts';
import { tellDelays } from './data-delays.ts';
import { sweepCredentials, sweepFreePeriods } from './expiry-notices.ts';
import { sweepExports } from '../exports/export-metadata.ts';
import { sweepKeys } from './key-expiry.ts';
import { sweepNetworkLogs } from '../connector-runtime/network-log-retention.ts';
import { clearPlanNotices } from '../billing/clear-notices.ts';
import { settleAllPlanLocks } from '../billing/lock-connections.ts';

interface PeriodicJob {
  name: string;
  every_ms: number;
  work: (deps: Deps) => Promise<unknown>;
  /** Also once when the worker starts. */
  immediately: boolean;
}

const MINUTE_MS = 60_000;

const job = (name: string, every_ms: number, work: PeriodicJob['work'], immediately = true): PeriodicJob => ({
  name,
  every_ms,
  work,
  immediately,
});

/** Any number of workers may run the same job at once. */
const JOBS: readonly PeriodicJob[] = [
  job('recover stuck runs', 2000, recoverStuckRuns, false),
  job('resend lost deliveries', 2000, ({ db, queue }) => resendLostDeliveries(db, queue), false),
  // One after the other: both lock accounts.
  job('apply plan limits', 10_000, async (deps) => {
    await settleAllPlanLocks(deps);
    await clearPlanNotices(deps);
  }),
  job('announce delays', MINUTE_MS, tellDelays),
  job('expire API keys', 15 * MINUTE_MS, sweepKeys),
  job('announce expiring credentials', 15 * MINUTE_MS, sweepCredentials),
  job('announce ending free periods', 15 * MINUTE_MS, sweepFreePeriods),
  job('disable connections of broken connectors', 15 * MINUTE_MS, disableBroken),
  job('delete old idempotency keys', 15 * MINUTE_MS, sweepIdempotencyKeys),
  job('delete old exports', 15 * MINUTE_MS, sweepExports),
  job('delete old network logs', 15 * MINUTE_MS, sweepNetworkLogs),
];

export function startPeriodicJobs(deps: Deps): { stop(): Promise<void> } {
  const running = JOBS.map(({ name, every_ms, work, immediately }) =>
    periodic(() => work(deps), {
      every_ms,
      immediately,
      onError: (error) => deps.log.error({ err: error, job: name }, 'periodic job failed'),
    }),
  );
  return {
    async stop() {
      await Promise.all(running.map((one) => one.stop()));
    },
  };
}
