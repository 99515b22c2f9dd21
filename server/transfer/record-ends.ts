import type { Deps } from '../deps.ts';
import { endAttempt } from '../runs/end-attempt.ts';
import type { Attempt } from './attempt.ts';
import { fencedOutcome } from './fenced.ts';
import type { Outcome } from '../runs/outcome.ts';

/** Longer than the lease together: the next delivery of the job takes up a stream whose end was not recorded at all. */
const END_PAUSES_MS = [200, 500, 1000, 2000, 2000];

/** The end of an attempt that is not recorded leaves the stream held until recovery looks for lost jobs. */
export async function recordEnds(deps: Deps, outcomes: ReadonlyMap<Attempt, Outcome | null>): Promise<void> {
  // Together, so that no stream is claimed again while another one of its run seems to be held.
  const record = async () => {
    const fenced = await deps.db.transaction(async (tx) => {
      const lost: Attempt[] = [];
      for (const [attempt, outcome] of outcomes) {
        const { claim, progress, warnings, log } = attempt;
        const ended = outcome && { claim, outcome, progress, warnings, lines: log.lines };
        if (ended && !(await endAttempt(tx, deps.queue, ended))) lost.push(attempt);
      }
      return lost;
    });
    for (const attempt of fenced) await fencedOutcome(attempt, null);
  };
  for (const pause of END_PAUSES_MS) {
    try {
      return await record();
    } catch (error) {
      const [attempt] = outcomes.keys();
      const connection_run_id = attempt?.claim.run.id;
      deps.log.warn({ err: error, connection_run_id }, 'end of an attempt not recorded');
      await Bun.sleep(pause);
    }
  }
  return record();
}

/** The ends of streams are reported by their events. An attempt that is followed by another one has no event. */
export function logAttempt(
  deps: Deps,
  { claim, progress }: Attempt,
  ended: { outcome: Outcome | null; asked: number },
): void {
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
