import { SideError } from '../../connector-runtime/side-error.ts';
import { ConnectorError, FencedError } from '../../connectors/contract/errors.ts';
import { type Attempt, ClaimLost } from '../attempt.ts';
import { AttemptsFailed } from './attempts-failed.ts';
import { parkIfUnappliable } from './parking.ts';
import { readPass } from './pass.ts';
import { RunningCopies } from './running-copies.ts';
import type { SharedAttempts } from './shared-attempts.ts';

/** After this many attempts without progress, a stream whose error may be temporary no longer holds up the others. */
const PATIENT_ATTEMPTS = 3;

/** Errors after which the streams are opened again at once: the next pass meets what has changed. */
const OPENED_AGAIN: Record<SideError['origin'], string> = { source: 'table_changed', destination: 'table_missing' };
const MAX_REOPENED = 3;

/**
 * Moves streams that are read from one change log, with common commits: what is visible at the destination after each of
 * them is a state that the source had. A stream that fails ends, and the others go on. Resolves at the end of the log or,
 * in a continuous run, when the run rolls over: the attempts that are left have then succeeded.
 */
export async function replicate(shared: SharedAttempts): Promise<void> {
  const copies = new RunningCopies(shared);
  let reopened = 0;
  try {
    while (shared.pending.length > 0) {
      const progress = { progressed: false };
      try {
        if (await readPass(shared, copies, progress)) return;
      } catch (thrown) {
        if (progress.progressed) reopened = 0;
        const errors = thrown instanceof AttemptsFailed ? thrown.failures : NONE;
        if (shared.is_continuous && reopened < MAX_REOPENED && isOpenedAgain(errors)) {
          reopened += 1;
          continue;
        }
        await leaveOut(shared, errors, thrown);
      }
    }
  } finally {
    await copies.close();
  }
}

const NONE: ReadonlyMap<Attempt, unknown> = new Map();

function isOpenedAgain(errors: ReadonlyMap<Attempt, unknown>): boolean {
  const causes = [...errors.values()];
  return (
    causes.length > 0 &&
    causes.every(
      (thrown) =>
        thrown instanceof SideError &&
        thrown.cause instanceof ConnectorError &&
        thrown.cause.code === OPENED_AGAIN[thrown.origin],
    )
  );
}

async function leaveOut(shared: SharedAttempts, errors: ReadonlyMap<Attempt, unknown>, thrown: unknown): Promise<void> {
  const left = [...errors].filter(([attempt, error]) => isLeftOut(attempt, error));
  if (left.length === 0) throw errors.values().next().value ?? thrown;
  // Without others that go on, the log can wait for the stream.
  const hasOthers = shared.pending.some((attempt) => !left.some(([one]) => one === attempt));
  for (const [attempt, error] of left) {
    if (hasOthers) await parkIfUnappliable(attempt, error);
    await shared.fail(attempt, error);
  }
}

function isLeftOut({ signal, claim }: Attempt, thrown: unknown): boolean {
  const error = thrown instanceof SideError ? thrown.cause : thrown;
  if (signal.aborted || error instanceof FencedError || error instanceof ClaimLost) return false;
  const lasts = error instanceof ConnectorError && !error.retryable;
  return lasts || claim.stream_run.attempts_without_progress >= PATIENT_ATTEMPTS;
}
