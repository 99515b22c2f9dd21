import { type Periodic, periodic } from '../periodic.ts';

const EVERY_MS = 60_000;
/** Share of a core below which the process was idle between two looks. An idle worker takes a tenth of it. */
const IDLE_SHARE = 0.02;
const MAX_GROWTH = 16 * 1024 * 1024;

/**
 * Drops garbage and compiled code while the process is idle, once the process has grown: what is called again is compiled
 * again. Most of what a start or a run has compiled is not. It frees 14 of the 112 MB of an API that has just started and
 * 7 of the 66 MB of a worker, where a full collection frees 7 and 3, and takes 80 ms of processor time.
 */
export function shrinkWhenIdle({ every_ms = EVERY_MS } = {}): Periodic {
  const idle_us = every_ms * 1000 * IDLE_SHARE;
  let smallest = 0;
  let used = processorTime();
  const look = async () => {
    const before = used;
    used = processorTime();
    const resident = process.memoryUsage.rss();
    smallest = Math.min(smallest, resident);
    if (used - before > idle_us || resident < smallest + MAX_GROWTH) return;
    Bun.shrink();
    // The allocator gives pages back later: the next looks find out how small the process has become.
    smallest = resident;
  };
  return periodic(look, { every_ms, onError: () => {} });
}

function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
