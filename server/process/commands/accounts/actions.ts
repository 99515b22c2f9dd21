import { existsSync } from 'node:fs';
import { eq, sql } from 'drizzle-orm';
import { exportAccount } from '../../../../db/accounts/export.ts';
import { BackupError } from '../../../../db/backup.ts';
import { openRoots } from '../../../../db/pinned-key.ts';
import { accounts, roles } from '../../../../db/schema/index.ts';
import type { Db } from '../../../../db/types.ts';
import { attributeOperator } from '../../../api/audit/record.ts';
import { readAccountPlan } from '../../../billing/account-plan.ts';
import { rowsLoaded } from '../../../billing/credits.ts';
import { filesRootOf, sizeOf } from '../../../connector-runtime/files-root.ts';
import { apiKeyPrefix, makeApiKey } from '../../../platform/api-keys.ts';
import { ConfigError } from '../../../platform/config.ts';
import { openObjectStore } from '../../../platform/object-store.ts';
import { openSecrets } from '../../../platform/secrets.ts';
import { NO_QUEUE } from '../../../queue/no-queue.ts';
import { stopSuspended } from '../../../runs/stop.ts';
import { keepAlive, makeAdministrator } from '../../bootstrap.ts';
import { inControlDatabase } from '../database-of.ts';
import { accountNamed } from './find.ts';
import type { AccountArguments } from './arguments.ts';

export { deleteAccount } from './delete.ts';

/** `account list [--json]` */
export async function listAccounts({ config, flags, say }: AccountArguments): Promise<number> {
  await inControlDatabase(config, async (db) => {
    for (const { id } of await db.select({ id: accounts.id }).from(accounts).orderBy(accounts.created_at)) {
      const { account, plan, period } = await readAccountPlan(db, id, { now: new Date() });
      const { name, suspended_at, max_rows_per_period, max_live_runs, max_disk_bytes, max_log_days } = account;
      const folder = await filesRootOf({ db, config }, id);
      const rows = await rowsLoaded(db, id, period);
      const limits = { max_rows_per_period, max_live_runs, max_disk_bytes, max_log_days };
      const facts = { id, name, plan: plan.id, suspended_at, rows, disk_bytes: await sizeOf(folder), folder, limits };
      const set = Object.entries(limits).flatMap(([limit, value]) => (value === null ? [] : [`${limit} ${value}`]));
      const state = suspended_at === null ? 'active' : `suspended since ${suspended_at}`;
      const words = [`${rows} rows this billing period`, `${facts.disk_bytes} bytes in ${folder}`, ...set];
      say(flags.json ? JSON.stringify(facts) : `${id}  ${name} (${plan.id}, ${state}): ${words.join(', ')}`);
    }
  });
  return 0;
}

/** `account create <name> --email <address>` */
export async function createAccount({ config, words: [name], flags: { email }, say }: AccountArguments) {
  if (!name || !email) throw new ConfigError('Use: account create <name> --email <address of its administrator>');
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new ConfigError(`"${email}" is not an e-mail address`);
  const key = makeApiKey();
  const id = await inControlDatabase(config, async (db) => {
    const secrets = openSecrets(await openRoots(db, config.SECRET_KEY));
    return db.transaction(async (tx) => {
      const [role] = await tx.select({ id: roles.id }).from(roles).where(isAdministrator);
      if (!role) throw new ConfigError('The service has never started on this database. Start it once');
      const [made] = await tx.insert(accounts).values({ name }).returning({ id: accounts.id });
      const account_id = made!.id;
      await attributeOperator(tx, { account_id, action: 'account_create' });
      const user_id = await makeAdministrator(tx, { account_id, role_id: role.id, email });
      const hash = secrets.hmac('api_key', key);
      await keepAlive(tx, { account_id, user_id, hash, prefix: apiKeyPrefix(key) });
      return account_id;
    });
  });
  say(`Account ${id} was created`);
  say(`  API key of ${email}, valid for 90 days, shown only now: ${key}`);
  return 0;
}

const isAdministrator = sql`${roles.is_system} and ${roles.name} = 'Administrator'`;

const LIMITS = {
  rows: { column: 'max_rows_per_period', unit: 1, least: 0 },
  runs: { column: 'max_live_runs', unit: 1, least: 0 },
  'disk-mb': { column: 'max_disk_bytes', unit: 1024 * 1024, least: 0 },
  'log-days': { column: 'max_log_days', unit: 1, least: 1 },
} as const;

/** `account limit <id> [--rows N] [--runs N] [--disk-mb N] [--log-days N]`; `none` removes a limit */
export async function limitAccount({ config, words: [id], flags, say }: AccountArguments): Promise<number> {
  const changes: Partial<typeof accounts.$inferInsert> = {};
  for (const [flag, { column, unit, least }] of Object.entries(LIMITS)) {
    const given = flags[flag as keyof typeof LIMITS];
    if (given !== undefined) changes[column] = limitIn(flag, given, { unit, least });
  }
  if (Object.keys(changes).length === 0)
    throw new ConfigError('Name a limit: --rows, --runs, --disk-mb or --log-days, with a number or none');
  const account = await changeAccount({ config, id, action: 'account_limit' }, changes);
  for (const { column } of Object.values(LIMITS)) say(`${column}: ${account[column] ?? 'none'}`);
  return 0;
}

function limitIn(flag: string, text: string, { unit, least }: { unit: number; least: number }): number | null {
  if (text === 'none') return null;
  const value = /^\d{1,12}$/.test(text) ? Number(text) : -1;
  if (value < least || (flag !== 'rows' && value > 2_000_000_000))
    throw new ConfigError(`--${flag} must be a whole number from ${least}, or none`);
  return value * unit;
}

/** `account suspend <id> [--reason <text>]` */
export async function suspendAccount({ config, words: [id], flags, say }: AccountArguments): Promise<number> {
  const at = sql`clock_timestamp()` as never;
  const change = { suspended_at: at, suspension_reason: flags.reason ?? null };
  const { name } = await changeAccount({ config, id, action: 'account_suspend' }, change);
  await inControlDatabase(config, (db) => stopSuspended(db, NO_QUEUE));
  say(`${name} is suspended: its runs stop, its schedules are held, and its keys and sessions are refused`);
  return 0;
}

/** `account resume <id>` */
export async function resumeAccount({ config, words: [id], say }: AccountArguments): Promise<number> {
  const change = { suspended_at: null, suspension_reason: null };
  const { name } = await changeAccount({ config, id, action: 'account_resume' }, change);
  say(`${name} is active. A connection whose schedule was due meanwhile runs once`);
  return 0;
}

const changeAccount = (
  { config, id, action }: { config: AccountArguments['config']; id: string | undefined; action: string },
  change: Partial<typeof accounts.$inferInsert>,
) =>
  inControlDatabase(config, (db: Db) =>
    db.transaction(async (tx) => {
      const { id: account_id } = await accountNamed(tx, id);
      await attributeOperator(tx, { account_id, action });
      const [changed] = await tx.update(accounts).set(change).where(eq(accounts.id, account_id)).returning();
      return changed!;
    }),
  );

/** `account export <id> <folder>` */
export async function exportAccountTo({ config, words: [id, folder], say }: AccountArguments): Promise<number> {
  if (!folder) throw new ConfigError('Use: account export <id> <new folder>');
  if (existsSync(folder)) throw new BackupError(`${folder} exists. Name a new folder for the export`);
  const objects = openObjectStore(config.OBJECT_STORE_URL);
  const written = await inControlDatabase(config, async (db) => {
    const account = await accountNamed(db, id);
    const files = await filesRootOf({ db, config }, account.id);
    await db.transaction((tx) => attributeOperator(tx, { account_id: account.id, action: 'account_export' }));
    return exportAccount({ db, objects, files }, account.id, folder);
  });
  const rows = written.tables.reduce((sum, table) => sum + table.rows, 0);
  say(`Export in ${folder}: ${rows} rows of ${written.tables.length} tables, ${written.objects.length} objects`);
  say('  account.json describes each file. Secrets are left out');
  return 0;
}
