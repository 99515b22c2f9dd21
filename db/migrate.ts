import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { storeComments } from './comments.ts';
import journal from './migrations/meta/_journal.json' with { type: 'json' };

const LOCK = 7_300_002;

/** The control database cannot be used by this version. The message is one line for the terminal. */
export class MigrationError extends Error {
  override name = 'MigrationError';
}

/**
 * Migrates the control database. Safe when several processes start at once: they wait for the first one.
 * @throws MigrationError if a newer version has migrated it
 */
export async function migrateDatabase(url: string): Promise<void> {
  const client = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {}, max_lifetime: null });
  try {
    await client`select pg_advisory_lock(${LOCK})`;
    await refuseNewer(client);
    await migrate(drizzle(client), { migrationsFolder: fileURLToPath(new URL('./migrations', import.meta.url)) });
    await storeComments(client);
  } finally {
    await client.end({ timeout: 5 });
  }
}

const NEWEST = Math.max(...journal.entries.map(({ when }) => when));

/** This version would run against tables that it does not know. */
async function refuseNewer(client: postgres.Sql): Promise<void> {
  const [table] = await client`select to_regclass('drizzle.__drizzle_migrations') as found`;
  if (!table?.found) return;
  const [newer] = await client`
    select count(*)::int as count from drizzle.__drizzle_migrations where created_at::bigint > ${NEWEST}`;
  if (!newer?.count) return;
  throw new MigrationError(
    `The database was migrated by a newer version: it has ${newer.count} ${newer.count === 1 ? 'migration' : 'migrations'} that this version does not know. Start the newer version, or restore a backup from before the upgrade`,
  );
}
