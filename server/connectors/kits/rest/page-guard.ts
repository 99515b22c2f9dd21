import { ConfigurationError } from '../../contract/errors.ts';

interface NextPage {
  /** Number of pages before the one just read. */
  index: number;
  /** Token or URL of the next page; null where pages are counted. */
  name: string | null;
  /** Body and number of records of the page just read. */
  text: string;
  records: number;
}

/**
 * Ends pages that would go on forever: too many, a token or URL that comes twice, or the same records twice in a row.
 * Brent's cycle detection keeps no more than one name in memory.
 */
export class PageGuard {
  #kept: string | null = null;
  #steps = 0;
  #power = 1;
  #body: number | bigint | null = null;

  constructor(private readonly max_pages: number) {}

  /** @throws ConfigurationError when the next page should not be requested */
  check({ index, name, text, records }: NextPage): void {
    if (index + 1 >= this.max_pages) {
      throw new ConfigurationError('too_many_pages', `The request has more than ${this.max_pages} pages`);
    }
    if (name !== null) {
      if (name === this.#kept) throw endless('the same next page was named before');
      this.#steps += 1;
      if (this.#steps === this.#power) [this.#kept, this.#steps, this.#power] = [name, 0, this.#power * 2];
      return;
    }
    const body = records > 0 ? Bun.hash(text) : null;
    if (body !== null && body === this.#body) throw endless('two pages are the same, so the service ignores the page');
    this.#body = body;
  }
}

const endless = (why: string) => new ConfigurationError('endless_pages', `The pages would never end: ${why}`);
