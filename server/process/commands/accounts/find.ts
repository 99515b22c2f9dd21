import { eq } from 'drizzle-orm';
import { type AccountRow, accounts } from '../../../../db/schema/index.ts';
import type { Db } from '../../../../db/types.ts';
import { ConfigError } from '../../../platform/config.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** @throws ConfigError if there is no such account */
export async function accountNamed(db: Db, id: string | undefined): Promise<AccountRow> {
  if (id === undefined) throw new ConfigError('Name the id of an account. To see all: account list');
  const [account] = UUID.test(id) ? await db.select().from(accounts).where(eq(accounts.id, id)) : [];
  if (!account) throw new ConfigError(`There is no account ${id}. To see all: account list`);
  return account;
}
