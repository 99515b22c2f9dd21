import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';

/** @throws the signal's reason when it is aborted during the pause */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms <= 0) return;
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : error;
  });
}

export interface RateLimits {
  /** Null: unlimited. */
  requests_per_second: number | null;
  concurrency: number;
}

/** Limits concurrent requests and requests per second. Requests start in the order in which they arrive. */
export class RateLimiter {
  #running = 0;
  #next = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly limits: RateLimits) {}

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
    const cancel = () => {
      const at = this.#waiting.indexOf(resolve);
      // Absent: the slot was handed over just before the abort.
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      reject(signal.reason);
    };
    this.#waiting.push(resolve);
    signal.addEventListener('abort', cancel, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', cancel));
  }

  /** Hands the slot to the next waiting request, if there is one. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }
}

const MAX_SHARED = 1000;

/** Objects shared by all streams of this process that use the same service; the least recently used are dropped. */
export class Shared<Thing extends object> {
  readonly #things = new LRUCache<string, Thing>({ max: MAX_SHARED });

  get(key: string, create: () => Thing): Thing {
    const known = this.#things.get(key);
    if (known) return known;
    const created = create();
    this.#things.set(key, created);
    return created;
  }
}

/** A key that identifies a service and its credentials without containing them. */
export const sharedKey = (...parts: unknown[]): string => Bun.SHA256.hash(JSON.stringify(parts), 'hex');

const limiters = new Shared<RateLimiter>();

/** One limiter for all streams of an account that use the same service. @param identity service and credentials */
export const sharedLimiter = (limits: RateLimits, ...identity: unknown[]): RateLimiter =>
  limiters.get(sharedKey(limits, identity), () => new RateLimiter(limits));
