import { and, between, eq, gte, inArray, lt, sql } from 'drizzle-orm';
import { connectionRuns, runDays } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { addDays, type DaySpan } from '../platform/utc-days.ts';

/** The runs created on these days by connection, day and status, with those whose rows were deleted since. */
export function runCounts(db: Db, scope: { account_id: string; days: DaySpan; ids?: string[] }) {
  const { account_id, days, ids } = scope;
  const day = sql<string>`to_char(${connectionRuns.created_at} at time zone 'UTC', 'YYYY-MM-DD')`;
  const kept = db
    .select({
      connection_id: connectionRuns.connection_id,
      day: day.as('day'),
      status: connectionRuns.status,
      runs: sql<number>`count(*)::int`.as('runs'),
    })
    .from(connectionRuns)
    .where(
      and(
        eq(connectionRuns.account_id, account_id),
        gte(connectionRuns.created_at, `${days.start}T00:00:00.000Z`),
        lt(connectionRuns.created_at, `${addDays(days.end, 1)}T00:00:00.000Z`),
        ids && inArray(connectionRuns.connection_id, ids),
      ),
    )
    .groupBy(connectionRuns.connection_id, sql`2`, connectionRuns.status);
  const deleted = db
    .select({
      connection_id: runDays.connection_id,
      day: sql<string>`${runDays.day}::text`.as('day'),
      status: runDays.status,
      runs: runDays.runs,
    })
    .from(runDays)
    .where(
      and(
        eq(runDays.account_id, account_id),
        between(runDays.day, days.start, days.end),
        ids && inArray(runDays.connection_id, ids),
      ),
    );
  return kept.unionAll(deleted).as('run_counts');
}
