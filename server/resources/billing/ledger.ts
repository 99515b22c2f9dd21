import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../../../db/types.ts';
import { daysOfAccount, runsOfDays, streamUsageOfDays, usageOfDays } from '../../billing/closed-days.ts';
import type { DaySpan } from '../../platform/utc-days.ts';
import type { Usage } from './schema.ts';

/** The account and days of a usage query. */
export interface Scope {
  account_id: string;
  days: DaySpan;
  /** Only of these connections. */
  ids?: string[];
}

const usageWithin = ({ account_id, days, ids }: Scope): SQL => sql`
  ${streamUsageOfDays(daysOfAccount(account_id, days))} used
  ${ids ? sql`where connection_id = any(${sql.param(ids)}::uuid[])` : sql``}`;

/**
 * As float8, which is exact to 9e15: PostgreSQL sums bigint as numeric, which took most of the time of a statement with
 * 1,600 sums.
 */
const SUMS = sql`sum(rows_free::float8) as rows_free, sum(rows_paid::float8) as rows_paid,
  sum(credits_used::float8) as credits_used, sum(credits_free::float8) as credits_free,
  sum(bytes_loaded::float8) as bytes_loaded`;

/** Sums of the account by day and kind. */
export interface DayUsage extends Omit<Usage, 'rows_total'> {
  day: string;
  kind: 'elt' | 'reverse_etl';
}

export async function usageByDay(db: Db, { account_id, days }: Scope): Promise<DayUsage[]> {
  const rows = await db.execute<DayUsage & Record<string, unknown>>(sql`
    select day::text, kind, ${SUMS}
    from ${usageOfDays(daysOfAccount(account_id, days))} used group by day, kind`);
  return [...rows];
}

/** Sums of a connection, either by `day` or by `stream_name`; the other one is null. */
export interface ConnectionSums extends Omit<Usage, 'rows_total'> {
  connection_id: string;
  day: string | null;
  stream_name: string | null;
}

/** Sums by connection and day, and by connection and stream, most rows first: both from one scan. */
export async function usageByConnection(db: Db, scope: Scope): Promise<ConnectionSums[]> {
  const rows = await db.execute<ConnectionSums & Record<string, unknown>>(sql`
    select connection_id, day::text, stream_name, ${SUMS}
    from ${usageWithin(scope)}
    group by grouping sets ((connection_id, day), (connection_id, stream_name))
    order by sum((rows_free + rows_paid)::float8) desc, stream_name`);
  return [...rows];
}

/** Rows by connection. */
export async function rowsByConnection(db: Db, scope: Scope): Promise<Map<string, number>> {
  const found = await db.execute<{ connection_id: string; rows: number }>(sql`
    select connection_id, sum((rows_free + rows_paid)::float8) as rows from ${usageWithin(scope)} group by connection_id`);
  return new Map(found.map(({ connection_id, rows }) => [connection_id, rows]));
}

/** The runs created on these days, with those of deleted connections. */
export async function countRuns(db: Db, { account_id, days }: Scope) {
  const [counts] = await db.execute<{ runs: number; succeeded_runs: number; failed_runs: number }>(sql`
    select coalesce(sum(runs), 0)::float8 as runs, coalesce(sum(runs_succeeded), 0)::float8 as succeeded_runs,
      coalesce(sum(runs_failed), 0)::float8 as failed_runs
    from ${runsOfDays(daysOfAccount(account_id, days))} ran`);
  return {
    runs: counts?.runs ?? 0,
    succeeded_runs: counts?.succeeded_runs ?? 0,
    failed_runs: counts?.failed_runs ?? 0,
  };
}
