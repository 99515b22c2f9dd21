import type { Db } from '../../db/types.ts';
import type { DaySpan } from '../platform/utc-days.ts';
import { type AccountDays, daysOfAccount } from './closed-days.ts';

/** Days of an account that have no sums yet. */
export interface OpenDays extends DaySpan, Record<string, unknown> {
  account_id: string;
}

/** The database gets time for other work between two statements. */
const PAUSE_MS = 50;

/** Sums the days that `find` returns, until it returns none. */
export async function sumOpenDays(
  db: Db,
  { find, sum }: { find(db: Db): Promise<OpenDays[]>; sum(db: Db, days: AccountDays): Promise<void> },
): Promise<void> {
  for (let open = await find(db); open.length > 0; open = await find(db)) {
    for (const { account_id, ...days } of open) {
      await sum(db, daysOfAccount(account_id, days));
      await Bun.sleep(PAUSE_MS);
    }
  }
}
