import { LRUCache } from 'lru-cache';
import type { Deps } from '../deps.ts';

const TTL_MS = 60_000;
const MAX_ANSWERS = 1000;

/**
 * Caches answers of connectors for 60 s. Concurrent callers share one request. Failures are not cached: they reach only
 * the callers that are already waiting.
 */
export class AnswerCache<Answer> {
  readonly #caches = new WeakMap<Deps, LRUCache<string, Promise<Answer>>>();

  get(deps: Deps, key: string, fetch: () => Promise<Answer>): Promise<Answer> {
    const answers = this.#answersOf(deps);
    const known = answers.get(key);
    if (known) return known;
    const pending = fetch();
    answers.set(key, pending);
    pending.catch(() => answers.peek(key) === pending && answers.delete(key));
    return pending;
  }

  #answersOf(deps: Deps): LRUCache<string, Promise<Answer>> {
    const known = this.#caches.get(deps);
    if (known) return known;
    const answers = new LRUCache<string, Promise<Answer>>({
      max: MAX_ANSWERS,
      ttl: TTL_MS,
      // Read the clock at every lookup: tests move it.
      ttlResolution: 0,
      perf: { now: () => deps.now().getTime() },
    });
    this.#caches.set(deps, answers);
    return answers;
  }
}
