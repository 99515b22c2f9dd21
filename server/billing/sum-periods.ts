import { sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';

/** In one statement: many changes of a connection become one update of its sums. */
const BATCH = 10_000;

/** The first day of the billing period of `day`, as `billingPeriod` in `platform/utc-days.ts` has it. */
const BILLING_START = sql`(
  select max(start::date) from (
    select date '2000-01-01' + (extract(day from a.billing_anchor)::int - 1) as first,
      (extract(year from day)::int - 2000) * 12 + extract(month from day)::int - 1 as months) known,
    lateral (values (first + make_interval(months => months)), (first + make_interval(months => months - 1))) s (start)
  where start <= day)`;

/** Of a row of `insert … on conflict do update`: one that existed has been locked by this transaction. */
const IS_NEW = sql`xmax = 0`;

/**
 * Moves the rows and runs that have been queued into `connection_periods`, in one statement: readers see them at one of the
 * two places. Any number of workers may do it; they take different changes and update sums in one order.
 */
export async function sumPeriods({ db }: { db: Db }): Promise<void> {
  for (let taken = BATCH; taken === BATCH; ) taken = await sumBatch(db);
}

async function sumBatch(db: Db): Promise<number> {
  const [done] = await db.execute<{ count: number }>(sql`
    with taken as (
      delete from connection_period_changes where ctid = any(array(
        select ctid from connection_period_changes order by account_id, seq limit ${BATCH} for no key update skip locked))
      returning *
    ), periods as (
      select distinct account_id, day, period.start
      from taken join accounts a on a.id = account_id,
        lateral (values (date_trunc('month', day::timestamp)::date), (${BILLING_START})) period (start)
    ), summed as (
      insert into connection_periods as known (account_id, start, connection_id, rows, runs)
      select account_id, start, connection_id, sum(rows), sum(runs)
      from taken join periods using (account_id, day)
      group by account_id, start, connection_id order by account_id, start, connection_id
      on conflict (account_id, start, connection_id)
        do update set rows = known.rows + excluded.rows, runs = known.runs + excluded.runs
      returning account_id, start, ${IS_NEW} as is_new
    ), counted as (
      insert into period_connections as known (account_id, start, connections)
      select account_id, start, count(*) from summed where is_new group by account_id, start order by account_id, start
      on conflict (account_id, start) do update set connections = known.connections + excluded.connections
    )
    select count(*)::int as count from taken`);
  return done?.count ?? 0;
}
