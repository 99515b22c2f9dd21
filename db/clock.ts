import type { Logger } from 'pino';
import { periodic } from '../server/platform/periodic.ts';
import { type Database, DatabaseUnresponsive } from './index.ts';

const READ_EVERY_MS = 1_000;
/**
 * While nothing waits for the server. A read wakes this process four times and lets it collect its garbage, which is most
 * of what an idle one does; in this time the two clocks drift apart by about a millisecond.
 */
const READ_IDLE_EVERY_MS = 10_000;
/** Of the time of this machine against its monotonic clock: it was suspended, or its time was set. */
const JUMP_MS = 100;

/** The clock of the control database, by which schedules, leases and expiries are decided on every machine. */
export interface DatabaseClock {
  now(): Date;
  stop(): Promise<void>;
}

/**
 * Reads the database's clock every second, or every ten seconds while nothing waits for the server. In between this
 * process's monotonic clock continues it, which does not jump when the machine's time is set. A server that does not answer
 * in time is unresponsive: everything that waits for it fails then, because a driver would wait for ever.
 */
export async function startClock(
  database: Database,
  options: { unresponsive_after_ms: number; log: Pick<Logger, 'warn'> },
): Promise<DatabaseClock> {
  const { unresponsive_after_ms, log } = options;
  let read_at = 0;
  let offset = 0;
  const read = async () => {
    const asked = performance.now();
    const time = await database.askTime({ within_ms: unresponsive_after_ms });
    read_at = performance.now();
    offset = Date.now() - read_at;
    return time - (asked + read_at) / 2;
  };
  /** The database's time at which `performance.now()` was zero. */
  let start = await read();
  let isFailing = false;
  const isDue = (now: number) =>
    isFailing ||
    database.isAwaited() ||
    now - read_at >= READ_IDLE_EVERY_MS ||
    Math.abs(Date.now() - now - offset) > JUMP_MS;
  // Created before the loops that ask the server: it looks before they have sent what an idle process always asks.
  const reading = periodic(
    async () => {
      if (!isDue(performance.now())) return;
      start = await read();
      isFailing = false;
    },
    {
      every_ms: READ_EVERY_MS,
      onError: (error) => {
        if (error instanceof DatabaseUnresponsive) database.failPending(error);
        if (!isFailing) log.warn({ err: error }, 'The control database does not answer');
        isFailing = true;
      },
    },
  );
  return {
    now: () => new Date(start + performance.now()),
    stop: () => reading.stop(),
  };
}
