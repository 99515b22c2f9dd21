import { and, between, type Column, eq, gte, lt, sql } from 'drizzle-orm';
import { connectionRuns, usageLedger } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { addDays, type DaySpan } from '../../lib/utc-days.ts';

/** Whose usage, on which days. */
export interface Scope {
  account_id: string;
  days: DaySpan;
}

const sum = (column: Column) => sql`coalesce(sum(${column}), 0)`.mapWith(Number);

const SUMS = {
  rows_free: sum(usageLedger.rows_free),
  rows_paid: sum(usageLedger.rows_paid),
  credits_used: sum(usageLedger.credits_used),
  credits_free: sum(usageLedger.credits_free),
  bytes_loaded: sum(usageLedger.bytes_loaded),
};

const within = ({ account_id, days }: Scope) =>
  and(eq(usageLedger.account_id, account_id), between(usageLedger.day, days.start, days.end));

/** Sums by day and kind. */
export const usageByDay = (db: Db, scope: Scope) =>
  db
    .select({ day: usageLedger.day, kind: usageLedger.kind, ...SUMS })
    .from(usageLedger)
    .where(within(scope))
    .groupBy(usageLedger.day, usageLedger.kind);
export type DayUsage = Awaited<ReturnType<typeof usageByDay>>[number];

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

/** Runs by connection that were made on these days, those of deleted connections too. */
export const runsByConnection = (db: Db, { account_id, days }: Scope) =>
  db
    .select({
      connection_id: connectionRuns.connection_id,
      runs: sql`count(*)`.mapWith(Number),
      succeeded: sql`count(*) filter (where ${connectionRuns.status} = 'succeeded')`.mapWith(Number),
      failed: sql`count(*) filter (where ${connectionRuns.status} = 'failed')`.mapWith(Number),
    })
    .from(connectionRuns)
    .where(
      and(
        eq(connectionRuns.account_id, account_id),
        gte(connectionRuns.created_at, `${days.start}T00:00:00.000Z`),
        lt(connectionRuns.created_at, `${addDays(days.end, 1)}T00:00:00.000Z`),
      ),
    )
    .groupBy(connectionRuns.connection_id);
