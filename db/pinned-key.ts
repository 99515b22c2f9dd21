import { sql } from 'drizzle-orm';
import { ConfigError } from '../server/platform/config.ts';
import { installation } from './schema/index.ts';
import type { Db } from './types.ts';

/** Takes the place of the key while a backup is being restored. */
export const UNFINISHED_RESTORE = 'restoring';

/**
 * Stores the id of the SECRET_KEY with the first start, and compares it in later ones. With another key no stored secret
 * opens and no API key is valid, and what is encrypted meanwhile is lost to the right key.
 * @throws ConfigError
 */
export async function pinSecretKey(db: Db, key_id: string): Promise<void> {
  const expected = (await pinnedKey(db)) ?? (await pin(db, key_id));
  if (expected === key_id) return;
  if (expected === UNFINISHED_RESTORE)
    throw new ConfigError('The restore of this database did not finish. Restore the backup into a new, empty database');
  throw new ConfigError(
    `SECRET_KEY is not the key of this database: its id is ${key_id}, the database was encrypted with ${expected}. Start the service with that key`,
  );
}

async function pinnedKey(db: Db): Promise<string | null> {
  const [row] = await db.select({ key_id: installation.key_id }).from(installation);
  return row?.key_id ?? null;
}

/** A database from before this table has secrets that name their key. Of several processes, the first one decides. */
async function pin(db: Db, key_id: string): Promise<string | null> {
  const [sealed] = await db.execute<{ key_id: string }>(sql`
    select split_part(secrets, '.', 2) as key_id from account_connectors
    where secrets is not null and deleted_at is null
    order by split_part(secrets, '.', 2) = ${key_id} desc limit 1`);
  await db
    .insert(installation)
    .values({ key_id: sealed?.key_id ?? key_id })
    .onConflictDoUpdate({
      target: installation.id,
      set: { key_id: sql`excluded.key_id` },
      setWhere: sql`${installation.key_id} is null`,
    });
  return pinnedKey(db);
}
