import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const MEMORY = '/dev/shm';
/** The databases and files of four test processes stay below 2 GB. */
const ROOM_BYTES = 6e9;

/**
 * A folder in memory for what tests write, or the temporary folder where memory is short: to create and drop databases on
 * a disk took a fifth of PostgreSQL's processor time.
 */
export function fastFolder(): string {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return Math.min(bavail * bsize, availableBytes()) > ROOM_BYTES ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** What a folder in memory may take besides processes: its own limit can be all memory of the machine. */
function availableBytes(): number {
  const [, kilobytes] = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}
