import { eq, inArray, lt, sql } from 'drizzle-orm';
import { accounts, networkLogSegments } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';
import { retentionDays } from '../../billing/retention-days.ts';

/** Upper limit; a billing plan can set a shorter retention. */
export const RETENTION_DAYS = 14;
const BATCH_ROWS = 500;

/** Deletes expired network logs. The file goes before the row: a file without a row would never be found again. */
export async function deleteOldNetworkLogs({
  db,
  objects,
  now,
}: Pick<Deps, 'db' | 'objects' | 'now'>): Promise<number> {
  const at = now().toISOString();
  for (let deleted = 0; ; ) {
    const expired = await db
      .select({ id: networkLogSegments.id, object_key: networkLogSegments.object_key })
      .from(networkLogSegments)
      .leftJoin(accounts, eq(accounts.id, networkLogSegments.account_id))
      .where(
        lt(
          networkLogSegments.created_at,
          sql`${at}::timestamptz - make_interval(days => ${retentionDays('network_log_retention_days', RETENTION_DAYS)})`,
        ),
      )
      .limit(BATCH_ROWS);
    for (const { object_key } of expired) await objects.delete(object_key);
    const ids = expired.map(({ id }) => id);
    if (ids.length > 0) await db.delete(networkLogSegments).where(inArray(networkLogSegments.id, ids));
    deleted += ids.length;
    if (expired.length < BATCH_ROWS) return deleted;
  }
}
