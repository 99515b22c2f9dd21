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

/** After so many repetitions pages are taken to be endless: of one token or URL, and of pages that are only counted. */
const MAX_NAMED = 3;
const MAX_EQUAL = 10;

/**
 * Ends pages that would go on forever: too many, or a page that comes again and again. A few equal pages, tokens or URLs
 * are nothing unusual. Brent's cycle detection keeps no more than one name in memory.
 */
export class PageGuard {
  #kept: string | null = null;
  #steps = 0;
  #power = 1;
  #body: number | bigint | null = null;
  #repeats = 0;

  constructor(private readonly max_pages: number) {}

  /** @throws ConfigurationError when the next page should not be requested */
  check({ index, name, text, records }: NextPage): void {
    if (index + 1 >= this.max_pages) {
      throw new ConfigurationError('too_many_pages', `The request has more than ${this.max_pages} pages`);
    }
    if (name !== null) {
      if (name === this.#kept) this.#repeated(MAX_NAMED, 'the same next page was named again and again');
      this.#steps += 1;
      if (this.#steps === this.#power) [this.#kept, this.#steps, this.#power] = [name, 0, this.#power * 2];
      return;
    }
    const body = records > 0 ? Bun.hash(text) : null;
    if (body === null || body !== this.#body) this.#repeats = 0;
    else this.#repeated(MAX_EQUAL, `${MAX_EQUAL} pages in a row are the same, so the service ignores the page`);
    this.#body = body;
  }

  #repeated(most: number, why: string): void {
    this.#repeats += 1;
    if (this.#repeats >= most) throw new ConfigurationError('endless_pages', `The pages would never end: ${why}`);
  }
}
