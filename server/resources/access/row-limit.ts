import { eq, type SQL } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { accounts } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';

/**
 * In the transaction that adds a row: whether the account has `limit` of them already. Requests of one account wait for
 * one another, because two at once would both find room.
 */
export async function isFull(
  db: Db,
  account_id: string,
  { table, where, limit }: { table: PgTable; where: SQL | undefined; limit: number },
): Promise<boolean> {
  await db.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, account_id)).for('no key update');
  return (await db.$count(table, where)) >= limit;
}
