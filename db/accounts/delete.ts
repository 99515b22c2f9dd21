import { sql } from 'drizzle-orm';
import type { Db } from '../types.ts';
import { ownedTables } from './owned-tables.ts';

/** Deletes all rows of an account but its audit log, in the caller's transaction. Returns how many there were. */
export async function deleteRows(tx: Db, account_id: string): Promise<number> {
  let deleted = 0;
  for (const { table, belongsTo } of ownedTables().toReversed()) {
    const [row] = await tx.execute<{ rows: number }>(sql`
      with gone as (delete from ${table} where ${belongsTo(account_id)} returning 1)
      select count(*)::int as rows from gone`);
    deleted += row?.rows ?? 0;
  }
  return deleted;
}
