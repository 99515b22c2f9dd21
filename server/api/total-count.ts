import { sql, type SQL } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Db } from '../../db/types.ts';

const EXACT_UP_TO = 10_000;

/**
 * Number of matching rows: exact up to 10,000, above that the planner's estimate. Counting a million rows takes a hundred
 * times as long as reading one page.
 */
export async function countRows(db: Db, table: PgTable, where: SQL | undefined): Promise<number> {
  const matching = sql`select 1 from ${table}${where ? sql` where ${where}` : sql``}`;
  const [row] = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from (${matching} limit ${EXACT_UP_TO + 1}) as matching`,
  );
  const count = row?.count ?? 0;
  if (count <= EXACT_UP_TO) return count;
  const [plan] = await db.execute<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
    sql`explain (format json) ${matching}`,
  );
  return Math.max(count, plan?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0);
}
