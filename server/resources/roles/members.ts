import { notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { keepingAnAdministrator } from '../access/last-administrator.ts';
import { assignRoles, requireAllOf, rolesOf, unassignRoles } from '../access/memberships.ts';
import { lockUser } from '../access/user.ts';
import { lockRole, selectRole } from './query.ts';
import type { RoleSchema } from './schema.ts';
import { getRole } from './service.ts';

interface Membership {
  role_id: string;
  user_id: string;
}

/**
 * Assigns a role to a user. An assigned role stays assigned.
 * @throws ApiError 404 for the role, then for the user; 400 `cannot_grant_unheld_permission`.
 */
export async function addRoleUser(ctx: Ctx, input: Membership): Promise<RoleSchema> {
  await selectRole(ctx, input.role_id);
  const user = await lockUser(ctx, input.user_id);
  const role = await lockRole(ctx, input.role_id, 'share');
  const present = await rolesOf(ctx, user.id);
  if (!present.some((one) => one.id === role.id)) await assignRoles(ctx, user, [role]);
  return getRole(ctx, input);
}

/** @throws ApiError 404 for the role, the user, and when the role is not assigned; 400 `last_administrator`. */
export const removeRoleUser = (ctx: Ctx, input: Membership): Promise<void> =>
  keepingAnAdministrator(ctx, async () => {
    const { role } = await selectRole(ctx, input.role_id);
    const user = await lockUser(ctx, input.user_id);
    await requireAllOf(ctx, user);
    const present = await rolesOf(ctx, user.id);
    if (!present.some((one) => one.id === role.id)) throw notFound('Member of the role');
    await unassignRoles(ctx, user, [role]);
  });
