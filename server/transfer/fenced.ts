import { FencedError } from '../connectors/contract/errors.ts';
import { countFenced, holdsClaim, raiseFences } from '../runs/claim-stream.ts';
import type { Attempt } from './attempt.ts';
import type { Outcome } from '../runs/outcome.ts';

/**
 * The outcome of an attempt that lost its claim or that the destination rejected. Null: a newer attempt has the stream,
 * so nothing must be written. If the control database knows of none, its fences are behind the destination's: they are
 * raised, and the stream is tried again.
 */
export async function fencedOutcome({ deps, claim }: Attempt, error: unknown): Promise<Outcome | null> {
  const { stream_run, run } = claim;
  const floor = error instanceof FencedError ? error.fence : null;
  const about = {
    stream_run_id: stream_run.id,
    connection_run_id: run.id,
    attempt: stream_run.attempt,
    fence: stream_run.fence,
  };
  deps.log.warn({ ...about, destination_fence: floor }, 'attempt was fenced');
  await countFenced(deps.db, claim);
  if (!(error instanceof FencedError) || !(await holdsClaim(deps.db, claim))) return null;
  if (floor !== null) await raiseFences(deps.db, floor);
  return {
    kind: 'retry',
    wait_until: null,
    backoff_base_seconds: 0,
    error: {
      code: 'destination_fence_ahead',
      message:
        `The destination holds ${floor === null ? 'a newer fence' : `fence ${floor}`} for ${stream_run.stream_name}, and this service has reached ${stream_run.fence}. ` +
        'Either the control database was restored from a backup, which the next attempt corrects, or another service writes to the same connection. Stop the other service',
      origin: 'destination',
      type: 'system_error',
      retryable: true,
      stream_name: stream_run.stream_name,
      internal_message: null,
      occurred_at: deps.now().toISOString(),
    },
  };
}
