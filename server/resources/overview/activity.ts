import { and, desc, eq, gte, isNull, sql } from 'drizzle-orm';
import { connectionRuns, connections, streamRuns, usageLedger } from '../../../db/schema/index.ts';
import { runCounts } from '../../billing/run-counts.ts';
import { addDays, eachDay, utcDay } from '../../platform/utc-days.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { ActivityDay, RecentRun } from './schema.ts';

/** Rows and runs per day, today last, including empty days. */
export async function readActivity(ctx: Ctx, input: { days: number }): Promise<ActivityDay[]> {
  const { account_id } = ctx.principal;
  const end = utcDay(ctx.deps.now());
  const start = addDays(end, 1 - input.days);
  const counted = runCounts(ctx.db, { account_id, days: { start, end } });
  const countOf = (isMeant: ReturnType<typeof sql>) =>
    sql`coalesce(sum(${counted.runs}) filter (where ${counted.status} ${isMeant}), 0)`.mapWith(Number);
  const [rows, runs] = await Promise.all([
    ctx.db
      .select({
        day: usageLedger.day,
        rows_loaded: sql`sum(${usageLedger.rows_free} + ${usageLedger.rows_paid})`.mapWith(Number),
      })
      .from(usageLedger)
      .where(and(eq(usageLedger.account_id, account_id), gte(usageLedger.day, start)))
      .groupBy(usageLedger.day),
    ctx.db
      .select({
        day: counted.day,
        runs_succeeded: countOf(sql`= 'succeeded'`),
        runs_failed: countOf(sql`in ('failed', 'partially_succeeded')`),
        runs_other: countOf(sql`not in ('succeeded', 'failed', 'partially_succeeded')`),
      })
      .from(counted)
      .groupBy(counted.day),
  ]);
  const days = new Map<string, ActivityDay>();
  for (const day of eachDay({ start, end })) {
    days.set(day, { day, rows_loaded: 0, runs_succeeded: 0, runs_failed: 0, runs_other: 0 });
  }
  for (const one of [...rows, ...runs]) Object.assign(days.get(one.day) ?? {}, one);
  return [...days.values()];
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
