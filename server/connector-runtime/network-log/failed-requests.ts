import { LRUCache } from 'lru-cache';
import type { RequestRecord } from '../../connectors/contract/connector.ts';

const MAX_REQUESTS = 1000;

/** Remembers failed requests until they are repeated, so that a log entry can name the request it retries. */
export class FailedRequests {
  readonly #ids = new LRUCache<string, string>({ max: MAX_REQUESTS });

  /** Id of the failed request that this one repeats, or null. */
  repeatedBy(request: RequestRecord): string | null {
    return this.#ids.size === 0 ? null : (this.#ids.get(identityOf(request)) ?? null);
  }

  record(request: RequestRecord, id: string, failed: boolean): void {
    if (failed) this.#ids.set(identityOf(request), id);
    else if (this.#ids.size > 0) this.#ids.delete(identityOf(request));
  }
}

// Headers are left out: a retry with a refreshed token is still the same request.
const identityOf = ({ method, url, query, body }: RequestRecord) =>
  Bun.hash(JSON.stringify([method, url, query ?? null, body ?? null])).toString(36);
