import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';

/** @throws the signal's reason when it is aborted meanwhile. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms <= 0) return;
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : error;
  });
}

export interface PaceLimits {
  requests_per_second: number | null;
  concurrency: number;
}

/** Lets so many requests go at once and so many a second, in the order in which they came. */
export class Pace {
  #running = 0;
  #next = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly limits: PaceLimits) {}

  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    await this.#enter(signal);
    try {
      const { requests_per_second: rate } = this.limits;
      if (rate !== null) {
        const now = performance.now();
        const at = Math.max(now, this.#next);
        this.#next = at + 1000 / rate;
        await pause(at - now, signal);
      }
      return await work();
    } finally {
      this.#leave();
    }
  }

  async #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#running < this.limits.concurrency) {
      this.#running += 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => {
      const at = this.#waiting.indexOf(resolve);
      // Not there any more: the turn was handed over just now.
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      reject(signal.reason);
    };
    this.#waiting.push(resolve);
    signal.addEventListener('abort', giveUp, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  /** Hands its place to the next one, if somebody waits. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }
}

const MAX_SHARED = 1000;

/** Objects that all streams of this process share if they call the same service. Drops the least recently used ones. */
export class Shared<Thing extends object> {
  readonly #things = new LRUCache<string, Thing>({ max: MAX_SHARED });

  get(key: string, create: () => Thing): Thing {
    const found = this.#things.get(key);
    if (found) return found;
    const created = create();
    this.#things.set(key, created);
    return created;
  }
}

/** A key that tells services and credentials apart without holding them. */
export const sharedKey = (...parts: unknown[]): string => Bun.SHA256.hash(JSON.stringify(parts), 'hex');
