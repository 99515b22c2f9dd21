import { inArray, sql } from 'drizzle-orm';
import { completeUntil } from '../../db/horizon.ts';
import type { Db } from '../../db/types.ts';
import { LIVE_RUN } from '../pipeline/run-states.ts';
import { addDays, utcDay } from '../platform/utc-days.ts';
import { type AccountDays, RUN_SUMS, lastClosedDay, runsOf } from './closed-days.ts';
import { sumStreamDays } from './stream-days.ts';
import { type OpenDays, sumOpenDays } from './sum-open-days.ts';

/** An entry of the ledger has the day of its statement, and the transaction gets its id a moment later. */
const MARGIN_MS = 3_600_000;
/** Days of an account in one statement: the first time, there are those of years. */
const MAX_DAYS = 31;

/**
 * Sums the days of each account that are over and whose runs have all ended into `account_days` and `connection_months`,
 * then their streams into `stream_days`. Any number of workers may do it. Workers of earlier releases write the ledger
 * and the runs as before, and days are closed by what these contain.
 */
export async function closeDays({ db }: { db: Db }): Promise<void> {
  await sumOpenDays(db, { find: findOpen, sum: closeDaysOf });
  await sumStreamDays(db);
}

/** Accounts with usage or runs on days that can be closed, with the first such day and at most a month of them. */
async function findOpen(db: Db): Promise<OpenDays[]> {
  const complete = utcDay(new Date(Date.parse(await completeUntil(db)) - MARGIN_MS));
  const last = addDays(complete, -1);
  const rows = await db.execute<OpenDays>(sql`
    select a.id as account_id, first.day::text as start, least(open.last, first.day + ${MAX_DAYS - 1}::int)::text as "end"
    from accounts a
      left join (
        select account_id, min((created_at at time zone 'UTC')::date) - 1 as last from connection_runs
        where ${inArray(sql`status`, LIVE_RUN)} group by account_id) live on live.account_id = a.id
      cross join lateral (select least(live.last, ${last}::date) as last, ${lastClosedDay(sql`a.id`)} as closed) open
      cross join lateral (
        select least(
          (select min(day) from usage_ledger where account_id = a.id and day > open.closed),
          (select (min(created_at) at time zone 'UTC')::date from connection_runs
            where account_id = a.id and created_at >= (open.closed + 1)::timestamp at time zone 'UTC'),
          (select min(day) from run_days where account_id = a.id and day > open.closed)) as day) first
    where a.suspended_at is null and first.day <= open.last`);
  return [...rows];
}

/** In one statement, so that readers see the days closed or open. A day that another worker closes is left to it. */
async function closeDaysOf(db: Db, days: AccountDays): Promise<void> {
  const { account_id, start, end } = days;
  await db.execute(sql`
    with facts as materialized (
      select connection_id, day, kind, rows_free, rows_paid, credits_used, credits_free, bytes_loaded, 0 as runs,
        0 as runs_succeeded, 0 as runs_partially_succeeded, 0 as runs_failed
      from usage_ledger where account_id = ${account_id} and day between ${start} and ${end}
      union all
      select ran.connection_id, ran.day, c.kind, 0, 0, 0, 0, 0, ${RUN_SUMS}
      from ${runsOf(days)} ran
        join connections c on c.id = ran.connection_id
      group by ran.connection_id, ran.day, c.kind
    ), days as (
      insert into account_days (account_id, day, kind, rows_free, rows_paid, credits_used, credits_free, bytes_loaded,
        runs, runs_succeeded, runs_partially_succeeded, runs_failed)
      select ${account_id}, day, kind, sum(rows_free), sum(rows_paid), sum(credits_used), sum(credits_free),
        sum(bytes_loaded), sum(runs), sum(runs_succeeded), sum(runs_partially_succeeded), sum(runs_failed)
      from facts group by day, kind order by day, kind
      on conflict do nothing
      returning day
    )
    insert into connection_months as known (account_id, month, connection_id, rows, runs)
    select ${account_id}, date_trunc('month', day)::date as month, connection_id, sum(rows_free + rows_paid), sum(runs)
    from facts where day in (select day from days)
    group by month, connection_id order by month, connection_id
    on conflict (account_id, month, connection_id)
      do update set rows = known.rows + excluded.rows, runs = known.runs + excluded.runs`);
}
