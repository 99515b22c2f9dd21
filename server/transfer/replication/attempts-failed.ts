import { SideError } from '../../connector-runtime/side-error.ts';
import { StreamsFailed } from '../../connectors/contract/replication.ts';
import type { Attempt } from '../attempt.ts';

/** Some streams of a run failed; the others could go on without them. */
export class AttemptsFailed extends Error {
  constructor(readonly failures: ReadonlyMap<Attempt, unknown>) {
    super(`${failures.size} streams failed`);
  }
}

/** Names the attempts in what was thrown, instead of their indexes in `attempts`. */
export function withAttempts(thrown: unknown, attempts: readonly Attempt[]): unknown {
  const origin = thrown instanceof SideError ? thrown.origin : null;
  const error = thrown instanceof SideError ? thrown.cause : thrown;
  if (!(error instanceof StreamsFailed)) return thrown;
  return new AttemptsFailed(
    new Map(
      Array.from(error.failures, ([at, cause]) => [
        attempts[at]!,
        origin === null || cause instanceof SideError ? cause : new SideError(origin, cause),
      ]),
    ),
  );
}

/** Runs the work for each attempt, one after the other. @throws StreamsFailed with the errors of all that fail */
export async function ofEach<Result>(
  attempts: readonly Attempt[],
  work: (attempt: Attempt, at: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const failures = new Map<number, unknown>();
  for (const [at, attempt] of attempts.entries()) {
    attempt.signal.throwIfAborted();
    try {
      results.push(await work(attempt, at));
    } catch (error) {
      failures.set(at, error);
    }
  }
  if (failures.size > 0) throw new StreamsFailed(failures);
  return results;
}
