import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ReplicatedBatch } from '../../connectors/contract/connector.ts';

/** What is read ahead while rows are applied: as much as a part. The sockets hold more of it, at less cost than rows do. */
const AHEAD_BYTES = 2 * 1024 * 1024;

export interface Gathered {
  batch: ReplicatedBatch;
  /** More has arrived than fits in one batch. */
  hasMore: boolean;
}

/**
 * Reads on while the consumer works, and gives what has arrived until then as one batch: whole transactions, so that the
 * next commit shows all of them.
 */
export async function* gather(open: () => AsyncIterable<ReplicatedBatch>): AsyncGenerator<Gathered> {
  const ahead = new Ahead();
  const items = open()[Symbol.asyncIterator]();
  const reading = ahead.fill(items);
  try {
    for (;;) {
      const next = await ahead.next();
      if (!next) return;
      yield next;
    }
  } finally {
    ahead.close();
    await reading;
    await items.return?.();
  }
}

class Ahead {
  readonly #waiting: ReplicatedBatch[] = [];
  #bytes = 0;
  #ended = false;
  #closed = false;
  #failed: { error: unknown } | null = null;
  #changed = Promise.withResolvers<void>();

  async fill(items: AsyncIterator<ReplicatedBatch>): Promise<void> {
    try {
      for (;;) {
        while (this.#bytes >= AHEAD_BYTES && !this.#closed) await this.#changed.promise;
        if (this.#closed) return;
        const { done, value } = await items.next();
        if (done) return;
        this.#add(value);
        // The consumer's answers arrive between two reads. A log that never waits would hold them up by 50 to 80 ms each.
        await nextTurn();
      }
    } catch (error) {
      this.#failed = { error };
    } finally {
      this.#ended = true;
      this.#wake();
    }
  }

  /** Null: the end. */
  async next(): Promise<Gathered | null> {
    while (this.#waiting.length === 0 && !this.#ended) await this.#changed.promise;
    const batch = this.#waiting.shift();
    if (batch) {
      this.#bytes -= bytesOf(batch);
      this.#wake();
      return { batch, hasMore: this.#waiting.length > 0 };
    }
    if (this.#failed) throw this.#failed.error;
    return null;
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** The part of a transaction does not belong to the border before it. */
  #add(batch: ReplicatedBatch): void {
    this.#bytes += bytesOf(batch);
    const last = this.#waiting.at(-1);
    if (last?.states && batch.states && !last.complete && this.#bytes < AHEAD_BYTES) {
      this.#waiting[this.#waiting.length - 1] = { ...batch, parts: [...last.parts, ...batch.parts] };
    } else this.#waiting.push(batch);
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

const bytesOf = ({ parts }: ReplicatedBatch) => parts.reduce((sum, { batch }) => sum + batch.bytes, 0);
