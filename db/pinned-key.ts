import { randomBytes } from 'node:crypto';
import { eq, ne, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { ConfigError } from '../server/platform/config.ts';
import { periodic, type Periodic } from '../server/platform/periodic.ts';
import { openSecrets, type Roots, type Secrets } from '../server/platform/secrets.ts';
import { askTogether, type Question } from './ask-together.ts';
import { installation, keyRing, rootKeys } from './schema/index.ts';
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
const contextOf = (version: number) => (version === 1 ? 'root' : `root:${version}`);

/**
 * The root keys, which all other keys derive from.
 * @throws ConfigError if the database has another SECRET_KEY, or a root does not open
 */
export async function openRoots(db: Db, secret_key: string): Promise<Roots> {
  const wrapper = openSecrets(secret_key);
  await pinSecretKey(db, wrapper.key_id);
  const [stored] = await db.execute<StoredRoots>(sql`
    select root_version as current, oldest_root_version as oldest,
      (select wrapped_root from key_ring where key_id = ${wrapper.key_id}) as first,
      array(select wrapped_root from root_keys where key_id = ${wrapper.key_id} order by version) as later
    from installation`);
  const { current, oldest, first, later } = stored!;
  const unwrap = (wrapped: string, index: number) => unwrapped(wrapper, { wrapped, version: index + 1 });
  const keys = [first === null ? secret_key : unwrap(first, 0), ...later.map((one, index) => unwrap(one, index + 1))];
  if (keys.length < current) throw damaged(keys.length + 1);
  return { keys, current: current - 1, oldest: oldest - 1 };
}

interface StoredRoots extends Record<string, unknown> {
  current: number;
  oldest: number;
  first: string | null;
  later: string[];
}

function unwrapped(wrapper: Secrets, { wrapped, version }: { wrapped: string; version: number }): string {
  try {
    return wrapper.open(wrapped, contextOf(version));
  } catch {
    throw damaged(version);
  }
}

const damaged = (version: number) =>
  new ConfigError(`Root key ${version} of this database is missing or was changed. Restore the database from a backup`);

/** Wraps all roots for a SECRET_KEY. */
async function storeRoots(tx: Db, wrapper: Secrets, keys: readonly string[]): Promise<void> {
  const { key_id } = wrapper;
  const wrapped = keys.map((key, index) => ({
    key_id,
    version: index + 1,
    wrapped_root: wrapper.seal(key, contextOf(index + 1)),
  }));
  const [first, ...later] = wrapped;
  await tx.insert(keyRing).values(first!).onConflictDoNothing();
  if (later.length > 0) await tx.insert(rootKeys).values(later).onConflictDoNothing();
}

/** Two rotations never run at the same time. */
const lockRing = (tx: Db) => tx.select().from(installation).for('no key update');

/**
 * Lets `after` open the roots as well as `before`, in one transaction. Processes that run keep the roots that they have,
 * and can start again with either key. Safe to repeat.
 * @throws ConfigError if `before` is not a key of the database
 */
export async function rotateKey(
  db: Db,
  { before, after }: { before: string; after: string },
): Promise<{ key_id: string }> {
  const wrapper = openSecrets(after);
  if ((await wrappedRoot(db, wrapper.key_id)) !== null && (await pinnedKey(db)) === wrapper.key_id) return wrapper;
  await pinSecretKey(db, openSecrets(before).key_id);
  await db.transaction(async (tx) => {
    await lockRing(tx);
    const { keys } = await openRoots(tx, before);
    for (const one of [openSecrets(before), wrapper]) await storeRoots(tx, one, keys);
    await tx.update(installation).set({ key_id: wrapper.key_id });
  });
  return wrapper;
}

/** Former keys open the roots no more. Returns how many there were. @throws ConfigError if `current` is not the newest key */
export async function retireKeys(db: Db, current: string): Promise<number> {
  const { key_id } = openSecrets(current);
  await requireNewest(db, key_id);
  await openRoots(db, current);
  return db.transaction(async (tx) => {
    await lockRing(tx);
    await tx.delete(rootKeys).where(ne(rootKeys.key_id, key_id));
    return (await tx.delete(keyRing).where(ne(keyRing.key_id, key_id)).returning()).length;
  });
}

async function requireNewest(db: Db, key_id: string): Promise<void> {
  if ((await pinnedKey(db)) !== key_id)
    throw new ConfigError('SECRET_KEY is not the newest key of this database. Set it to the new key first');
}

/**
 * Adds a root that nothing uses yet, or returns the roots of a rotation that was interrupted before `activateRoot`.
 * @throws ConfigError if another SECRET_KEY opens the roots as well: the new one could not be wrapped for it
 */
export async function addRoot(db: Db, secret_key: string): Promise<Roots> {
  const wrapper = openSecrets(secret_key);
  await pinSecretKey(db, wrapper.key_id);
  await requireNewest(db, wrapper.key_id);
  return db.transaction(async (tx) => {
    await lockRing(tx);
    const others = await tx.select().from(keyRing).where(ne(keyRing.key_id, wrapper.key_id));
    if (others.length > 0)
      throw new ConfigError('A former SECRET_KEY still opens the database. Retire it first: rotate-key --retire');
    const { keys, current } = await openRoots(tx, secret_key);
    if (keys.length > current + 1) return openRoots(tx, secret_key);
    await storeRoots(tx, wrapper, [...keys, randomBytes(32).toString('base64url')]);
    return openRoots(tx, secret_key);
  });
}

/** Encrypts and hashes with the newest root from now on. Processes follow within seconds. */
export async function activateRoot(db: Db, secret_key: string): Promise<Roots> {
  const { keys } = await openRoots(db, secret_key);
  await db.update(installation).set({ root_version: keys.length });
  return openRoots(db, secret_key);
}

/** Hashes of former roots are not valid any more. */
export const retireRoots = (db: Db): Promise<unknown> =>
  db.update(installation).set({ oldest_root_version: installation.root_version });

const ROOTS: Question = {
  name: 'root keys',
  query: () => sql`
    select concat_ws(' ', root_version, oldest_root_version, (select max(version) from root_keys)) from installation`,
};

/** How soon a process knows that the roots have changed. */
const FOLLOW_EVERY_MS = 5_000;
/** After this time, all processes that have a database know it. */
export const ROOTS_KNOWN_MS = 3 * FOLLOW_EVERY_MS;

/** Reads the roots again and again, so that none of the processes has to be started again for a rotation. */
export function followRoots(
  db: Db,
  { secret_key, secrets, log }: { secret_key: string; secrets: Secrets; log: Pick<Logger, 'warn'> },
): Periodic {
  let known = '';
  const follow = async () => {
    const [state] = await askTogether<string>(db, ROOTS);
    if (state === undefined || state === known) return;
    secrets.use(await openRoots(db, secret_key));
    known = state;
  };
  // The clock reports a database that does not answer.
  return periodic(follow, {
    every_ms: FOLLOW_EVERY_MS,
    onError: (error) => {
      if (error instanceof ConfigError) log.warn({ err: error }, 'root keys were not read');
    },
  });
}
