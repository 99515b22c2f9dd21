import { sql } from 'drizzle-orm';
import type { Db } from '../../../db/types.ts';
import { type AccountDays, daysOfAccount, lastClosedDay, runsOf } from '../../billing/closed-days.ts';
import { addDays, addMonths, type DaySpan, monthOf } from '../../platform/utc-days.ts';

/** A connection with rows or runs in a range. */
interface RankedConnection {
  connection_id: string;
  runs: number;
  /** The number of all such connections, and the sum of their rows. */
  count: number;
  all_rows: number;
}

/**
 * Connections with rows or runs on these days, deleted ones too: most rows first, then the oldest. Whole months are
 * read from their sums, the days around them from the ledger and the runs.
 */
export async function rankConnections(
  db: Db,
  { account_id, days }: { account_id: string; days: DaySpan },
  page: { limit?: number; offset: number },
): Promise<RankedConnection[]> {
  const { months, around } = split(account_id, days);
  const parts = [
    sql`select connection_id, rows, runs from connection_months
      where account_id = ${months.account_id} and month between ${months.start} and ${months.end}`,
    ...around.flatMap((span) => [
      sql`select connection_id, rows_free + rows_paid, 0 from usage_ledger
        where account_id = ${span.account_id} and day between ${span.start} and ${span.end}`,
      sql`select connection_id, 0, runs from ${runsOf(span)} ran`,
    ]),
  ];
  const ranked = await db.execute<RankedConnection & Record<string, unknown>>(sql`
    with used as materialized (
      select connection_id, sum(rows) as rows, sum(runs) as runs
      from (${sql.join(parts, sql` union all `)}) parts group by connection_id)
    select connection_id, runs::float8 as runs, (select count(*)::int from used) as count,
      (select sum(rows)::float8 from used) as all_rows
    from used order by rows desc, connection_id
    limit ${page.limit ?? null} offset ${page.offset}`);
  return [...ranked];
}

/**
 * The months of which every closed day is in the range, and the days before and after these. The statement itself decides
 * where the sums end, so that days can be closed meanwhile.
 */
function split(account_id: string, days: DaySpan): { months: AccountDays; around: AccountDays[] } {
  const first = monthOf(days.start) === days.start ? days.start : addMonths(monthOf(days.start), 1);
  const dayBefore = addDays(first, -1);
  const next = addDays(days.end, 1);
  const lastWhole = monthOf(next) === next ? days.end : addDays(monthOf(days.end), -1);
  const range = daysOfAccount(account_id, days);
  const summed = sql`(
    select greatest(${dayBefore}::date, case when day <= ${range.end} then day else ${lastWhole}::date end)
    from ${lastClosedDay(range.account_id)} closed (day))`;
  const before = daysOfAccount(account_id, { start: days.start, end: dayBefore < days.end ? dayBefore : days.end });
  return {
    months: { ...range, start: sql`${first}::date`, end: summed },
    around: [...(days.start < first ? [before] : []), { ...range, start: sql`${summed} + 1` }],
  };
}
