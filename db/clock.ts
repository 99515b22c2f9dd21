import { sql } from 'drizzle-orm';
import { periodic } from '../server/platform/periodic.ts';
import type { Db } from './types.ts';

const READ_EVERY_MS = 60_000;

/** The clock of the control database, by which schedules, leases and expiries are decided on every machine. */
export interface DatabaseClock {
  now(): Date;
  stop(): Promise<void>;
}

/**
 * Reads the database's clock once a minute. In between this process's monotonic clock continues it, which does not jump
 * when the machine's time is set.
 */
export async function startClock(db: Db, onError: (error: unknown) => void): Promise<DatabaseClock> {
  let start = await readStart(db);
  const reading = periodic(
    async () => {
      start = await readStart(db);
    },
    { every_ms: READ_EVERY_MS, onError },
  );
  return {
    now: () => new Date(start + performance.now()),
    stop: () => reading.stop(),
  };
}

/** The database's time at which `performance.now()` was zero. */
async function readStart(db: Db): Promise<number> {
  const asked = performance.now();
  const [row] = await db.execute<{ ms: string }>(sql`select extract(epoch from clock_timestamp()) * 1000 as ms`);
  return Number(row?.ms) - (asked + performance.now()) / 2;
}
