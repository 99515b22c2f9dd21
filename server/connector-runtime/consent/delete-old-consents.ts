import { lt } from 'drizzle-orm';
import { oauthConsents } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';

/** Consents that have expired, with their tokens. */
export async function deleteOldConsents({ db, now }: Pick<Deps, 'db' | 'now'>): Promise<void> {
  await db.delete(oauthConsents).where(lt(oauthConsents.expires_at, now().toISOString()));
}
