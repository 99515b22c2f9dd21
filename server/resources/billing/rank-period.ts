import { eq, type SQL, sql } from 'drizzle-orm';
import { accounts } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { daysOfAccount } from '../../billing/closed-days.ts';
import { addDays, addMonths, billingPeriod, monthOf } from '../../platform/utc-days.ts';
import { firstRows, type Page, type Ranked, type RankedConnection } from './rank-connections.ts';

/** Whether the days are a calendar month or a billing period of which `connection_periods` has everything. */
export async function isSummedPeriod(db: Db, { account_id, days }: Ranked): Promise<boolean> {
  const { billing_anchor, periods_from } = accounts;
  const [account] = await db.select({ billing_anchor, periods_from }).from(accounts).where(eq(accounts.id, account_id));
  if (!account || days.start < account.periods_from) return false;
  const month = monthOf(days.start);
  const periods = [
    { start: month, end: addDays(addMonths(month, 1), -1) },
    billingPeriod(account.billing_anchor, days.start),
  ];
  return periods.some(({ start, end }) => start === days.start && end === days.end);
}

/**
 * `rankConnections` for such a period. An index has the connections in order; those that have changed since the last sum are
 * taken from it one by one.
 */
export async function rankPeriod(db: Db, ranked: Ranked, page: Page): Promise<RankedConnection[]> {
  const period = periodOf(ranked);
  // "not in", which is hashed: "not exists" can become a loop over the changes for each row.
  const rows = await db.execute<RankedConnection>(sql`
    with ${period.changed}
    select connection_id, runs::float8 as runs from (
      (select connection_id, rows, runs from connection_periods
        where ${period.isOf} and connection_id not in (select connection_id from changed)
        order by rows desc, connection_id limit ${firstRows(page)})
      union all
      select c.connection_id, c.rows + coalesce(p.rows, 0), c.runs + coalesce(p.runs, 0)
      from changed c left join (select * from connection_periods where ${period.isOf}) p using (connection_id)) ranked
    order by ranked.rows desc, connection_id
    limit ${page.limit ?? null} offset ${page.offset}`);
  return [...rows];
}

/** `countRanked` for such a period. */
export async function countPeriod(db: Db, ranked: Ranked): Promise<number> {
  const period = periodOf(ranked);
  const [row] = await db.execute<{ count: number }>(sql`
    with ${period.changed}
    select (coalesce((select connections from period_connections where ${period.isOf}), 0)
      + (select count(*) from changed c where not exists (
        select from connection_periods where ${period.isOf} and connection_id = c.connection_id)))::int as count`);
  return row?.count ?? 0;
}

function periodOf({ account_id, days }: Ranked): { isOf: SQL; changed: SQL } {
  const range = daysOfAccount(account_id, days);
  return {
    isOf: sql`account_id = ${range.account_id} and start = ${range.start}`,
    changed: sql`changed as materialized (
      select connection_id, sum(rows)::bigint as rows, sum(runs)::int as runs from connection_period_changes
      where account_id = ${range.account_id} and day between ${range.start} and ${range.end} group by connection_id)`,
  };
}
