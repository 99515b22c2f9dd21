import { and, desc, eq, sql } from 'drizzle-orm';
import { type ApiKeyRow, apiKeys, users } from '../../../db/schema/index.ts';
import { NOTICE_DAYS } from '../../pipeline/notice-days.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import { requireAllOf } from '../access/memberships.ts';
import { lockUser } from '../access/user.ts';
import { causedBy, emitKeyEvent } from './events.ts';
import { isLive, issueKey, type ProgramKey } from './issue-key.ts';
import type { ApiKeySchema, RotatedKey } from './key-schema.ts';
import { manageableUser } from './query.ts';
import { requireConfirmed } from '../access/step-up.ts';

const DAY_MS = 86_400_000;

/**
 * Creates a new key for the caller, returned only here. The key of the request works for `grace_hours` more, at most
 * until its own expiry; all other keys without a name end immediately. The key of a program is followed by one with the
 * same name, scopes and lifetime.
 */
export async function rotateKey(ctx: Ctx, { grace_hours }: { grace_hours: number }): Promise<RotatedKey> {
  requireConfirmed(ctx);
  const user = await lockUser(ctx, ctx.principal.user_id);
  const { api_key_id } = ctx.principal;
  if (api_key_id === null) {
    throw badRequest(
      'no_api_key',
      'This session belongs to no API key that could be replaced. Create a key with a name',
    );
  }
  const [before] = await ctx.db.select().from(apiKeys).where(eq(apiKeys.id, api_key_id));
  const [previous] = await ctx.db
    .update(apiKeys)
    .set({
      expires_at: sql`least(${apiKeys.expires_at}, now() + make_interval(hours => ${grace_hours}))`,
      // The event of the rotation announces the end.
      announced_days: [...NOTICE_DAYS],
    })
    .where(and(eq(apiKeys.id, api_key_id), isLive()))
    .returning();
  // A concurrent rotation ended the key while this one waited for the lock.
  if (!previous) throw badRequest('key_not_live', 'The API key of this call was replaced or revoked in the meantime');
  const made = await issueKey(causedBy(ctx), {
    user,
    secrets: ctx.deps.secrets,
    event: 'api_key_rotated',
    keep: previous.id,
    program: successorOf(before),
    facts: { previous_prefix: previous.prefix, previous_expires_at: previous.expires_at },
  });
  return { ...made, previous };
}

function successorOf(key: ApiKeyRow | undefined): ProgramKey | undefined {
  if (!key || key.name === null) return undefined;
  const days = Math.max(1, Math.round((Date.parse(key.expires_at) - Date.parse(key.created_at)) / DAY_MS));
  return { name: key.name, scopes: key.scopes, days };
}

/** Keys of the caller, or of a user whom the caller may manage; newest first. Without the secret part. */
export async function listKeys(ctx: Ctx, { user_id }: { user_id?: string }): Promise<ApiKeySchema[]> {
  const of = await manageableUser(ctx, user_id);
  const rows = await ctx.db
    .select({ key: apiKeys, is_live: sql<boolean>`${isLive()}` })
    .from(apiKeys)
    .where(eq(apiKeys.user_id, of))
    .orderBy(desc(apiKeys.created_at), desc(apiKeys.id));
  return rows.map(({ key, is_live }) => ({
    ...key,
    status: key.revoked_at !== null ? 'revoked' : is_live ? 'live' : 'expired',
    is_current: key.id === ctx.principal.api_key_id,
  }));
}

/**
 * Revokes a key of the caller, or of a user whom the caller may manage. To end the key of the request itself, callers
 * rotate it without grace, so that they cannot lock themselves out.
 * @throws ApiError 404; 403; 400 `key_in_use`.
 */
export async function revokeKey(ctx: Ctx, { key_id }: { key_id: string }): Promise<void> {
  if (!isId(key_id)) throw notFound('API key');
  const [found] = await ctx.db
    .select({ key: apiKeys, user: users })
    .from(apiKeys)
    .innerJoin(users, eq(users.id, apiKeys.user_id))
    .where(and(eq(apiKeys.id, key_id), eq(apiKeys.account_id, ctx.principal.account_id)))
    .for('no key update', { of: apiKeys });
  const isOwn = found?.user.id === ctx.principal.user_id;
  if (!isOwn) requirePermission(ctx, 'users.manage');
  if (!found) throw notFound('API key');
  if (key_id === ctx.principal.api_key_id) {
    throw badRequest('key_in_use', 'This call uses the key. Replace it with users.rotateKey and grace_hours 0');
  }
  await requireAllOf(ctx, found.user);
  if (found.key.revoked_at !== null) return;
  await ctx.db.update(apiKeys).set({ revoked_at: sql`now()` }).where(eq(apiKeys.id, key_id));
  await emitKeyEvent(causedBy(ctx), 'api_key_revoked', found);
}
