import { and, desc, eq, isNull, sql } from 'drizzle-orm';
import { type UserRow, users } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { notFound } from '../../platform/errors.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import type { UserSchema } from './schema.ts';

// Spelled out: the query builder omits the table name, and in the subquery `id` would mean another table's.
export const rolesJson = sql<UserSchema['roles']>`(
  select coalesce(json_agg(json_build_object('id', r.id, 'name', r.name) order by r.name collate "C", r.id), '[]')
  from user_roles m join roles r on r.id = m.role_id where m.user_id = users.id)`;

const select = (db: Db) => db.select({ user: users, roles: rolesJson }).from(users);

/** People, newest first. */
export const selectUsers = (db: Db, account_id: string) =>
  select(db)
    .where(and(eq(users.account_id, account_id), eq(users.kind, 'person'), isNull(users.deleted_at)))
    .orderBy(desc(users.created_at), desc(users.id));

/** @throws ApiError 404 */
export async function selectUser(ctx: Pick<Ctx, 'db'>, key: { id: string; account_id: string }) {
  const owned = and(eq(users.id, key.id), eq(users.account_id, key.account_id), isNull(users.deleted_at));
  const [record] = isId(key.id) ? await select(ctx.db).where(owned) : [];
  if (!record) throw notFound('User');
  return record;
}

/** The id of the caller, or of a user of the account whom the caller may manage. @throws ApiError 403, 404 */
export async function manageableUser(ctx: Pick<Ctx, 'db' | 'principal'>, user_id?: string): Promise<string> {
  const { user_id: own, account_id } = ctx.principal;
  if (user_id === undefined || user_id === own) return own;
  requirePermission(ctx, 'users.manage');
  await selectUser(ctx, { id: user_id, account_id });
  return user_id;
}

export function presentUser(
  { deps }: Pick<Ctx, 'deps'>,
  { user, roles }: { user: UserRow; roles: UserSchema['roles'] },
): UserSchema {
  return {
    ...user,
    is_active: user.status === 'active',
    avatar_url: user.avatar_key === null ? null : avatarUrl({ deps }, user.avatar_key),
    roles,
    invite_link: null,
  };
}

/** The object `avatars/<id>.webp` is served at `/avatars/<id>`. */
export const avatarUrl = ({ deps }: Pick<Ctx, 'deps'>, avatar_key: string) =>
  `${deps.config.BASE_PATH}/${avatar_key.replace(/\.webp$/, '')}`;
