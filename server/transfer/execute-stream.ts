import type { Deps } from '../deps.ts';
import { Attempt, WorkerStopping } from './attempt.ts';
import { claimStream } from '../runs/claim-stream.ts';
import { outcomeOf } from './classify-error.ts';
import { moveStream } from './move-stream.ts';
import { endAttempt, type Outcome } from '../runs/end-attempt.ts';

/** The attempts that this process is at; asked to look when a NOTIFY says that a run is to stop. */
const underWay = new Set<Attempt>();

/** Tells the attempts at a run to look whether they are to stop. */
export function nudgeRun(connection_run_id: string): void {
  for (const attempt of underWay) {
    if (attempt.claim.run.id === connection_run_id) attempt.beat();
  }
}

/** Handler of the job `execute_stream`: claims the stream, moves its rows, writes down how it ended. */
export async function executeStreamJob(deps: Deps, stream_run_id: string, signal: AbortSignal): Promise<void> {
  const claim = await deps.db.transaction((tx) => claimStream(tx, stream_run_id));
  if (!claim) return;
  const attempt = new Attempt(deps, claim);
  const shutDown = () => attempt.end(new WorkerStopping('The worker is shutting down'));
  if (signal.aborted) shutDown();
  signal.addEventListener('abort', shutDown, { once: true });
  underWay.add(attempt);
  attempt.start();
  let outcome: Outcome | null;
  try {
    const moved = await Promise.race([moveStream(attempt), givenUp(attempt)]);
    outcome = moved ? { kind: 'succeeded' } : null;
  } catch (error) {
    outcome = outcomeOf(deps, attempt, error);
  } finally {
    signal.removeEventListener('abort', shutDown);
    await attempt.close();
    underWay.delete(attempt);
  }
  if (!outcome) return;
  const ended = { claim, outcome, progress: attempt.progress, warnings: attempt.warnings };
  await deps.db.transaction((tx) => endAttempt(tx, deps.queue, ended));
}

/** How long a connector has to let go after its signal was aborted. */
const GRACE_MS = 4000;

/** Rejects when a connector does not let go in time: the attempt ends without it, and its fence keeps it from harm. */
function givenUp(attempt: Attempt): Promise<never> {
  return new Promise((_resolve, reject) => {
    const later = () => setTimeout(() => reject(attempt.signal.reason), GRACE_MS).unref();
    attempt.signal.addEventListener('abort', later, { once: true });
  });
}
