import { and, asc, eq, inArray, isNull, or } from 'drizzle-orm';
import { type RoleRow, roles, userRoles } from '../../../db/schema/index.ts';
import { emitMembership } from '../../events/role-events.ts';
import { ApiError, badRequest } from '../../platform/errors.ts';
import type { Permission } from '../../api/permissions.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';

type Member = { id: string; email: string; full_name: string };

/**
 * Users can only grant permissions that they hold.
 * @throws ApiError 400 `cannot_grant_unheld_permission` with the `permissions` that the caller lacks.
 */
export function requireHeld(ctx: Pick<Ctx, 'principal'>, granted: readonly string[]): void {
  const permissions = granted.filter((permission) => !ctx.principal.permissions.has(permission as Permission));
  if (permissions.length === 0) return;
  throw badRequest(
    'cannot_grant_unheld_permission',
    `You cannot grant permissions that you do not hold: ${permissions.join(', ')}`,
    {
      permissions,
    },
  );
}

/**
 * Only users who hold all permissions of another user may change, disable or delete that user.
 * @throws ApiError 403 `permission_denied` with the permissions that the caller lacks.
 */
export async function requireAllOf(ctx: Pick<Ctx, 'db' | 'principal'>, user: { id: string }): Promise<void> {
  if (user.id === ctx.principal.user_id) return;
  requireAllPermissions(
    ctx,
    (await rolesOf(ctx, user.id)).flatMap((role) => role.permissions),
  );
}

/** @throws ApiError 403 `permission_denied` with the permissions that the caller lacks. */
export function requireAllPermissions({ principal }: Pick<Ctx, 'principal'>, needed: readonly string[]): void {
  const required_permission = [...new Set(needed)].filter((name) => !principal.permissions.has(name as Permission));
  if (required_permission.length === 0) return;
  const message = `The user has permissions that you do not have: ${required_permission.join(', ')}`;
  throw new ApiError(403, 'permission_denied', message, { required_permission });
}

/** System roles, and the roles of the caller's account. */
export const visibleRoles = (ctx: Pick<Ctx, 'principal'>) =>
  or(isNull(roles.account_id), eq(roles.account_id, ctx.principal.account_id));

/**
 * Roles named in a request body, ordered by id and locked against changes until the transaction ends.
 * @throws ApiError 400 `invalid_reference` with the unknown `role_ids`.
 */
export async function lockRoles(ctx: Ctx, ids: readonly string[]): Promise<RoleRow[]> {
  const found = await ctx.db
    .select()
    .from(roles)
    .where(and(inArray(roles.id, [...ids]), visibleRoles(ctx)))
    .orderBy(asc(roles.id))
    .for('share');
  const role_ids = ids.filter((id) => !found.some((role) => role.id === id));
  if (role_ids.length === 0) return found;
  throw badRequest('invalid_reference', 'role_ids names roles that do not exist', { field: 'role_ids', role_ids });
}

/** Assigns roles from `lockRoles` that the user does not have. @throws ApiError 400, see `requireHeld`. */
export async function assignRoles(ctx: Ctx, user: Member, assigned: readonly RoleRow[]): Promise<void> {
  requireHeld(ctx, [...new Set(assigned.flatMap((role) => role.permissions))]);
  if (assigned.length === 0) return;
  const rows = assigned.map((role) => ({ user_id: user.id, role_id: role.id }));
  await ctx.db.insert(userRoles).values(rows).onConflictDoNothing();
  for (const role of assigned) await emitMembership(cause(ctx), 'role_assigned', { user, role });
}

/** Removes roles that the user has. */
export async function unassignRoles(ctx: Ctx, user: Member, unassigned: readonly RoleRow[]): Promise<void> {
  if (unassigned.length === 0) return;
  const ids = unassigned.map((role) => role.id);
  await ctx.db.delete(userRoles).where(and(eq(userRoles.user_id, user.id), inArray(userRoles.role_id, ids)));
  for (const role of unassigned) await emitMembership(cause(ctx), 'role_unassigned', { user, role });
}

/** The roles of a user, ordered by name. */
export const rolesOf = async (ctx: Pick<Ctx, 'db'>, user_id: string): Promise<RoleRow[]> => {
  const rows = await ctx.db
    .select({ role: roles })
    .from(userRoles)
    .innerJoin(roles, eq(roles.id, userRoles.role_id))
    .where(eq(userRoles.user_id, user_id))
    .orderBy(asc(roles.name), asc(roles.id));
  return rows.map(({ role }) => role);
};

const cause = ({ db, principal }: Ctx) => ({ db, actor: actorOf(principal), account_id: principal.account_id });
