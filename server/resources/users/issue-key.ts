import { and, desc, eq, gt, isNull, notInArray, sql } from 'drizzle-orm';
import { apiKeys, type UserRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Actor } from '../../events/emit.ts';
import { API_KEY_DAYS, apiKeyPrefix, makeApiKey } from '../../platform/api-keys.ts';
import type { Secrets } from '../../platform/secrets.ts';
import { emitKeyEvent } from './events.ts';
import type { NewApiKey } from './key-schema.ts';

/** Without a name. Two, so that a key and its replacement overlap during a rotation. */
const MAX_LIVE_KEYS = 2;

/** Neither revoked nor expired. */
export const isLive = () => and(isNull(apiKeys.revoked_at), gt(apiKeys.expires_at, sql`now()`));

/** The key of a program: its name, and the permissions that it may use. Null: all that its user has. */
export interface ProgramKey {
  name: string;
  scopes: string[] | null;
  days: number;
}

/**
 * Creates a key for a user whose row the transaction has locked. Of the user's other live keys without a name only one
 * stays: `keep` if it is live, otherwise the newest. A key of a program ends no other.
 */
export async function issueKey(
  cause: { db: Db; actor: Actor },
  of: {
    user: UserRow;
    secrets: Secrets;
    event: 'api_key_created' | 'api_key_rotated';
    keep?: string;
    facts?: object;
    program?: ProgramKey;
  },
): Promise<NewApiKey> {
  const { user, secrets, event, facts, program } = of;
  const { db } = cause;
  if (!program) await endOthers(db, of);
  const api_key = makeApiKey();
  const [key] = await db
    .insert(apiKeys)
    .values({
      account_id: user.account_id,
      user_id: user.id,
      prefix: apiKeyPrefix(api_key),
      hash: secrets.hmac('api_key', api_key),
      name: program?.name,
      scopes: program?.scopes,
      expires_at: sql`now() + make_interval(days => ${program?.days ?? API_KEY_DAYS})`,
    })
    .returning();
  if (!key) throw new Error('the insert returned no row');
  await emitKeyEvent(cause, event, { user, key, facts });
  return { ...key, api_key };
}

async function endOthers(db: Db, { user, keep }: { user: UserRow; keep?: string }): Promise<void> {
  const personal = and(eq(apiKeys.user_id, user.id), isLive(), isNull(apiKeys.name));
  const others = await db
    .select({ id: apiKeys.id })
    .from(apiKeys)
    .where(and(personal, keep === undefined ? undefined : eq(apiKeys.id, keep)))
    .orderBy(desc(apiKeys.created_at), desc(apiKeys.id))
    .limit(MAX_LIVE_KEYS - 1);
  const staying = others.map((other) => other.id);
  await db
    .update(apiKeys)
    .set({ revoked_at: sql`now()` })
    .where(and(personal, staying.length > 0 ? notInArray(apiKeys.id, staying) : undefined));
}
