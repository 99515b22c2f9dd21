import { and, eq, sql } from 'drizzle-orm';
import { apiKeys, savedViews, userIdentities, userRoles, users } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { keepingAnAdministrator } from '../access/last-administrator.ts';
import { requireAllOf, rolesOf } from '../access/memberships.ts';
import { lockUser } from '../access/user.ts';
import { deletePicture } from './avatar.ts';
import { emitUserEvent } from './events.ts';
import { presentUser, selectUser, selectUsers } from './query.ts';
import type { UserSchema, UserSchemaWithMeTagged } from './schema.ts';

/** The account's users, newest first. */
export async function listUsers(ctx: Ctx): Promise<UserSchemaWithMeTagged[]> {
  const { db, principal } = ctx;
  const records = await selectUsers(db, principal.account_id);
  return records.map((record) => ({ ...presentUser(ctx, record), is_me: record.user.id === principal.user_id }));
}

export async function getUser(ctx: Ctx, { user_id }: { user_id: string }): Promise<UserSchema> {
  return presentUser(ctx, await selectUser(ctx, { id: user_id, account_id: ctx.principal.account_id }));
}

/**
 * Soft-deletes: removes keys, sign-ins, roles, own views and picture and frees the address. Past actions and shared views
 * keep the user's name.
 * @throws ApiError 400 `cannot_delete_self`, `last_administrator`.
 */
export async function deleteUser(ctx: Ctx, { user_id }: { user_id: string }): Promise<void> {
  const avatar_key = await ctx.db.transaction((db) => {
    const inside = { ...ctx, db };
    return keepingAnAdministrator(inside, () => removeUser(inside, user_id));
  });
  // After the commit: a picture without a user is harmless, a user with a missing picture is not.
  if (avatar_key !== null) await deletePicture(ctx.deps, avatar_key);
}

async function removeUser(ctx: Ctx, user_id: string): Promise<string | null> {
  const user = await lockUser(ctx, user_id);
  if (user.id === ctx.principal.user_id) throw badRequest('cannot_delete_self', 'You cannot delete yourself');
  await requireAllOf(ctx, user);
  const role_names = (await rolesOf(ctx, user.id)).map((role) => role.name);
  await ctx.db.delete(userRoles).where(eq(userRoles.user_id, user.id));
  await ctx.db.delete(userIdentities).where(eq(userIdentities.user_id, user.id));
  await ctx.db.delete(savedViews).where(and(eq(savedViews.created_by, user.id), eq(savedViews.is_shared, false)));
  await ctx.db
    .update(apiKeys)
    .set({ revoked_at: sql`coalesce(${apiKeys.revoked_at}, now())` })
    .where(eq(apiKeys.user_id, user.id));
  await ctx.db
    .update(users)
    .set({ deleted_at: sql`now()`, avatar_key: null, invitation_hash: null })
    .where(eq(users.id, user.id));
  await emitUserEvent(ctx, 'user_removed', { user, role_names });
  return user.avatar_key;
}
