import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
      const { code } = error as { code?: unknown };
      const isAway = code === PENDING || AWAY.test(String(code));
      if (!isAway || performance.now() >= deadline) throw error;
      if (!announced) onWait?.(error);
      await Bun.sleep(RETRY_MS);
    }
  }
}

const FOLDER = fileURLToPath(new URL('./migrations', import.meta.url));
const open = (url: string) => postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {}, max_lifetime: null });

async function migrateNow(url: string): Promise<void> {
  const client = open(url);
  try {
    await client`select pg_advisory_lock(${LOCK})`;
    const isMigrated = await hasNewest(client);
    if (!(await isOwner(client))) return isMigrated ? undefined : await requireMigrated(url);
    // The driver reads and hashes all migrations, which most starts need not apply.
    if (!isMigrated) await migrate(drizzle(client), { migrationsFolder: FOLDER });
    await storeAuditTriggers(client);
    await storeComments(client);
  } finally {
    await client.end({ timeout: 5 });
  }
}

/** Migrations of a database that another role has to apply. */
const PENDING = 'MIGRATIONS_PENDING';

/** Whether the role may migrate: it owns the tables, or may create them. */
async function isOwner(client: postgres.Sql): Promise<boolean> {
  const [row] = await client`
    select coalesce((select pg_has_role(c.relowner, 'usage') from pg_class c where c.oid = to_regclass('public.accounts')),
      has_database_privilege(current_database(), 'create')) as is_owner`;
  return row?.is_owner === true;
}

/** The role of the service waits for the owner of the tables. */
async function requireMigrated(url: string): Promise<void> {
  const { pending } = await readMigrations(url);
  if (pending.length === 0) return;
  const message = `${pending.length} migrations are pending, and the role of DATABASE_URL does not own the tables. Run the command migrate with DATABASE_OWNER_URL`;
  throw Object.assign(new MigrationError(message), { code: PENDING });
}

/** Applies the first `count` migrations only, to load what was saved with them. */
export async function migrateTo(url: string, count: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'));
  const client = open(url);
  try {
    const entries = journal.entries.slice(0, count);
    mkdirSync(join(folder, 'meta'));
    writeFileSync(join(folder, 'meta/_journal.json'), JSON.stringify({ ...journal, entries }));
    for (const { tag } of entries) cpSync(join(FOLDER, `${tag}.sql`), join(folder, `${tag}.sql`));
    await client`select pg_advisory_lock(${LOCK})`;
    await migrate(drizzle(client), { migrationsFolder: folder });
  } finally {
    await client.end({ timeout: 5 });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** How the migrations of a database compare with those of this version. */
export interface MigrationState {
  /** Names of those that a start would apply. */
  pending: string[];
  /** Names of those that are older than the last one applied, and that no start applies: a branch was merged late. */
  skipped: string[];
  /** How many were applied by a newer version. */
  unknown: number;
}

/** Compares without changing anything. */
export async function readMigrations(url: string): Promise<MigrationState> {
  const client = open(url);
  try {
    const [table] = await client`select to_regclass('drizzle.__drizzle_migrations') as found`;
    const applied = table?.found
      ? await client<{ hash: string; at: number }[]>`
          select hash, created_at::float as at from drizzle.__drizzle_migrations`
      : [];
    const known = journal.entries.map(({ tag, when }) => ({ tag, when, hash: hashOf(tag) }));
    const missing = known.filter(({ hash, when }) => !applied.some((one) => one.hash === hash || one.at === when));
    const newest = Math.max(0, ...applied.map(({ at }) => at));
    return {
      pending: missing.filter(({ when }) => when > newest).map(({ tag }) => tag),
      skipped: missing.filter(({ when }) => when <= newest).map(({ tag }) => tag),
      unknown: applied.filter(({ at }) => at > NEWEST).length,
    };
  } finally {
    await client.end({ timeout: 5 });
  }
}

const hashOf = (tag: string) =>
  createHash('sha256')
    .update(readFileSync(join(FOLDER, `${tag}.sql`), 'utf8'))
    .digest('hex');

const NEWEST = Math.max(...journal.entries.map(({ when }) => when));

/** Whether the newest migration of this version is applied. @throws MigrationError if that of a newer version is */
async function hasNewest(client: postgres.Sql): Promise<boolean> {
  const [table] = await client`select to_regclass('drizzle.__drizzle_migrations') as found`;
  if (!table?.found) return false;
  const [applied] = await client`
    select count(*) filter (where created_at > ${NEWEST})::int as newer, max(created_at)::float as newest
    from drizzle.__drizzle_migrations`;
  if (!applied?.newer) return applied?.newest === NEWEST;
  throw new MigrationError(
    `The database was migrated by a newer version: it has ${applied.newer} ${applied.newer === 1 ? 'migration' : 'migrations'} that this version does not know. Start the newer version, or restore a backup from before the upgrade`,
  );
}
