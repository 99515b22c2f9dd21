import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asc, eq } from 'drizzle-orm';
import { accounts } from '../../db/schema/index.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';

type FilesOf = Pick<Deps, 'db' | 'config'>;

const firstAccounts = new WeakMap<FilesOf, string>();

/**
 * The only folder that the connectors of an account may touch. The first account keeps `DATA_DIR/files`, where its files
 * were before accounts were separated. The folders of the others are beside it, not in it, so that no path leads there.
 */
export async function filesRootOf(deps: FilesOf, account_id: string): Promise<string> {
  const { DATA_DIR } = deps.config;
  return account_id === (await firstAccount(deps))
    ? join(DATA_DIR, 'files')
    : join(DATA_DIR, 'account-files', account_id);
}

/**
 * Before an attempt opens its destination.
 * @throws ConfigurationError `disk_limit_reached` if the files of the account take the space that the operator allows
 */
export async function requireDisk(deps: FilesOf, account_id: string): Promise<void> {
  const root = await filesRootOf(deps, account_id);
  if (!existsSync(root)) return;
  const [account] = await deps.db
    .select({ limit: accounts.max_disk_bytes })
    .from(accounts)
    .where(eq(accounts.id, account_id));
  const limit = account?.limit ?? null;
  if (limit === null) return;
  const used = await sizeOf(root);
  if (used < limit) return;
  throw new ConfigurationError(
    'disk_limit_reached',
    `The files of this account take ${used} of ${limit} bytes. Delete files, or ask the operator of the service`,
  );
}

/** Bytes of all files below a folder; 0 if there is none. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const found = await stat(join(entry.parentPath, entry.name)).catch(() => null);
    bytes += found?.size ?? 0;
  }
  return bytes;
}

/** It never changes, so it is read once. */
async function firstAccount(deps: FilesOf): Promise<string | undefined> {
  const known = firstAccounts.get(deps);
  if (known !== undefined) return known;
  const [first] = await deps.db
    .select({ id: accounts.id })
    .from(accounts)
    .orderBy(asc(accounts.created_at), asc(accounts.id))
    .limit(1);
  if (first) firstAccounts.set(deps, first.id);
  return first?.id;
}
