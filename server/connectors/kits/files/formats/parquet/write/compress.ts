/** Levels of zstd, the fastest first. The last one is DuckDB's. */
const LEVELS = [1, 2, 3] as const;
const STANDARD = 3;
/** Of a page by a faster level, compared to the smallest one. */
const MAX_GROWTH = 1.02;
/** In smaller samples the levels differ less than in whole pages: zstd adapts them to sizes up to 256 kB. */
const SAMPLE_BYTES = 512 * 1024;

/** Compresses the pages of one column on other threads. The same by `node:zlib` takes twice the processor time. */
export class PageCompressor {
  #level: number | null = null;

  async compress(page: Uint8Array<ArrayBuffer>): Promise<Buffer> {
    return Bun.zstdCompress(page, { level: await this.#levelOf(page) });
  }

  async #levelOf(page: Uint8Array<ArrayBuffer>): Promise<number> {
    // A smaller page is compressed in the time that the samples take.
    if (page.length < SAMPLE_BYTES) return STANDARD;
    this.#level ??= await bestLevel(page.subarray(0, SAMPLE_BYTES));
    return this.#level;
  }
}

/**
 * Texts with little repetition, such as hashes, UUIDs and URLs, and numbers become no larger by a faster level, which takes
 * a third to a half of the processor time. Prose would grow by a sixth, and times and repeated numbers would double.
 */
async function bestLevel(sample: Uint8Array<ArrayBuffer>): Promise<number> {
  const sizes = await Promise.all(LEVELS.map(async (level) => (await Bun.zstdCompress(sample, { level })).length));
  const most = MAX_GROWTH * Math.min(...sizes);
  return LEVELS.find((_, index) => sizes[index]! <= most) ?? STANDARD;
}
