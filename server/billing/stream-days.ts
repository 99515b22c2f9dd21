import { sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';
import { type AccountDays, lastClosedDay, lastStreamDay } from './closed-days.ts';
import { type OpenDays, sumOpenDays } from './sum-open-days.ts';

/** Days of an account in one statement: the first time, there are those of years. */
const MAX_DAYS = 7;

/**
 * Sums the closed days of each account into `stream_days`. It follows `account_days` instead of being written with it: an
 * older worker closes days and knows nothing of streams.
 */
export const sumStreamDays = (db: Db): Promise<void> => sumOpenDays(db, { find: findUnsummed, sum: sumDaysOf });

/** Accounts with usage on closed days that are not summed, with the first such day and at most a week of them. */
async function findUnsummed(db: Db): Promise<OpenDays[]> {
  const rows = await db.execute<OpenDays>(sql`
    select a.id as account_id, first.day::text as start,
      least(known.closed, first.day + ${MAX_DAYS - 1}::int)::text as "end"
    from accounts a
      cross join lateral (
        select ${lastClosedDay(sql`a.id`)} as closed, ${lastStreamDay(sql`a.id`)} as summed) known
      cross join lateral (
        select min(day) as day from usage_ledger
        where account_id = a.id and day > known.summed and day <= known.closed) first
    where first.day is not null`);
  return [...rows];
}

/** In one statement, so that readers see the days summed or not. A day that another worker sums is left to it. */
async function sumDaysOf(db: Db, { account_id, start, end }: AccountDays): Promise<void> {
  await db.execute(sql`
    insert into stream_days (account_id, connection_id, day, stream_name, rows_free, rows_paid, credits_used,
      credits_free, bytes_loaded)
    select account_id, connection_id, day, stream_name, sum(rows_free), sum(rows_paid), sum(credits_used),
      sum(credits_free), sum(bytes_loaded)
    from usage_ledger where account_id = ${account_id} and day between ${start} and ${end}
    group by account_id, connection_id, day, stream_name order by connection_id, day, stream_name
    on conflict do nothing`);
}
