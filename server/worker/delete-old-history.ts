import { deleteOldDeliveries, deleteOldEvents } from '../automation/delete-old-events.ts';
import { sumOldUsage } from '../billing/sum-old-usage.ts';
import type { Deps } from '../deps.ts';
import { deleteOldRuns, deleteOldVerifications } from '../runs/delete-old-runs.ts';

/** The database gets time for other work between two batches. */
const PAUSE_MS = 50;

/** In this order: deliveries belong to events, and certificates name runs. */
const STEPS = {
  deliveries: deleteOldDeliveries,
  events: deleteOldEvents,
  verifications: deleteOldVerifications,
  runs: deleteOldRuns,
  usage: sumOldUsage,
} as const;

type Deleted = Record<keyof typeof STEPS, number>;

/** Deletes what is older than the settings and the billing plan say, in small transactions. Any number may run it. */
export async function deleteOldHistory(deps: Pick<Deps, 'db' | 'now' | 'config' | 'log'>): Promise<Deleted> {
  const deleted: Deleted = { deliveries: 0, events: 0, verifications: 0, runs: 0, usage: 0 };
  for (const [name, step] of Object.entries(STEPS) as [keyof Deleted, (typeof STEPS)[keyof Deleted]][]) {
    for (let count = await step(deps); count > 0; count = await step(deps)) {
      deleted[name] += count;
      await Bun.sleep(PAUSE_MS);
    }
  }
  if (Object.values(deleted).some((count) => count > 0)) deps.log.info({ deleted }, 'old history deleted');
  return deleted;
}
