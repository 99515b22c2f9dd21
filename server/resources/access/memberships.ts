import { and, asc, eq, inArray, isNull, or } from 'drizzle-orm';
import { type RoleRow, roles, userRoles } from '../../../db/schema/index.ts';
import { emit } from '../../events/emit.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Permission } from '../../api/permissions.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';

type Member = { id: string; email: string; full_name: string };

/**
 * Nobody gives away what he has not.
 * @throws ApiError 400 `cannot_grant_unheld_permission` with the `permissions` that the caller lacks.
 */
export function requireHeld(ctx: Pick<Ctx, 'principal'>, granted: readonly string[]): void {
  const permissions = granted.filter((permission) => !ctx.principal.permissions.has(permission as Permission));
  if (permissions.length === 0) return;
  throw badRequest('cannot_grant_unheld_permission', `You do not hold ${permissions.join(', ')} yourself`, {
    permissions,
  });
}

/** System roles and the caller's account's own. */
export const visibleRoles = (ctx: Pick<Ctx, 'principal'>) =>
  or(isNull(roles.account_id), eq(roles.account_id, ctx.principal.account_id));

/**
 * Roles named in a request body, ordered by id; they can neither be deleted nor changed before the transaction ends.
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

/** Makes a user a member of roles that `lockRoles` gave and he has not. @throws ApiError 400, see `requireHeld`. */
export async function assignRoles(ctx: Ctx, user: Member, assigned: readonly RoleRow[]): Promise<void> {
  requireHeld(ctx, [...new Set(assigned.flatMap((role) => role.permissions))]);
  if (assigned.length === 0) return;
  const rows = assigned.map((role) => ({ user_id: user.id, role_id: role.id }));
  await ctx.db.insert(userRoles).values(rows).onConflictDoNothing();
  for (const role of assigned) await emitMembership(ctx, 'role_assigned', { user, role });
}

/** Takes roles away that the user has. */
export async function unassignRoles(ctx: Ctx, user: Member, unassigned: readonly RoleRow[]): Promise<void> {
  if (unassigned.length === 0) return;
  const ids = unassigned.map((role) => role.id);
  await ctx.db.delete(userRoles).where(and(eq(userRoles.user_id, user.id), inArray(userRoles.role_id, ids)));
  for (const role of unassigned) await emitMembership(ctx, 'role_unassigned', { user, role });
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

async function emitMembership(
  ctx: Ctx,
  event: 'role_assigned' | 'role_unassigned',
  { user, role }: { user: Member; role: RoleRow },
): Promise<void> {
  const verb = event === 'role_assigned' ? 'got' : 'lost';
  await emit(ctx.db, {
    account_id: ctx.principal.account_id,
    event,
    actor: actorOf(ctx.principal),
    resource: { type: 'role', id: role.id, name: role.name },
    summary: `${user.full_name} ${verb} the role "${role.name}"`,
    user_id: user.id,
    payload: { role_id: role.id, role_name: role.name, user_id: user.id, email: user.email },
  });
}
