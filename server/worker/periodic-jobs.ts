import type { Deps } from '../deps.ts';
import { sealAudit } from '../api/audit/chain.ts';
import { deleteOldIdempotencyKeys } from '../api/idempotency-keys.ts';
import { compareAppliedFiles } from '../automation/drift/compare-applied.ts';
import { resendLostDeliveries } from '../automation/delivery/queue-deliveries.ts';
import { periodic } from '../platform/periodic.ts';
import { recoverStuckRuns } from '../runs/recover-stuck-runs.ts';
import { disableBroken } from '../runs/disable-connections.ts';
import { recoverStuckTasks } from './background-tasks.ts';
import { retestConnectors } from '../runs/retest-connectors.ts';
import { deleteOldHistory } from './delete-old-history.ts';
import { sendDailyDigests } from './daily-digest.ts';
import { announceDelays } from './data-delays.ts';
import { announceEndingFreePeriods, announceExpiringCredentials, announceExpiringKeys } from './expiry-notices.ts';
import { recoverStuckVerifications } from '../transfer/verification/recover-stuck-verifications.ts';
import { startDueVerifications } from '../transfer/verification/start-due.ts';
import { deleteOldConsents } from '../connector-runtime/consent/delete-old-consents.ts';
import { deleteOldExports } from '../exports/export-metadata.ts';
import { releaseWebhookEvents } from '../connector-runtime/inbox/release-events.ts';
import { deleteOldNetworkLogs } from '../connector-runtime/network-log/retention.ts';
import { closeDays } from '../billing/close-days.ts';
import { sumPeriods } from '../billing/sum-periods.ts';
import { clearPlanNotices } from '../billing/clear-notices.ts';
import { applyAllPlanLocks } from '../billing/lock-connections.ts';

interface PeriodicJob {
  name: string;
  every_ms: number;
  work: (deps: Deps) => Promise<unknown>;
  /** Also run once when the worker starts. */
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
  job('recover stuck tasks', 10_000, recoverStuckTasks, false),
  job('recover stuck verifications', 10_000, recoverStuckVerifications, false),
  job('start due verifications', 10_000, startDueVerifications, false),
  job('seal the audit log', 2000, sealAudit),
  job('resend lost deliveries', 10_000, ({ db, queue }) => resendLostDeliveries(db, queue), false),
  job('apply plan limits', 10_000, applyAllPlanLocks),
  job('clear plan notices', 10_000, clearPlanNotices),
  job('test broken connectors again', 10_000, retestConnectors),
  job('sum usage by period', 10_000, sumPeriods),
  job('release webhook events', MINUTE_MS, releaseWebhookEvents),
  job('send daily digests', MINUTE_MS, sendDailyDigests),
  job('compare applied files', MINUTE_MS, compareAppliedFiles),
  job('announce delays', MINUTE_MS, announceDelays),
  job('announce expiring API keys', 15 * MINUTE_MS, announceExpiringKeys),
  job('announce expiring credentials', 15 * MINUTE_MS, announceExpiringCredentials),
  job('announce ending free periods', 15 * MINUTE_MS, announceEndingFreePeriods),
  job('disable connections of broken connectors', 15 * MINUTE_MS, disableBroken),
  job('delete old idempotency keys', 15 * MINUTE_MS, deleteOldIdempotencyKeys),
  job('delete old consents', 15 * MINUTE_MS, deleteOldConsents),
  job('delete old exports', 15 * MINUTE_MS, deleteOldExports),
  job('delete old network logs', 15 * MINUTE_MS, deleteOldNetworkLogs),
  job('close days', 15 * MINUTE_MS, closeDays),
  job('delete old history', 60 * MINUTE_MS, deleteOldHistory),
];

export function startPeriodicJobs(deps: Deps): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const failed = (name: string) => (error: unknown) => deps.log.error({ err: error, job: name }, 'periodic job failed');
  const first = takeFirstTurns(({ name, work }) => work(deps).catch(failed(name)), stopping.signal);
  const running = JOBS.map(({ name, every_ms, work }) =>
    periodic(() => work(deps), { every_ms, onError: failed(name) }),
  );
  return {
    async stop() {
      stopping.abort();
      await Promise.all([first, ...running.map((one) => one.stop())]);
    },
  };
}

const MAX_WAIT_MS = 1000;

/**
 * One after another: side by side, each would open a connection to the control database, whose server spends more on the
 * new sessions than on what they ask. A turn that takes long does not keep the others waiting.
 */
async function takeFirstTurns(run: (job: PeriodicJob) => Promise<unknown>, stop: AbortSignal): Promise<void> {
  const turns: Promise<unknown>[] = [];
  for (const one of JOBS.filter(({ immediately }) => immediately)) {
    if (stop.aborted) break;
    const turn = run(one);
    turns.push(turn);
    await Promise.race([turn, Bun.sleep(MAX_WAIT_MS)]);
  }
  await Promise.all(turns);
}
