import { and, eq, inArray, ne, sql } from 'drizzle-orm';
import { type RoleRow, roles, userRoles } from '../../../db/schema/index.ts';
import { changedColumns, keysOf, pick } from '../../api/changed-columns.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { duplicateName, refuseDuplicateName } from '../../api/duplicate-name.ts';
import { requireAllPermissions, requireHeld, visibleRoles } from '../access/memberships.ts';
import { requireFeature } from '../../billing/limits.ts';
import { accountPlan } from '../access/account-plan.ts';
import { emitRoleEvent } from './events.ts';
import { lockRole, permissionsAmong, presentRole, refuseSystemRole, selectRole, selectRoles } from './query.ts';
import type { CreateRequest, RoleSchema, UpdateRequest } from './schema.ts';

/** System roles first, then by name. */
export async function listRoles(ctx: Ctx): Promise<RoleSchema[]> {
  return (await selectRoles(ctx)).map((record) => ({ ...presentRole(record), user_ids: null }));
}

export async function getRole(ctx: Ctx, { role_id }: { role_id: string }): Promise<RoleSchema> {
  return presentRole(await selectRole(ctx, role_id));
}

/** @throws ApiError 400 `duplicate_name`, `cannot_grant_unheld_permission`; 402 `feature_not_in_plan`. */
export async function createRole(ctx: Ctx, input: CreateRequest): Promise<RoleSchema> {
  const permissions = permissionsAmong(input.permissions);
  requireHeld(ctx, permissions);
  await requireFreeName(ctx, input.name);
  requireFeature(await accountPlan(ctx), 'custom_roles');
  const { name, description } = input;
  const inserting = ctx.db
    .insert(roles)
    .values({ account_id: ctx.principal.account_id, name, description, permissions })
    .returning();
  const [role] = await refuseDuplicateName('role', inserting);
  if (!role) throw new Error('the insert returned no row');
  await emitRoleEvent(ctx, 'role_created', { role });
  return getRole(ctx, { role_id: role.id });
}

/**
 * Changes a role of the account; the new permissions apply from the members' next request on. A request that
 * changes nothing leaves time stamps and events alone.
 * @throws ApiError 404; 400 `system_role`, `duplicate_name`, `cannot_grant_unheld_permission`.
 */
export async function updateRole(ctx: Ctx, input: UpdateRequest & { role_id: string }): Promise<RoleSchema> {
  const role = await lockRole(ctx, input.role_id, 'update');
  refuseSystemRole(role);
  const changes = changesOf(role, input);
  requireHeld(
    ctx,
    (changes.permissions ?? []).filter((permission) => !role.permissions.includes(permission)),
  );
  const { permissions = role.permissions } = changes;
  const isStripped = role.permissions.some((permission) => !permissions.includes(permission));
  if (isStripped) requireAllPermissions(ctx, await permissionsOfMembers(ctx, role));
  if (changes.name !== undefined) await requireFreeName(ctx, changes.name, role.id);
  const changed_fields = keysOf(changes);
  if (changed_fields.length > 0) {
    const updating = ctx.db.update(roles).set(changes).where(eq(roles.id, role.id)).returning();
    const [changed] = await refuseDuplicateName('role', updating);
    if (!changed) throw new Error('the locked row no longer exists');
    const before = pick(role, changed_fields);
    await emitRoleEvent(ctx, 'role_updated', { role: changed, changed_fields, before, after: changes });
  }
  return getRole(ctx, input);
}

/** All permissions of the users with this role, from any role. */
async function permissionsOfMembers(ctx: Ctx, role: RoleRow): Promise<string[]> {
  const members = ctx.db.select({ id: userRoles.user_id }).from(userRoles).where(eq(userRoles.role_id, role.id));
  const held = await ctx.db
    .selectDistinct({ permissions: roles.permissions })
    .from(userRoles)
    .innerJoin(roles, eq(roles.id, userRoles.role_id))
    .where(inArray(userRoles.user_id, members));
  return held.flatMap(({ permissions }) => permissions);
}

function changesOf(role: RoleRow, input: UpdateRequest) {
  const { name, description, permissions } = input;
  const wanted = { name, description, permissions: permissions && permissionsAmong(permissions) };
  return changedColumns(role, wanted);
}

/** @throws ApiError 404; 400 `system_role`, `role_in_use` with `user_ids`. */
export async function deleteRole(ctx: Ctx, { role_id }: { role_id: string }): Promise<void> {
  const role = await lockRole(ctx, role_id, 'update');
  refuseSystemRole(role);
  const members = await ctx.db.select({ id: userRoles.user_id }).from(userRoles).where(eq(userRoles.role_id, role.id));
  if (members.length > 0) {
    throw badRequest('role_in_use', 'The role is assigned to users', {
      user_ids: members.map((member) => member.id).toSorted(),
    });
  }
  await ctx.db.delete(roles).where(eq(roles.id, role.id));
  await emitRoleEvent(ctx, 'role_deleted', { role });
}

/** The unique index on names does not cover system roles. */
async function requireFreeName(ctx: Ctx, name: string, except?: string): Promise<void> {
  const [other] = await ctx.db
    .select({ id: roles.id })
    .from(roles)
    .where(
      and(
        visibleRoles(ctx),
        eq(sql`lower(${roles.name})`, sql`lower(${name})`),
        except === undefined ? undefined : ne(roles.id, except),
      ),
    );
  if (other) throw duplicateName('role');
}
