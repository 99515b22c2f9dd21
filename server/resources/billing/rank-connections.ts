import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../../../db/types.ts';
import {
  type AccountDays,
  daysOfAccount,
  lastClosedDay,
  runsOf,
  streamUsageOfDays,
} from '../../billing/closed-days.ts';
import { addDays, addMonths, type DaySpan, monthOf } from '../../platform/utc-days.ts';

interface Ranked {
  account_id: string;
  days: DaySpan;
}

/** Connections with rows or runs on these days, deleted ones too: most rows first, then the oldest. */
export async function rankConnections(
  db: Db,
  ranked: Ranked,
  page: { limit?: number; offset: number },
): Promise<{ connection_id: string; runs: number }[]> {
  // As float8, which is exact to 9e15: PostgreSQL sums bigint as numeric, which takes half as long again.
  const rows = await db.execute<{ connection_id: string; runs: number }>(sql`
    select connection_id, sum(runs)::float8 as runs from ${partsOf(ranked)} group by connection_id
    order by sum(rows::float8) desc, connection_id
    limit ${page.limit ?? null} offset ${page.offset}`);
  return [...rows];
}

/** The number of all such connections. */
export async function countRanked(db: Db, ranked: Ranked): Promise<number> {
  const [row] = await db.execute<{ count: number }>(sql`
    select count(distinct connection_id)::int as count from ${partsOf(ranked)}`);
  return row?.count ?? 0;
}

/**
 * For a FROM clause: `rows` and `runs` by `connection_id`, in several parts. Whole months are read from their sums, of the
 * days around them the rows from `stream_days` or the ledger, and the runs one by one.
 */
function partsOf({ account_id, days }: Ranked): SQL {
  const { months, around } = split(account_id, days);
  const parts = [
    sql`select connection_id, rows, runs from connection_months
      where account_id = ${months.account_id} and month between ${months.start} and ${months.end}`,
    ...around.flatMap((span) => [
      sql`select connection_id, rows_free + rows_paid, 0 from ${streamUsageOfDays(span)} used`,
      sql`select connection_id, 0, runs from ${runsOf(span)} ran`,
    ]),
  ];
  return sql`(${sql.join(parts, sql` union all `)}) parts`;
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
