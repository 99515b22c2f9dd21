import { and, between, type Column, eq, inArray, sql } from 'drizzle-orm';
import { connections, usageLedger } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { runCounts } from '../../billing/run-counts.ts';
import type { DaySpan } from '../../platform/utc-days.ts';

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

/** The runs created on these days, with those of deleted connections. */
export async function countRuns(db: Db, scope: Scope) {
  const counted = runCounts(db, scope);
  const withStatus = (status: string) =>
    sql`coalesce(sum(${counted.runs}) filter (where ${counted.status} = ${status}), 0)`.mapWith(Number);
  const [counts] = await db
    .select({
      runs: sql`coalesce(sum(${counted.runs}), 0)`.mapWith(Number),
      succeeded_runs: withStatus('succeeded'),
      failed_runs: withStatus('failed'),
    })
    .from(counted);
  return counts ?? { runs: 0, succeeded_runs: 0, failed_runs: 0 };
}

/**
 * Connections with rows or runs on these days, deleted ones too: most rows first, then by name and id. Each row has the
 * number of all such connections and the sum of their rows.
 */
export async function rankConnections(db: Db, scope: Scope, page: { limit?: number; offset: number }) {
  const used = db.$with('used').as(
    db
      .select({
        connection_id: usageLedger.connection_id,
        rows: sql<string>`sum(${usageLedger.rows_free} + ${usageLedger.rows_paid})`.as('rows'),
      })
      .from(usageLedger)
      .where(within(scope))
      .groupBy(usageLedger.connection_id),
  );
  const counted = runCounts(db, scope);
  const ran = db.$with('ran').as(
    db
      .select({ connection_id: counted.connection_id, runs: sql<string>`sum(${counted.runs})`.as('sum_of_runs') })
      .from(counted)
      .groupBy(counted.connection_id),
  );
  const ranked = db
    .with(used, ran)
    .select({
      connection_id: connections.id,
      runs: sql`coalesce(${ran.runs}, 0)`.mapWith(Number),
      count: sql`count(*) over ()`.mapWith(Number),
      all_rows: sql`coalesce(sum(${used.rows}) over (), 0)`.mapWith(Number),
    })
    .from(used)
    .fullJoin(ran, eq(ran.connection_id, used.connection_id))
    .innerJoin(connections, sql`${connections.id} = coalesce(${used.connection_id}, ${ran.connection_id})`)
    .orderBy(sql`coalesce(${used.rows}, 0) desc`, sql`${connections.name} collate "C"`, connections.id)
    .offset(page.offset)
    .$dynamic();
  return page.limit === undefined ? ranked : ranked.limit(page.limit);
}
