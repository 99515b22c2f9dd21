import { eq, ne, sql } from 'drizzle-orm';
import { ConfigError } from '../server/platform/config.ts';
import { openSecrets } from '../server/platform/secrets.ts';
import { installation, keyRing } from './schema/index.ts';
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
  if (await wrappedRoot(db, key_id)) return;
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

async function wrappedRoot(db: Db, key_id: string): Promise<string | null> {
  const [row] = await db.select().from(keyRing).where(eq(keyRing.key_id, key_id));
  return row?.wrapped_root ?? null;
}

/** Binds a wrapped root to its place. */
const CONTEXT = 'root';

/**
 * The root key, which all other keys derive from.
 * @throws ConfigError if the database has another SECRET_KEY
 */
export async function openRoot(db: Db, secret_key: string): Promise<string> {
  const wrapper = openSecrets(secret_key);
  await pinSecretKey(db, wrapper.key_id);
  const wrapped = await wrappedRoot(db, wrapper.key_id);
  return wrapped === null ? secret_key : wrapper.open(wrapped, CONTEXT);
}

/**
 * Lets `after` open the root as well as `before`, in one transaction. Processes that run keep the root that they have, and
 * can start again with either key. Safe to repeat.
 * @throws ConfigError if `before` is not a key of the database
 */
export async function rotateKey(
  db: Db,
  { before, after }: { before: string; after: string },
): Promise<{ key_id: string }> {
  const wrapper = openSecrets(after);
  if ((await wrappedRoot(db, wrapper.key_id)) !== null && (await pinnedKey(db)) === wrapper.key_id) return wrapper;
  const root = await openRoot(db, before);
  await db.transaction(async (tx) => {
    for (const one of [openSecrets(before), wrapper]) {
      const row = { key_id: one.key_id, wrapped_root: one.seal(root, CONTEXT) };
      await tx.insert(keyRing).values(row).onConflictDoNothing();
    }
    await tx.update(installation).set({ key_id: wrapper.key_id });
  });
  return wrapper;
}

/** Former keys open the root no more. Returns how many there were. @throws ConfigError if `current` is not the newest key */
export async function retireKeys(db: Db, current: string): Promise<number> {
  const { key_id } = openSecrets(current);
  if ((await pinnedKey(db)) !== key_id)
    throw new ConfigError('SECRET_KEY is not the newest key of this database. Set it to the new key first');
  await openRoot(db, current);
  const retired = await db.delete(keyRing).where(ne(keyRing.key_id, key_id)).returning();
  return retired.length;
}
