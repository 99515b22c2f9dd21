import type { RequestRecord } from '../connectors/contract/connector.ts';

const MAX_REMEMBERED = 1000;

/** The requests of a log that failed and were not yet made again, so that the log can say what is a retry of what. */
export class FailedRequests {
  #ids = new Map<string, string>();

  /** The id of the failed request that this one repeats, if it does. */
  repeatedBy(request: RequestRecord): string | null {
    return this.#ids.size === 0 ? null : (this.#ids.get(sameness(request)) ?? null);
  }

  ended(request: RequestRecord, id: string, failed: boolean): void {
    if (failed) this.#ids.set(sameness(request), id);
    else if (this.#ids.size > 0) this.#ids.delete(sameness(request));
    if (this.#ids.size > MAX_REMEMBERED) this.#ids.delete(this.#ids.keys().next().value!);
  }
}

// Without the headers: a refreshed token makes no other request of it.
const sameness = ({ method, url, query, body }: RequestRecord) =>
  Bun.hash(JSON.stringify([method, url, query ?? null, body ?? null])).toString(36);
