import type { Deps } from '../deps.ts';
import { Attempt, WorkerStopping } from './attempt.ts';
import { claimStream } from '../runs/claim-stream.ts';
import { classifyError } from './classify-error.ts';
import { fencedOutcome } from './fenced.ts';
import { moveStream } from './move-stream.ts';
import { endAttempt, type Outcome } from '../runs/end-attempt.ts';
import { failStream, howToTakeUp } from '../runs/worker-deaths.ts';

/** The attempts of this process. */
const running = new Set<Attempt>();

/** Makes the attempts at a run check for a stop now, instead of at their next heartbeat. Handler of the NOTIFY. */
export function checkForStop(connection_run_id: string): void {
  for (const attempt of running) {
    if (attempt.claim.run.id === connection_run_id) attempt.heartbeat();
  }
}

/** Executes a stream run in a process of its own. */
export type Isolate = (stream_run_id: string, signal: AbortSignal) => Promise<void>;

/** Handler of the job `execute_stream`. A stream that a worker died with is left to `isolate`. */
export async function executeStreamJob(
  deps: Deps,
  job: { stream_run_id: string; isolate: Isolate },
  signal: AbortSignal,
): Promise<void> {
  const { stream_run_id, isolate } = job;
  const how = await howToTakeUp(deps.db, stream_run_id);
  if (how === 'give_up') await failStream(deps, stream_run_id);
  else if (how === 'isolate') await isolate(stream_run_id, signal);
  else if (how === 'claim') await attemptStream(deps, stream_run_id, signal);
}

/** Claims the stream, moves its rows and records the outcome. */
export async function attemptStream(deps: Deps, stream_run_id: string, signal: AbortSignal): Promise<void> {
  const asked = performance.now();
  const claim = await deps.db.transaction((tx) => claimStream(tx, stream_run_id, deps.worker_id));
  if (!claim) return;
  const attempt = new Attempt(deps, claim, asked);
  const shutDown = () => attempt.abort(new WorkerStopping('The worker is shutting down'));
  if (signal.aborted) shutDown();
  signal.addEventListener('abort', shutDown, { once: true });
  running.add(attempt);
  attempt.start();
  let outcome: Outcome | null;
  try {
    const moved = await Promise.race([moveStream(attempt), abortTimeout(attempt)]);
    outcome = moved ? { kind: 'succeeded' } : await fencedOutcome(attempt, null);
  } catch (error) {
    outcome = await classifyError(deps, attempt, error);
  } finally {
    signal.removeEventListener('abort', shutDown);
    await attempt.close();
    running.delete(attempt);
  }
  if (!outcome) return;
  const ended = { claim, outcome, progress: attempt.progress, warnings: attempt.warnings };
  await deps.db.transaction((tx) => endAttempt(tx, deps.queue, ended));
}

/** Time for a connector to finish after its signal is aborted. */
const GRACE_MS = 4000;

/** Rejects when a connector does not finish in time. The attempt ends without it; the fence rejects its late writes. */
function abortTimeout(attempt: Attempt): Promise<never> {
  return new Promise((_resolve, reject) => {
    const later = () => setTimeout(() => reject(attempt.signal.reason), GRACE_MS).unref();
    attempt.signal.addEventListener('abort', later, { once: true });
  });
}
