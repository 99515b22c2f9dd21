import type { Deps } from '../deps.ts';
import { type Periodic, periodic } from '../platform/periodic.ts';
import { recordGroupProgress } from '../runs/claim-stream.ts';
import { type Attempt, ClaimLost, StopRequested } from './attempt.ts';

const HEARTBEAT_MS = 1000;

/** Attempts at streams of one run that are moved together: one heartbeat for all, and one end. */
export class AttemptGroup {
  #timer: Periodic | null = null;

  constructor(
    private readonly deps: Deps,
    readonly attempts: readonly Attempt[],
  ) {}

  get run_id(): string {
    return this.attempts[0]!.claim.run.id;
  }

  /** Records progress, renews the claims and checks for a stop, again and again. */
  start(): void {
    const [leader] = this.attempts as [Attempt];
    // The sessions of all streams are its own, so it notices when they stand still.
    leader.watch();
    leader.signal.addEventListener('abort', () => this.abort(leader.signal.reason), { once: true });
    const onError = (error: unknown) => this.deps.log.warn({ err: error }, 'heartbeat failed');
    this.#timer = periodic(() => this.#send(), { every_ms: HEARTBEAT_MS, onError });
  }

  heartbeat(): void {
    this.#timer?.wake();
  }

  async #send(): Promise<void> {
    for (const attempt of this.attempts) attempt.countRequests();
    // If the database is unavailable for long, the lease expires and the fence protects the rows.
    const status = await recordGroupProgress(this.deps.db, this.attempts);
    if (status === null) this.abort(new ClaimLost('Another worker holds a stream of this group'));
    if (status === 'stopping') this.abort(new StopRequested('A stop of the run was requested'));
  }

  abort(reason: Error): void {
    for (const attempt of this.attempts) attempt.abort(reason);
  }

  /** As `Attempt.close`, for all. */
  async close(): Promise<void> {
    await this.#timer?.stop();
    await Promise.all(this.attempts.map((attempt) => attempt.close()));
  }
}
