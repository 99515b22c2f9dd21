import { sql } from 'drizzle-orm';
import type { Db } from './types.ts';

/**
 * The last moment before which nothing further can appear in a table whose times are those of its inserts: transactions in
 * progress store times from their start on. To be read in a statement before the list itself, so that its snapshot is
 * older.
 */
export async function completeUntil(db: Db): Promise<string> {
  // Stored times are rounded to milliseconds.
  const [horizon] = await db.execute<{ at: string }>(sql`
    select (coalesce(min(xact_start), clock_timestamp()) - interval '1 millisecond')::text as at
    from pg_stat_activity where datname = current_database() and backend_xid is not null and pid <> pg_backend_pid()`);
  return horizon!.at;
}
