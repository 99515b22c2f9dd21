/** Levels of zstd. The second one is DuckDB's. */
const [FAST, STANDARD] = [1, 3] as const;
/** Of a fast page, compared to a standard one. */
const MAX_GROWTH = 1.02;
/** In smaller samples the levels differ less than in whole pages: zstd adapts them to sizes up to 256 kB. */
const SAMPLE_BYTES = 512 * 1024;
/** A smaller page is compressed in the time that the samples take. */
const MIN_PAGE_BYTES = 2 * SAMPLE_BYTES;

/** Compresses the pages of one column on other threads. The same by `node:zlib` takes twice the processor time. */
export class PageCompressor {
  #level: number | null = null;

  async compress(page: Uint8Array<ArrayBuffer>): Promise<Buffer> {
    return Bun.zstdCompress(page, { level: await this.#levelOf(page) });
  }

  async #levelOf(page: Uint8Array<ArrayBuffer>): Promise<number> {
    if (page.length < MIN_PAGE_BYTES) return STANDARD;
    this.#level ??= await bestLevel(page.subarray(0, SAMPLE_BYTES));
    return this.#level;
  }
}

/**
 * Texts with little repetition, such as hashes, UUIDs and URLs, become no larger by the fast level, which takes a third of
 * the processor time. Prose would grow by a sixth.
 */
async function bestLevel(sample: Uint8Array<ArrayBuffer>): Promise<number> {
  const [fast, standard] = await Promise.all([FAST, STANDARD].map((level) => Bun.zstdCompress(sample, { level })));
  return fast!.length <= MAX_GROWTH * standard!.length ? FAST : STANDARD;
}
