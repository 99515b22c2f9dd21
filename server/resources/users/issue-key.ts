import { and, desc, eq, gt, isNull, notInArray, sql } from 'drizzle-orm';
import { apiKeys, type UserRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Actor } from '../../events/emit.ts';
import { API_KEY_DAYS, apiKeyPrefix, makeApiKey } from '../../platform/api-keys.ts';
import type { Secrets } from '../../platform/secrets.ts';
import { emitKeyEvent } from './events.ts';
import type { NewApiKey } from './key-schema.ts';

/** Two, so that a key and its replacement overlap during a rotation. */
const MAX_LIVE_KEYS = 2;

/** Neither revoked nor expired. */
export const isLive = () => and(isNull(apiKeys.revoked_at), gt(apiKeys.expires_at, sql`now()`));

/**
 * Creates a key for a user whose row the transaction has locked. Of the user's other live keys only one stays: `keep`
 * if it is live, otherwise the newest.
 */
export async function issueKey(
  cause: { db: Db; actor: Actor },
  of: {
    user: UserRow;
    secrets: Secrets;
    event: 'api_key_created' | 'api_key_rotated';
    keep?: string;
    facts?: object;
  },
): Promise<NewApiKey> {
  const { user, secrets, event, keep, facts } = of;
  const { db } = cause;
  const others = await db
    .select({ id: apiKeys.id })
    .from(apiKeys)
    .where(and(eq(apiKeys.user_id, user.id), isLive(), keep === undefined ? undefined : eq(apiKeys.id, keep)))
    .orderBy(desc(apiKeys.created_at), desc(apiKeys.id))
    .limit(MAX_LIVE_KEYS - 1);
  const staying = others.map((other) => other.id);
  await db
    .update(apiKeys)
    .set({ revoked_at: sql`now()` })
    .where(
      and(eq(apiKeys.user_id, user.id), isLive(), staying.length > 0 ? notInArray(apiKeys.id, staying) : undefined),
    );
  const api_key = makeApiKey();
  const [key] = await db
    .insert(apiKeys)
    .values({
      account_id: user.account_id,
      user_id: user.id,
      prefix: apiKeyPrefix(api_key),
      hash: secrets.hmac('api_key', api_key),
      expires_at: sql`now() + make_interval(days => ${API_KEY_DAYS})`,
    })
    .returning();
  if (!key) throw new Error('the insert returned no row');
  await emitKeyEvent(cause, event, { user, key, facts });
  return { ...key, api_key };
}
