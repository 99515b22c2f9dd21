import { and, asc, desc, eq, sql } from 'drizzle-orm';
import { type RoleRow, roles } from '../../../db/schema/index.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { PERMISSIONS } from '../../api/permissions.ts';
import type { Ctx } from '../../api/procedure.ts';
import { visibleRoles } from '../access/memberships.ts';
import { isId } from '../../api/wire-types.ts';
import type { RoleSchema } from './schema.ts';

// System roles have members in every account; only those of the caller's account are visible.
const members = (account_id: string) => sql<string[]>`array(
  select m.user_id::text from user_roles m join users u on u.id = m.user_id
  where m.role_id = roles.id and u.account_id = ${account_id} and u.deleted_at is null order by m.user_id)`;

const select = ({ db, principal }: Ctx) =>
  db.select({ role: roles, user_ids: members(principal.account_id) }).from(roles);
type RoleRecord = Awaited<ReturnType<typeof select>>[number];

/** System roles first, then by name. */
export const selectRoles = (ctx: Ctx) =>
  select(ctx)
    .where(visibleRoles(ctx))
    .orderBy(desc(roles.is_system), asc(sql`lower(${roles.name}) collate "C"`), asc(roles.id));

/** @throws ApiError 404 */
export async function selectRole(ctx: Ctx, id: string): Promise<RoleRecord> {
  const [record] = isId(id) ? await select(ctx).where(and(eq(roles.id, id), visibleRoles(ctx))) : [];
  if (!record) throw notFound('Role');
  return record;
}

/** `share` protects the role from changes until the transaction ends; `update` is for changing it. @throws ApiError 404 */
export async function lockRole(ctx: Ctx, id: string, strength: 'share' | 'update'): Promise<RoleRow> {
  const visible = and(eq(roles.id, id), visibleRoles(ctx));
  const [row] = isId(id) ? await ctx.db.select().from(roles).where(visible).for(strength) : [];
  if (!row) throw notFound('Role');
  return row;
}

/** @throws ApiError 400 `system_role` */
export function refuseSystemRole(role: RoleRow): void {
  if (role.is_system) throw badRequest('system_role', `${role.name} is a system role and cannot be changed`);
}

/** Without duplicates, in the order of the permission list. */
export const permissionsAmong = (given: readonly string[]) =>
  PERMISSIONS.filter((permission) => given.includes(permission));

/** Lists have no members: there the caller sets `user_ids` to null. */
export function presentRole({ role, user_ids }: RoleRecord): RoleSchema {
  return { ...role, permissions: permissionsAmong(role.permissions), users_count: user_ids.length, user_ids };
}
