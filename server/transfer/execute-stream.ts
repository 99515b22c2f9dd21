import { eq } from 'drizzle-orm';
import { streamRuns } from '../../db/schema/index.ts';
import type { Deps } from '../deps.ts';
import { executeStream } from '../queue/jobs.ts';
import { Attempt, WorkerStopping } from './attempt.ts';
import { AttemptGroup } from './attempt-group.ts';
import { claimStreams } from '../runs/claim-group.ts';
import { requestKeeper } from '../runs/shared-snapshot.ts';
import { classifyError } from './classify-error.ts';
import { fencedOutcome } from './fenced.ts';
import { moveGroup } from './move-group.ts';
import { moveStream } from './move-stream.ts';
import { endAttempt, type Outcome } from '../runs/end-attempt.ts';
import { failStream, howToTakeUp } from '../runs/worker-deaths.ts';

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
  job: { stream_run_id: string; isolate: Isolate },
  signal: AbortSignal,
): Promise<void> {
  const { stream_run_id, isolate } = job;
  const how = await howToTakeUp(deps.db, stream_run_id);
  if (how === 'give_up') await failStream(deps, stream_run_id);
  else if (how === 'isolate') await isolate(stream_run_id, signal);
  else if (how === 'claim') await attemptStream(deps, stream_run_id, signal);
}

/** The pause before a stream is tried again whose group another worker may hold. */
const EARLY_MS = 1_000;

/** Claims the stream, and those that are moved with it, moves their rows and records the outcomes. */
export async function attemptStream(deps: Deps, stream_run_id: string, signal: AbortSignal): Promise<void> {
  const asked = performance.now();
  const { claims, is_group, is_early } = await deps.db.transaction(async (tx) => {
    const claimed = await claimStreams(tx, stream_run_id, deps.worker_id);
    const opening = claimed.claims.find(({ opens_snapshot }) => opens_snapshot);
    if (opening) await requestKeeper(tx, deps.queue, opening.run);
    return claimed;
  });
  if (is_early) await postponeStream(deps, stream_run_id, EARLY_MS);
  if (claims.length === 0) return;
  const attempts = claims.map((claim) => new Attempt(deps, claim, asked));
  const [first] = attempts as [Attempt];
  const one = is_group ? new AttemptGroup(deps, attempts) : first;
  const shutDown = () => one.abort(new WorkerStopping('The worker is shutting down'));
  if (signal.aborted) shutDown();
  signal.addEventListener('abort', shutDown, { once: true });
  running.add(one);
  one.start();
  let outcomes: (Outcome | null)[];
  try {
    outcomes = is_group ? await moveAll(deps, attempts) : [await moveOne(deps, first)];
  } finally {
    signal.removeEventListener('abort', shutDown);
    await one.close();
    running.delete(one);
  }
  await recordEnds(deps, attempts, outcomes);
  for (const [at, attempt] of attempts.entries()) logAttempt(deps, attempt, { outcome: outcomes[at] ?? null, asked });
}

/** Longer than the lease together: the next delivery of the job takes up a stream whose end was not recorded at all. */
const END_PAUSES_MS = [200, 500, 1000, 2000, 2000];

/** The end of an attempt that is not recorded leaves the stream held until recovery looks for lost jobs. */
async function recordEnds(
  deps: Deps,
  attempts: readonly Attempt[],
  outcomes: readonly (Outcome | null)[],
): Promise<void> {
  // Together, so that no stream is claimed again while another one of its group seems to be held.
  const record = () =>
    deps.db.transaction(async (tx) => {
      for (const [at, { claim, progress, warnings }] of attempts.entries()) {
        const outcome = outcomes[at];
        if (outcome) await endAttempt(tx, deps.queue, { claim, outcome, progress, warnings });
      }
    });
  for (const pause of END_PAUSES_MS) {
    try {
      return await record();
    } catch (error) {
      const connection_run_id = attempts[0]?.claim.run.id;
      deps.log.warn({ err: error, connection_run_id }, 'end of an attempt not recorded');
      await Bun.sleep(pause);
    }
  }
  return record();
}

/** The ends of streams are reported by their events. An attempt that is followed by another one has no event. */
function logAttempt(deps: Deps, { claim, progress }: Attempt, ended: { outcome: Outcome | null; asked: number }): void {
  const { outcome, asked } = ended;
  if (outcome?.kind !== 'retry' && outcome?.kind !== 'released') return;
  const { run, stream_run } = claim;
  const line = {
    account_id: run.account_id,
    connection_id: run.connection_id,
    connection_run_id: run.id,
    stream_run_id: stream_run.id,
    stream: stream_run.stream_name,
    attempt: stream_run.attempt,
    outcome: outcome.kind,
    code: outcome.kind === 'retry' ? outcome.error.code : null,
    rows: progress.rows_loaded,
    ms: Math.round(performance.now() - asked),
  };
  if (outcome.kind === 'retry') deps.log.warn(line, 'attempt failed');
  else deps.log.info(line, 'attempt released');
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
    const moved = await Promise.race([moveStream(attempt), abortTimeout(attempt)]);
    return moved ?? (await fencedOutcome(attempt, null));
  } catch (error) {
    return classifyError(deps, attempt, error);
  }
}

async function moveAll(deps: Deps, attempts: readonly Attempt[]): Promise<(Outcome | null)[]> {
  const outcomes: (Outcome | null)[] = [];
  const [first] = attempts as [Attempt];
  let errors: (attempt: Attempt) => unknown;
  try {
    const failed = await Promise.race([moveGroup(attempts), abortTimeout(first)]);
    errors = (attempt) => failed.get(attempt);
  } catch (error) {
    errors = () => error;
  }
  for (const attempt of attempts) {
    const error = errors(attempt);
    outcomes.push(error === undefined ? { kind: 'succeeded' } : await classifyError(deps, attempt, error));
  }
  return outcomes;
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
