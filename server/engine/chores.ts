import type { Deps } from '../deps.ts';
import { sweepIdempotencyKeys } from '../lib/idempotency-keys.ts';
import { disableBroken } from './broken-connectors.ts';
import { tellDelays } from './data-delays.ts';
import { sweepCredentials, sweepFreePeriods } from './expiry-notices.ts';
import { sweepExports } from './export-metadata.ts';
import { sweepKeys } from './key-expiry.ts';
import { sweepNetworkLogs } from './network-log-retention.ts';
import { clearPlanNotices } from './plan-clearance.ts';
import { settleAllPlanLocks } from './plan-locks.ts';

type Chore = (deps: Deps) => Promise<unknown>;

/** What has to be done now and then, and how often. Any number of workers may do it at once. */
const CHORES: { every_ms: number; chores: Chore[] }[] = [
  { every_ms: 10_000, chores: [settleAllPlanLocks, clearPlanNotices] },
  { every_ms: 60_000, chores: [tellDelays] },
  {
    every_ms: 15 * 60_000,
    chores: [
      sweepKeys,
      sweepCredentials,
      sweepFreePeriods,
      disableBroken,
      sweepIdempotencyKeys,
      sweepExports,
      sweepNetworkLogs,
    ],
  },
];

/** Does the chores at once and from then on at their times; each kind one after the other. */
export function startChores(deps: Deps): { stop(): Promise<void> } {
  const running = CHORES.map(({ every_ms, chores }) => {
    const doAll = async () => {
      for (const chore of chores) {
        await chore(deps).catch((error: unknown) =>
          deps.log.error({ err: error, chore: chore.name }, 'a chore failed'),
        );
      }
    };
    const state = { doing: doAll(), timer: setInterval(() => void (state.doing = state.doing.then(doAll)), every_ms) };
    return state;
  });
  return {
    async stop() {
      for (const { timer } of running) clearInterval(timer);
      await Promise.all(running.map(({ doing }) => doing));
    },
  };
}
