import type { Logger } from 'pino';
import { periodic } from '../server/platform/periodic.ts';
import { type Database, DatabaseUnresponsive } from './index.ts';

const READ_EVERY_MS = 1_000;

/** The clock of the control database, by which schedules, leases and expiries are decided on every machine. */
export interface DatabaseClock {
  now(): Date;
  stop(): Promise<void>;
}

/**
 * Reads the database's clock every second. In between this process's monotonic clock continues it, which does not jump
 * when the machine's time is set. A server that does not answer in time is unresponsive: everything that waits for it
 * fails then, because a driver would wait for ever.
 */
export async function startClock(
  database: Database,
  options: { unresponsive_after_ms: number; log: Pick<Logger, 'warn'> },
): Promise<DatabaseClock> {
  const { unresponsive_after_ms, log } = options;
  const read = async () => {
    const asked = performance.now();
    const time = await database.askTime({ within_ms: unresponsive_after_ms });
    return time - (asked + performance.now()) / 2;
  };
  /** The database's time at which `performance.now()` was zero. */
  let start = await read();
  let isFailing = false;
  const reading = periodic(
    async () => {
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
