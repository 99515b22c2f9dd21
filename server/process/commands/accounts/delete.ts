import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { deleteRows } from '../../../../db/accounts/delete.ts';
import { BackupError } from '../../../../db/backup.ts';
import { auditTable, writeRows } from '../../../../db/accounts/export.ts';
import { objectKeys } from '../../../../db/accounts/owned-tables.ts';
import { type AccountRow, accounts, connectionRuns, connections, verifications } from '../../../../db/schema/index.ts';
import { LIVE_VERIFICATION } from '../../../../db/schema/closed-sets.ts';
import type { Db } from '../../../../db/types.ts';
import { attributeOperator } from '../../../api/audit/record.ts';
import { filesRootOf } from '../../../connector-runtime/files-root.ts';
import { LIVE_RUN } from '../../../pipeline/run-states.ts';
import { type Config, ConfigError } from '../../../platform/config.ts';
import { openObjectStore } from '../../../platform/object-store.ts';
import { inControlDatabase } from '../database-of.ts';
import { accountNamed } from './find.ts';
import type { AccountArguments } from './arguments.ts';

/**
 * `account delete <id> --confirm <name> [--audit <file>] [--leave-logs]`: objects first, then files, then rows in one
 * transaction. A command that was interrupted can be repeated. The audit log stays.
 */
export async function deleteAccount({ config, words: [id], flags, say }: AccountArguments): Promise<number> {
  return inControlDatabase(config, async (db) => {
    const account = await accountNamed(db, id);
    await requireDeletable(db, account, flags.confirm);
    if (flags.audit !== undefined) await writeAudit(db, account, flags.audit);
    const kept = await releaseLogs(db, account);
    if (kept > 0 && !flags['leave-logs']) {
      if (flags.audit !== undefined) rmSync(flags.audit);
      say(`${kept} ${kept === 1 ? 'stream keeps' : 'streams keep'} a log at their sources, which workers now release`);
      say('  Repeat the command in a moment. If a source is gone, add --leave-logs');
      return 1;
    }
    const objects = await deleteObjects(db, config, account);
    await rm(await filesRootOf({ db, config }, account.id), { recursive: true, force: true });
    const rows = await db.transaction(async (tx) => {
      await attributeOperator(tx, { account_id: account.id, action: 'account_delete' });
      return deleteRows(tx, account.id);
    });
    say(`${account.name} was deleted: ${rows} rows, ${objects} objects and the folder of its files`);
    say('  Its entries stay in the audit log. Tables at its destinations stay, too');
    return 0;
  });
}

async function requireDeletable(db: Db, account: AccountRow, confirm: string | undefined): Promise<void> {
  const [first] = await db.select().from(accounts).orderBy(asc(accounts.created_at), asc(accounts.id)).limit(1);
  if (first?.id === account.id)
    throw new ConfigError('The first account is that of the operator. It cannot be deleted');
  if (account.suspended_at === null) throw new ConfigError(`Suspend the account first: account suspend ${account.id}`);
  if (confirm !== account.name)
    throw new ConfigError(`This deletes all data of the account. Confirm it by its name: --confirm "${account.name}"`);
  const own = eq(connectionRuns.account_id, account.id);
  const live =
    (await db.$count(connectionRuns, and(own, inArray(connectionRuns.status, LIVE_RUN)))) +
    (await db.$count(
      verifications,
      and(eq(verifications.account_id, account.id), inArray(verifications.status, LIVE_VERIFICATION)),
    ));
  if (live > 0)
    throw new ConfigError(`${live} ${live === 1 ? 'run has' : 'runs have'} not stopped yet. Repeat in a moment`);
}

/** After an error there is no file, so that the command can be repeated. */
async function writeAudit(db: Db, { id: account_id }: AccountRow, path: string): Promise<void> {
  if (existsSync(path)) throw new BackupError(`${path} exists. Name a new file for the audit log`);
  try {
    closeSync(openSync(path, 'wx', 0o600));
    await db.transaction((tx) => writeRows(tx, auditTable, { account_id, path }));
  } catch (error) {
    rmSync(path, { force: true });
    throw new BackupError(
      `The audit log was not written to ${path}, and nothing deleted: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
}

/** Workers release what the sources of deleted connections keep. Returns how many streams still have something. */
async function releaseLogs(db: Db, { id }: AccountRow): Promise<number> {
  await db
    .update(connections)
    .set({ deleted_at: sql`clock_timestamp()`, next_run_at: null })
    .where(and(eq(connections.account_id, id), isNull(connections.deleted_at)));
  const [row] = await db.execute<{ count: number }>(sql`
    select count(*)::int as count from change_readers r join account_connectors a on a.id = r.source_id
    where a.account_id = ${id}`);
  return row?.count ?? 0;
}

async function deleteObjects(db: Db, config: Config, { id }: AccountRow): Promise<number> {
  const store = openObjectStore(config.OBJECT_STORE_URL);
  const keys = await db.execute<{ key: string }>(objectKeys(id));
  for (const { key } of keys) await store.delete(key);
  return keys.length;
}
