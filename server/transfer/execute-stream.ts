import { eq } from 'drizzle-orm';
import { streamRuns } from '../../db/schema/index.ts';
import type { Deps } from '../deps.ts';
import { executeStream } from '../queue/jobs.ts';
import { Attempt } from './attempt.ts';
import { SharedAttempts } from './replication/shared-attempts.ts';
import { claimStreams } from '../runs/claim-together.ts';
import { createSnapshotKeepers, type SnapshotKeepers } from './one-moment/keep-snapshots.ts';
import { moveTogether } from './one-moment/move-together.ts';
import { logAttempt, recordEnds } from './record-ends.ts';
import { requestKeeper } from '../runs/snapshot/lost-keepers.ts';
import { classifyError } from './classify-error.ts';
import { fencedOutcome } from './fenced.ts';
import { replicate } from './replication/replicate.ts';
import { requestLineage } from './lineage/report-lineage.ts';
import { moveStream } from './move-stream.ts';
import { streamAttributes } from './trace-attributes.ts';
import { inSpan } from '../platform/tracing/span.ts';
import { failStream, type TakeUp } from '../runs/worker-deaths.ts';
import type { Outcome } from '../runs/outcome.ts';

/** The attempts of this process, by run. */
const running = new Set<{ run_id: string; heartbeat(): void }>();

/** Makes the attempts at a run check for a stop now, instead of at their next heartbeat. Handler of the NOTIFY. */
export function checkForStop(connection_run_id: string): void {
  for (const one of running) {
    if (one.run_id === connection_run_id) one.heartbeat();
  }
}

/** Executes a stream run in a process of its own. */
export type Isolate = (stream_run_id: string, signal: AbortSignal) => Promise<void>;

/** Handler of the job `execute_stream`. A stream that a worker died with is left to `isolate`. */
export async function executeStreamJob(
  deps: Deps,
  job: { stream_run_id: string; isolate: Isolate; keepers: SnapshotKeepers },
  signal: AbortSignal,
): Promise<void> {
  const { stream_run_id, isolate, keepers } = job;
  const how = await attemptStream(deps, { stream_run_id, keepers, isIsolated: false }, signal);
  if (how === 'give_up') await failStream(deps, stream_run_id);
  else if (how === 'isolate') await isolate(stream_run_id, signal);
}

/** The pause before a stream is tried again while another worker may hold those that are read with it. */
const EARLY_MS = 1_000;

/** Executes a stream run in a process that executes nothing else. */
export async function attemptAlone(deps: Deps, stream_run_id: string, signal: AbortSignal): Promise<void> {
  const keepers = createSnapshotKeepers(deps);
  try {
    await attemptStream(deps, { stream_run_id, keepers, isIsolated: true }, signal);
  } finally {
    await keepers.stop();
  }
}

/**
 * Claims the stream, and those that are moved with it, moves their rows and records the outcomes.
 * @returns other than `claim`: it was not claimed, and has to be taken up so
 */
async function attemptStream(
  deps: Deps,
  { stream_run_id, keepers, isIsolated }: { stream_run_id: string; keepers: SnapshotKeepers; isIsolated: boolean },
  signal: AbortSignal,
): Promise<TakeUp> {
  const asked = performance.now();
  const {
    claims,
    shared: together,
    keeper,
    is_early,
    how,
  } = await deps.db.transaction(async (tx) => {
    const claimed = await claimStreams(tx, stream_run_id, { worker_id: deps.worker_id, isIsolated });
    const opening = claimed.claims.find(({ opens_snapshot }) => opens_snapshot);
    if (opening && !claimed.keeper) await requestKeeper(tx, deps.queue, opening.run);
    const beginning = claimed.claims.find(({ begins_run }) => begins_run);
    if (beginning) await requestLineage(tx, deps, beginning.run.id);
    return claimed;
  });
  if (is_early) await postponeStream(deps, stream_run_id, EARLY_MS);
  if (claims.length === 0) return how;
  const attempts = claims.map((claim) => new Attempt(deps, claim, asked));
  const [first] = attempts as [Attempt];
  const shared = together && new SharedAttempts(deps, attempts, together);
  const one = shared ?? first;
  const shutDown = () => one.shutDown();
  if (signal.aborted) shutDown();
  signal.addEventListener('abort', shutDown, { once: true });
  running.add(one);
  one.start();
  let outcomes: Map<Attempt, Outcome | null>;
  try {
    if (shared && keeper) await moveTogether(deps, shared, { keeper, keepers, move: moveOne });
    outcomes = keeper
      ? new Map()
      : shared
        ? await moveAll(deps, shared)
        : new Map([[first, await moveOne(deps, first)]]);
  } finally {
    signal.removeEventListener('abort', shutDown);
    await one.close();
    running.delete(one);
  }
  await recordEnds(deps, outcomes);
  for (const [attempt, outcome] of outcomes) logAttempt(deps, attempt, { outcome, asked });
  return how;
}

/** Delivers the job again. */
export async function postponeStream({ db, queue }: Deps, stream_run_id: string, ms: number): Promise<void> {
  const [stream] = await db
    .select({ account_id: streamRuns.account_id })
    .from(streamRuns)
    .where(eq(streamRuns.id, stream_run_id));
  const start_after = new Date(Date.now() + ms);
  if (stream) await queue.send(db, executeStream, { stream_run_id }, { ...stream, start_after });
}

async function moveOne(deps: Deps, attempt: Attempt): Promise<Outcome | null> {
  try {
    const moved = await inSpan('move stream', { attributes: streamAttributes(attempt.claim) }, () =>
      Promise.race([moveStream(attempt), abortTimeout(attempt)]),
    );
    return moved ?? (await fencedOutcome(attempt, null));
  } catch (error) {
    return classifyError(deps, attempt, error);
  }
}

/** @returns the outcomes of the attempts that have not ended before */
async function moveAll(deps: Deps, shared: SharedAttempts): Promise<Map<Attempt, Outcome | null>> {
  const outcomes = new Map<Attempt, Outcome | null>();
  try {
    await shared.traced(() => Promise.race([replicate(shared), abortTimeout(shared)]));
    for (const attempt of shared.attempts)
      outcomes.set(attempt, { kind: 'succeeded', rolled_over: shared.is_continuous });
  } catch (error) {
    for (const attempt of shared.attempts) outcomes.set(attempt, await classifyError(deps, attempt, error));
  }
  return outcomes;
}

/** Time for a connector to finish after its signal is aborted. */
const GRACE_MS = 4000;

/** Rejects when a connector does not finish in time. The attempt ends without it; the fence rejects its late writes. */
function abortTimeout({ signal }: { signal: AbortSignal }): Promise<never> {
  return new Promise((_resolve, reject) => {
    const later = () => setTimeout(() => reject(signal.reason), GRACE_MS).unref();
    signal.addEventListener('abort', later, { once: true });
  });
}
