import { SideError } from '../../connector-runtime/side-error.ts';
import type { Deps } from '../../deps.ts';
import type { KeeperClaim } from '../../runs/snapshot/claim-keeper.ts';
import type { Attempt } from '../attempt.ts';
import { classifyError } from '../classify-error.ts';
import { logAttempt, recordEnds } from '../record-ends.ts';
import type { SharedAttempts } from '../replication/shared-attempts.ts';
import type { SnapshotKeepers } from './keep-snapshots.ts';
import type { Outcome } from '../../runs/outcome.ts';

type Move = (deps: Deps, attempt: Attempt) => Promise<Outcome | null>;

/** Moves the streams that share a snapshot of this process, as many at a time as the connection allows. Each ends alone. */
export async function moveTogether(
  deps: Deps,
  shared: SharedAttempts,
  { keeper, keepers, move }: { keeper: KeeperClaim; keepers: SnapshotKeepers; move: Move },
): Promise<void> {
  const asked = performance.now();
  const waiting = [...shared.attempts];
  const slots = waiting[0]?.claim.connection.max_parallel_streams ?? 1;
  const failed = await Promise.race([keepers.hold(keeper), aborted(shared.signal)]);
  const outcomeOf = async (attempt: Attempt) => {
    const { signal } = attempt;
    if (signal.aborted || failed) return classifyError(deps, attempt, new SideError('source', failed ?? signal.reason));
    attempt.watch();
    return move(deps, attempt);
  };
  const lane = async () => {
    for (let attempt = waiting.shift(); attempt; attempt = waiting.shift()) {
      const outcome = await outcomeOf(attempt);
      await shared.end(attempt, () => recordEnds(deps, new Map([[attempt, outcome]])));
      logAttempt(deps, attempt, { outcome, asked });
    }
  };
  await Promise.all(Array.from({ length: slots }, lane));
}

const aborted = (signal: AbortSignal) =>
  new Promise<null>((resolve) => {
    if (signal.aborted) return resolve(null);
    signal.addEventListener('abort', () => resolve(null), { once: true });
  });
