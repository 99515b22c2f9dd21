import { and, between, type Column, eq, inArray, sql } from 'drizzle-orm';
import { usageLedger } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { daysOfAccount, runsOfDays, usageOfDays } from '../../billing/closed-days.ts';
import type { DaySpan } from '../../platform/utc-days.ts';
import type { Usage } from './schema.ts';

/** The account and days of a usage query. */
export interface Scope {
  account_id: string;
  days: DaySpan;
  /** Only of these connections. */
  ids?: string[];
}

const sum = (column: Column) => sql`coalesce(sum(${column}), 0)`.mapWith(Number);

const SUMS = {
  rows_free: sum(usageLedger.rows_free),
  rows_paid: sum(usageLedger.rows_paid),
  credits_used: sum(usageLedger.credits_used),
  credits_free: sum(usageLedger.credits_free),
  bytes_loaded: sum(usageLedger.bytes_loaded),
};

const within = ({ account_id, days, ids }: Scope) =>
  and(
    eq(usageLedger.account_id, account_id),
    between(usageLedger.day, days.start, days.end),
    ids && inArray(usageLedger.connection_id, ids),
  );

/** Sums of the account by day and kind. */
export interface DayUsage extends Omit<Usage, 'rows_total'> {
  day: string;
  kind: 'elt' | 'reverse_etl';
}

export async function usageByDay(db: Db, { account_id, days }: Scope): Promise<DayUsage[]> {
  const rows = await db.execute<DayUsage & Record<string, unknown>>(sql`
    select day::text, kind, sum(rows_free)::float8 as rows_free, sum(rows_paid)::float8 as rows_paid,
      sum(credits_used)::float8 as credits_used, sum(credits_free)::float8 as credits_free,
      sum(bytes_loaded)::float8 as bytes_loaded
    from ${usageOfDays(daysOfAccount(account_id, days))} used group by day, kind`);
  return [...rows];
}

/** Sums by connection and day. */
export const usageByConnectionDay = (db: Db, scope: Scope) =>
  db
    .select({ connection_id: usageLedger.connection_id, day: usageLedger.day, ...SUMS })
    .from(usageLedger)
    .where(within(scope))
    .groupBy(usageLedger.connection_id, usageLedger.day);

/** Sums by connection and stream, most rows first. */
export const usageByStream = (db: Db, scope: Scope) =>
  db
    .select({ connection_id: usageLedger.connection_id, stream_name: usageLedger.stream_name, ...SUMS })
    .from(usageLedger)
    .where(within(scope))
    .groupBy(usageLedger.connection_id, usageLedger.stream_name)
    .orderBy(sql`sum(rows_free + rows_paid) desc`, usageLedger.stream_name);

/** Rows by connection. */
export const rowsByConnection = (db: Db, scope: Scope) =>
  db
    .select({
      connection_id: usageLedger.connection_id,
      rows: sql`sum(${usageLedger.rows_free} + ${usageLedger.rows_paid})`.mapWith(Number),
    })
    .from(usageLedger)
    .where(within(scope))
    .groupBy(usageLedger.connection_id);

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
