const MB = 1024 * 1024;
const CEILING = 120 * MB;
const STEP = 12 * MB;
const EVERY_BYTES = 4 * MB;

let lowest = CEILING;
let ceiling = lowest;
let moved = 0;

/** For processes that hold more than a worker does: there, a collection frees little and takes longer. */
export function raiseMemoryCeiling(mb: number): void {
  lowest = mb * MB;
  ceiling = lowest;
}

/**
 * Collects garbage once the process has grown; called with the number of bytes moved. Without it, socket buffers
 * accumulate with the length of a run: a peak of 136 MB for 1M rows, 191 MB for 10M. Collecting every 16 MB moved also
 * keeps memory flat, but at 15–40 ms each takes a seventh of the run; collecting by process size is rare.
 */
export function limitMemoryGrowth(bytes: number): void {
  moved += bytes;
  if (moved < EVERY_BYTES) return;
  moved = 0;
  if (process.memoryUsage.rss() < ceiling) return;
  Bun.gc(true);
  ceiling = Math.max(lowest, process.memoryUsage.rss() + STEP);
}
