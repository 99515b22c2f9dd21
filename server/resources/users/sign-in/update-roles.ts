import { and, eq, inArray, isNull, or } from 'drizzle-orm';
import { type RoleRow, roles, userRoles, type UserRow } from '../../../../db/schema/index.ts';
import type { Db } from '../../../../db/types.ts';
import { SYSTEM_ACTOR } from '../../../events/emit.ts';
import { emitMembership } from '../../../events/role-events.ts';
import type { ProviderSettings } from '../../../platform/provider-settings.ts';
import { rolesOf } from '../../access/memberships.ts';

/**
 * Gives a user the roles of their groups, and takes all others away. Without `groups_claim` only a new user gets roles,
 * which administrators change later. Returns the roles that the user has now, and names in the settings that no role has.
 */
export async function updateRoles(
  tx: Db,
  {
    user,
    groups,
    settings,
    is_new,
  }: { user: UserRow; groups: string[] | null; settings: ProviderSettings; is_new: boolean },
): Promise<{ roles: RoleRow[]; unknown: string[] }> {
  const before = await rolesOf({ db: tx }, user.id);
  if (groups === null && !is_new) return { roles: before, unknown: [] };
  const mapped = (groups ?? []).flatMap((group) =>
    Object.hasOwn(settings.roles, group) ? settings.roles[group]! : [],
  );
  const names = [...new Set([...settings.default_roles, ...mapped])];
  const wanted = await rolesNamed(tx, { names, account_id: user.account_id });
  const added = wanted.filter(({ id }) => !before.some((role) => role.id === id));
  const removed = before.filter(({ id }) => !wanted.some((role) => role.id === id));
  const cause = { db: tx, actor: SYSTEM_ACTOR, account_id: user.account_id };
  if (added.length > 0) {
    await tx.insert(userRoles).values(added.map((role) => ({ user_id: user.id, role_id: role.id })));
  }
  if (removed.length > 0) {
    const ids = removed.map(({ id }) => id);
    await tx.delete(userRoles).where(and(eq(userRoles.user_id, user.id), inArray(userRoles.role_id, ids)));
  }
  for (const role of added) await emitMembership(cause, 'role_assigned', { user, role });
  for (const role of removed) await emitMembership(cause, 'role_unassigned', { user, role });
  return { roles: wanted, unknown: names.filter((name) => !wanted.some((role) => role.name === name)) };
}

/** A role of the account comes before a system role of the same name. */
export async function rolesNamed(
  tx: Db,
  { names, account_id }: { names: readonly string[]; account_id: string },
): Promise<RoleRow[]> {
  if (names.length === 0) return [];
  const found = await tx
    .select()
    .from(roles)
    .where(and(inArray(roles.name, [...names]), or(isNull(roles.account_id), eq(roles.account_id, account_id))))
    .for('share');
  return names.flatMap((name) => {
    const same = found.filter((role) => role.name === name);
    return same.find((role) => role.account_id !== null) ?? same[0] ?? [];
  });
}
