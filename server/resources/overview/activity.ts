import { and, desc, eq, isNull, sql } from 'drizzle-orm';
import { connectionRuns, connections, streamRuns } from '../../../db/schema/index.ts';
import { daysOfAccount, runsOfDays, usageOfDays } from '../../billing/closed-days.ts';
import { addDays, eachDay, utcDay } from '../../platform/utc-days.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { ActivityDay, RecentRun } from './schema.ts';

/** Rows and runs per day, today last, including empty days. */
export async function readActivity(ctx: Ctx, input: { days: number }): Promise<ActivityDay[]> {
  const { account_id } = ctx.principal;
  const end = utcDay(ctx.deps.now());
  const start = addDays(end, 1 - input.days);
  const days = daysOfAccount(account_id, { start, end });
  const [rows, runs] = await Promise.all([
    ctx.db.execute<{ day: string; rows_loaded: number }>(sql`
      select day::text, sum(rows_free + rows_paid)::float8 as rows_loaded from ${usageOfDays(days)} used group by day`),
    ctx.db.execute<Omit<ActivityDay, 'rows_loaded'> & Record<string, unknown>>(sql`
      select day::text, sum(runs_succeeded)::float8 as runs_succeeded,
        sum(runs_failed + runs_partially_succeeded)::float8 as runs_failed,
        sum(runs - runs_succeeded - runs_failed - runs_partially_succeeded)::float8 as runs_other
      from ${runsOfDays(days)} ran group by day`),
  ]);
  const activity = new Map<string, ActivityDay>();
  for (const day of eachDay({ start, end })) {
    activity.set(day, { day, rows_loaded: 0, runs_succeeded: 0, runs_failed: 0, runs_other: 0 });
  }
  for (const one of [...rows, ...runs]) Object.assign(activity.get(one.day) ?? {}, one);
  return [...activity.values()];
}

/** The account's newest runs; those of deleted connections are left out: they have no page. */
export async function listRecentRuns(ctx: Ctx, input: { limit: number }): Promise<RecentRun[]> {
  return ctx.db
    .select({
      id: connectionRuns.id,
      connection_id: connectionRuns.connection_id,
      connection_name: connections.name,
      number: connectionRuns.number,
      status: connectionRuns.status,
      trigger_type: connectionRuns.trigger_type,
      created_at: connectionRuns.created_at,
      started_at: connectionRuns.started_at,
      finished_at: connectionRuns.finished_at,
      rows_loaded: sql`(
        select coalesce(sum(s.rows_loaded), 0) from ${streamRuns} s where s.connection_run_id = ${connectionRuns.id})`.mapWith(
        Number,
      ),
      error_message: sql<string | null>`${connectionRuns.error} ->> 'message'`,
    })
    .from(connectionRuns)
    .innerJoin(connections, and(eq(connections.id, connectionRuns.connection_id), isNull(connections.deleted_at)))
    .where(eq(connectionRuns.account_id, ctx.principal.account_id))
    .orderBy(desc(connectionRuns.created_at), desc(connectionRuns.id))
    .limit(input.limit);
}
