import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { storeAuditTriggers } from './audit-triggers.ts';
import { storeComments } from './comments.ts';
import journal from './migrations/meta/_journal.json' with { type: 'json' };

const LOCK = 7_300_002;

/** The control database cannot be used by this version. The message is one line for the terminal. */
export class MigrationError extends Error {
  override name = 'MigrationError';
}

/** Errors of a server that restarts, or that starts after this process. */
const AWAY = /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|EAI_AGAIN|CONNECT_TIMEOUT|CONNECTION_CLOSED|57P01|57P02|57P03)$/;
const RETRY_MS = 500;

/**
 * Migrates the control database. Safe when several processes start at once: they wait for the first one. A database that
 * is away is waited for during `wait_ms`; `onWait` is called once, with its error.
 * @throws MigrationError if a newer version has migrated it
 */
export async function migrateDatabase(
  url: string,
  { wait_ms = 0, onWait }: { wait_ms?: number; onWait?(error: unknown): void } = {},
): Promise<void> {
  const deadline = performance.now() + wait_ms;
  for (let announced = false; ; announced = true) {
    try {
      return await migrateNow(url);
    } catch (error) {
      const isAway = AWAY.test(String((error as { code?: unknown }).code));
      if (!isAway || performance.now() >= deadline) throw error;
      if (!announced) onWait?.(error);
      await Bun.sleep(RETRY_MS);
    }
  }
}

async function migrateNow(url: string): Promise<void> {
  const client = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {}, max_lifetime: null });
  try {
    await client`select pg_advisory_lock(${LOCK})`;
    await refuseNewer(client);
    await migrate(drizzle(client), { migrationsFolder: fileURLToPath(new URL('./migrations', import.meta.url)) });
    await storeAuditTriggers(client);
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
