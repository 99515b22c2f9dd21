import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';

const LOCK = 7_300_002;

/** Migrates the control database. Safe when several processes start at once: they wait for the first one. */
export async function migrateDatabase(url: string): Promise<void> {
  const client = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {}, max_lifetime: null });
  try {
    await client`select pg_advisory_lock(${LOCK})`;
    await migrate(drizzle(client), { migrationsFolder: fileURLToPath(new URL('./migrations', import.meta.url)) });
  } finally {
    await client.end({ timeout: 5 });
  }
}
