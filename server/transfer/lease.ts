import { TimeoutError } from '../connectors/contract/errors.ts';
import { LEASE_SECONDS } from '../runs/claim-stream.ts';

/** The lease counts from the heartbeat in the control database, whose time of arrival is not known here. */
const MARGIN_MS = 1000;
const LENGTH_MS = LEASE_SECONDS * 1000 - MARGIN_MS;

/** The control database was not reached for so long that another worker may have the stream. */
class LeaseEnded extends TimeoutError {
  constructor() {
    super(
      'lease_ended',
      'The worker did not reach the control database in time and stopped, so that no other worker sends the same rows meanwhile',
    );
  }
}

/**
 * How long this worker may have effects at a destination that checks no fence. Counted by the monotonic clock of this
 * process, from the moment at which the last recorded heartbeat was sent.
 */
export class Lease {
  #until: number;
  #timer: Timer | undefined;

  constructor(
    since: number,
    private readonly onEnd: (reason: LeaseEnded) => void,
  ) {
    this.#until = since + LENGTH_MS;
    this.#arm();
  }

  renew(since: number): void {
    this.#until = Math.max(this.#until, since + LENGTH_MS);
    this.#arm();
  }

  /** Call before each effect: the timer is late in a process that was frozen. @throws LeaseEnded */
  assert(): void {
    if (performance.now() < this.#until) return;
    const reason = new LeaseEnded();
    this.onEnd(reason);
    throw reason;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #arm(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.onEnd(new LeaseEnded()), Math.max(0, this.#until - performance.now()));
    this.#timer.unref();
  }
}
