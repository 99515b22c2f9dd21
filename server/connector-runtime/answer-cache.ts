import { LRUCache } from 'lru-cache';
import type { Deps } from '../deps.ts';

const TTL_MS = 60_000;
const MAX_ANSWERS = 1000;

/**
 * Answers of connectors, kept for 60 s per service. Concurrent callers share one request, and a failure reaches only
 * the callers that waited for it.
 */
export class AnswerCache<Answer> {
  readonly #perService = new WeakMap<Deps, LRUCache<string, Promise<Answer>>>();

  get(deps: Deps, key: string, ask: () => Promise<Answer>): Promise<Answer> {
    const answers = this.#answersOf(deps);
    const known = answers.get(key);
    if (known) return known;
    const asked = ask();
    answers.set(key, asked);
    asked.catch(() => answers.peek(key) === asked && answers.delete(key));
    return asked;
  }

  #answersOf(deps: Deps): LRUCache<string, Promise<Answer>> {
    const known = this.#perService.get(deps);
    if (known) return known;
    const answers = new LRUCache<string, Promise<Answer>>({
      max: MAX_ANSWERS,
      ttl: TTL_MS,
      // The clock is read at every lookup: tests move it.
      ttlResolution: 0,
      perf: { now: () => deps.now().getTime() },
    });
    this.#perService.set(deps, answers);
    return answers;
  }
}
