import { sql } from 'drizzle-orm';
import type { Deps } from '../deps.ts';

/** Days of one stream of one connection. The details of a busy one are some thousand rows. */
const GROUPS = 20;

/**
 * Replaces usage by run and attempt by one sum per day and stream, in one statement: readers see the details or the sum.
 * Returns the number of details that are gone, at most those of some groups.
 */
export async function sumOldUsage({ db, now, config }: Pick<Deps, 'db' | 'now' | 'config'>): Promise<number> {
  const [done] = await db.execute<{ count: number }>(sql`
    with old as (
      select distinct account_id, connection_id, day, kind, stream_name from (
        select * from usage_ledger
        where stream_run_id is not null and day < (${now().toISOString()}::timestamptz at time zone 'UTC')::date - ${config.USAGE_DETAIL_DAYS}::int
          and not exists (select from connection_runs r where r.id = connection_run_id and r.finished_at is null)
        order by day limit 1000) details
      limit ${GROUPS}
    ), gone as (
      delete from usage_ledger l using old
      where l.account_id = old.account_id and l.connection_id = old.connection_id and l.day = old.day
        and l.kind = old.kind and l.stream_name = old.stream_name and l.stream_run_id is not null
        and not exists (select from connection_runs r where r.id = l.connection_run_id and r.finished_at is null)
      returning l.*
    ), summed as (
      insert into usage_ledger (id, account_id, connection_id, attempt, day, kind, stream_name,
        rows_free, rows_paid, credits_used, credits_free, bytes_loaded)
      select gen_random_uuid(), account_id, connection_id, 1, day, kind, stream_name,
        sum(rows_free), sum(rows_paid), sum(credits_used), sum(credits_free), sum(bytes_loaded)
      from gone group by account_id, connection_id, day, kind, stream_name
    )
    select count(*)::int as count from gone`);
  return done?.count ?? 0;
}
