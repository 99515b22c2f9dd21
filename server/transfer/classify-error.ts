import type { StoredRunError } from '../../db/schema/index.ts';
import { CannotContinueError, ConnectorError, FencedError, RateLimitedError } from '../connectors/contract/errors.ts';
import { SideError } from '../connector-runtime/side-error.ts';
import type { Deps } from '../deps.ts';
import { type Attempt, ClaimLost, StopRequested, WorkerStopping } from './attempt.ts';
import { fencedOutcome } from './fenced.ts';
import { isSnapshotLost } from './one-moment/join-snapshot.ts';
import type { Outcome } from '../runs/outcome.ts';

/** What an attempt's error means for the stream. Null: the claim is lost, so nothing must be written. */
export async function classifyError(deps: Deps, attempt: Attempt, thrown: unknown): Promise<Outcome | null> {
  const error = causeOf(thrown);
  // The reason of the abort counts, not the error that the connector derived from it.
  const reason: unknown = attempt.signal.aborted ? causeOf(attempt.signal.reason) : error;
  const origin = [attempt.signal.reason, thrown].find((one) => one instanceof SideError)?.origin ?? 'replication';
  if (reason instanceof ClaimLost || error instanceof FencedError) return fencedOutcome(attempt, error);
  if (reason instanceof StopRequested) return { kind: 'stopped' };
  if (reason instanceof WorkerStopping) return { kind: 'released' };
  const described = describe(attempt, reason, origin);
  if (!(reason instanceof ConnectorError)) {
    deps.log.error({ err: reason, stream_run_id: attempt.claim.stream_run.id }, 'stream failed unexpectedly');
  }
  const of_stream = reason instanceof CannotContinueError;
  if (!described.retryable) return { kind: 'failed', error: described, of_stream };
  return {
    kind: 'retry',
    error: described,
    wait_until: error instanceof RateLimitedError ? error.until : null,
    backoff_base_seconds: isSnapshotLost(error) ? 0 : deps.config.RETRY_BACKOFF_SECONDS,
  };
}

const causeOf = (error: unknown) => (error instanceof SideError ? error.cause : error);

function describe(attempt: Attempt, error: unknown, origin: 'source' | 'destination' | 'replication'): StoredRunError {
  const known = error instanceof ConnectorError;
  const text = error instanceof Error ? error.message : String(error);
  return {
    code: known ? error.code : 'unexpected_error',
    message: attempt.redactor.text(known ? text : `The ${origin} failed unexpectedly: ${text}`),
    origin,
    type: known ? error.type : 'system_error',
    // An unexpected error may be temporary: it gets the same attempts as a lost connection.
    retryable: known ? error.retryable : true,
    stream_name: attempt.claim.stream_run.stream_name,
    internal_message: attempt.redactor.text(error instanceof Error ? (error.stack ?? text) : text),
    occurred_at: new Date().toISOString(),
  };
}
