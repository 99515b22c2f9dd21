import { join } from 'node:path';
import { asc } from 'drizzle-orm';
import { accounts } from '../../db/schema/index.ts';
import type { Deps } from '../deps.ts';

const firstAccounts = new WeakMap<Deps, string>();

/**
 * The only folder that the connectors of an account may touch. The first account keeps `DATA_DIR/files`, where its files
 * were before accounts were separated. The folders of the others are beside it, not in it, so that no path leads there.
 */
export async function filesRootOf(deps: Deps, account_id: string): Promise<string> {
  const { DATA_DIR } = deps.config;
  return account_id === (await firstAccount(deps))
    ? join(DATA_DIR, 'files')
    : join(DATA_DIR, 'account-files', account_id);
}

/** It never changes, so it is read once. */
async function firstAccount(deps: Deps): Promise<string | undefined> {
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
