import { edenGC } from 'bun:jsc';
import { heldMemory } from '../../platform/memory/held-memory.ts';

const MB = 1024 * 1024;
const CEILING = 120 * MB;
/** With no limit, four streams to Parquet side by side took 488 MB instead of 361. */
const MAX_HELD = 160 * MB;
/** Growth after which young objects are collected, and all of them. */
const YOUNG_STEP = 4 * MB;
const FULL_STEP = 12 * MB;
/** What moving a byte may leave behind: rows of Excel, whose checks came too late at one per MB, at 272 instead of 233 MB. */
const GARBAGE_PER_BYTE = 10;
const MIN_INTERVAL = MB / 4;

let lowest = CEILING;
/** Resident after the last collection, and after the last full one. */
let afterYoung = 0;
let afterFull = 0;
let moved = 0;
let interval = MIN_INTERVAL;

/** For processes that hold more than a worker does: there, a collection frees little and takes longer. */
export function raiseMemoryCeiling(mb: number): void {
  lowest = mb * MB;
}

/**
 * Collects garbage once the process has grown; called with the number of bytes moved. Without it, socket buffers
 * accumulate with the length of a run: a peak of 136 MB for 1M rows, 191 MB for 10M. Almost all of it is young: collecting
 * only that takes 4 to 12 ms of processor time and the memory is used again, where a full collection takes 60 to 90 ms,
 * a third of a run that reads a log. So a full one follows only where young ones did not stop the growth.
 */
export function limitMemoryGrowth(bytes: number): void {
  moved += bytes;
  if (moved < interval) return;
  moved = 0;
  const resident = collectAbove(process.memoryUsage.rss());
  // A look takes 36 µs: at each quarter of a MB it was 3 % of the worker's time for a table that is copied.
  interval = Math.max(MIN_INTERVAL, (youngLimit() - resident) / GARBAGE_PER_BYTE);
}

const floor = () => lowest + Math.min(heldMemory(), MAX_HELD);
const youngLimit = () => Math.max(floor(), afterYoung + YOUNG_STEP);
const fullLimit = () => Math.max(floor(), afterFull) + FULL_STEP;

/** @returns the resident memory after it */
function collectAbove(before: number): number {
  if (before < youngLimit()) return before;
  const isFull = before >= fullLimit();
  if (isFull) Bun.gc(true);
  else edenGC();
  afterYoung = process.memoryUsage.rss();
  if (isFull) afterFull = afterYoung;
  return afterYoung;
}
