import { setTimeout as sleep } from 'node:timers/promises';
import type { SharedSnapshot } from '../../connectors/contract/connector.ts';
import { SideError } from '../../connector-runtime/side-error.ts';
import { ConnectorError, RetryableError } from '../../connectors/contract/errors.ts';
import { SNAPSHOT_LOST } from '../../connectors/contract/snapshot.ts';
import { joinSnapshot } from '../../runs/snapshot/members.ts';
import type { Attempt } from '../attempt.ts';

const LOOK_MS = 20;
const PATIENCE_MS = 60_000;

/** How a stream is read at the moment of its run, and published with the other streams. */
export interface SharedMoment {
  snapshot: SharedSnapshot;
  generation: number;
  publish_with: string;
}

export const publishWith = (connection_run_id: string, generation: number) => `${connection_run_id}/${generation}`;

/**
 * Waits for the snapshot of the run. Null: the stream is read and published on its own.
 * @throws RetryableError `snapshot_unavailable` when no worker opens it in time
 */
export async function joinMoment(attempt: Attempt): Promise<SharedMoment | null> {
  const { claim, deps } = attempt;
  if (!claim.is_grouped) return null;
  for (const since = performance.now(); performance.now() - since < PATIENCE_MS; ) {
    const joined = await joinSnapshot(deps.db, claim);
    if (joined && 'unavailable' in joined) {
      const why = joined.unavailable.message;
      attempt.warn('read_by_stream', `Each stream of the run is read at a moment of its own: ${why}`);
      return null;
    }
    if (joined) return { ...joined, publish_with: publishWith(claim.run.id, joined.generation) };
    await sleep(LOOK_MS, undefined, { signal: attempt.signal }).catch(() => {});
    attempt.signal.throwIfAborted();
  }
  throw new RetryableError(
    'snapshot_unavailable',
    `No worker opened the snapshot of the run within ${PATIENCE_MS / 1000} s`,
  );
}

/** The read could not join the snapshot, or lost it, and is tried again at once with a new one. */
export function isSnapshotLost(thrown: unknown): boolean {
  const error = thrown instanceof SideError ? thrown.cause : thrown;
  return error instanceof ConnectorError && error.code === SNAPSHOT_LOST;
}
