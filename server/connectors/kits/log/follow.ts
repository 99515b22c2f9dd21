import type { Following, LogLag, ReplicatedBatch } from '../../contract/connector.ts';

/** A batch ends at the first commit past these limits, or inside a transaction at OVERSIZE times the limits. */
export const BATCH_ROWS = 10_000;
export const BATCH_BYTES = 512 * 1024;
export const OVERSIZE = 2;

/** A read that follows gives the states of idle streams this often, so that the source can release its log. */
const IDLE_STATES_MS = 10_000;

/** The changes of several tables since the last batch. */
export interface ChangeLog {
  /** Inside a transaction. */
  readonly isOpen: boolean;
  /** Changes have been read since the last batch. */
  readonly hasChanges: boolean;
  /** Of the last transaction. */
  readonly ageSeconds: number;
  /** Something waits for the states, also without changes. Ends the wait. Absent: nothing ever does. */
  takeAwaited?(): boolean;
  /** A batch is due: at a border of transactions, or inside one that is large. */
  isFull(): boolean;
  take(): Promise<ReplicatedBatch['parts']>;
  /** What was read up to this border of transactions. */
  border(): Promise<ReplicatedBatch>;
}

/** What is due at once: a part of a large transaction, or everything up to a border. */
export const dueBatch = async (log: ChangeLog): Promise<ReplicatedBatch> =>
  log.isOpen ? { parts: await log.take() } : await log.border();

export interface FollowedLog<Event> {
  log: ChangeLog;
  follow: Following;
  /** What the source has sent. Undefined: waits for as long as it takes. */
  next(until: AbortSignal | undefined): Promise<Iterable<Event>>;
  /** @returns a promise where a table has to be looked at first */
  read(event: Event): Promise<void> | null;
  /** Outside of transactions: where the read has come to. */
  position(): string;
  /** What is left is known to be much: batches are given once they are full. Absent: never known. */
  isBehind?(): boolean;
  /** How far the read is behind, in bytes. */
  lag(batch: ReplicatedBatch): LogLag;
}

/** Gives what has arrived at once. */
export async function* whileFollowed<Event>(followed: FollowedLog<Event>): AsyncGenerator<ReplicatedBatch> {
  const { log, follow } = followed;
  let [given, given_at] = ['', performance.now()];
  for (;;) {
    // Inside a transaction its end has to arrive first.
    for (const event of await followed.next(log.isOpen ? undefined : follow.until)) {
      const pending = followed.read(event);
      if (pending) await pending;
      if (log.isFull()) yield await dueBatch(log);
    }
    if (log.isOpen) continue;
    const position = followed.position();
    const ends = follow.until.aborted;
    const { hasChanges } = log;
    const isDue = performance.now() - given_at >= IDLE_STATES_MS && position !== given;
    const complete = log.takeAwaited?.() ?? false;
    const isGiven = hasChanges && !followed.isBehind?.();
    if (isGiven || isDue || ends || complete) {
      const seconds = hasChanges ? log.ageSeconds : 0;
      const batch = await log.border();
      yield { ...batch, lag: { ...followed.lag(batch), seconds }, complete };
      if (!hasChanges) [given, given_at] = [position, performance.now()];
    }
    if (ends) return;
  }
}

/** What is not read yet, measured beside the read from time to time. */
export class LagMeter {
  #bytes = 0;
  #measured = Number.NEGATIVE_INFINITY;

  constructor(private readonly onError: (error: unknown) => void) {}

  /** As last measured. */
  bytes(measure: () => Promise<number>): number {
    if (performance.now() - this.#measured >= IDLE_STATES_MS) {
      this.#measured = performance.now();
      measure().then((bytes) => (this.#bytes = bytes), this.onError);
    }
    return this.#bytes;
  }
}
