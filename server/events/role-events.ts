import type { RoleRow } from '../../db/schema/index.ts';
import { type Cause, emit } from './emit.ts';

const SENTENCES = { role_created: 'was created', role_updated: 'was edited', role_deleted: 'was deleted' };

/** Emits an event about a change of a role. System roles have no account: `account_id` is that of the change. */
export async function emitRoleEvent(
  { db, actor, account_id }: Cause & { account_id: string },
  event: keyof typeof SENTENCES,
  change: { role: RoleRow; changed_fields?: string[]; before?: object; after?: object },
): Promise<void> {
  const { role, ...facts } = change;
  await emit(db, {
    account_id,
    event,
    actor,
    resource: { type: 'role', id: role.id, name: role.name },
    summary: `Role "${role.name}" ${SENTENCES[event]}`,
    payload: { role_id: role.id, role_name: role.name, permissions: role.permissions, ...facts },
  });
}

export async function emitMembership(
  { db, actor, account_id }: Cause & { account_id: string },
  event: 'role_assigned' | 'role_unassigned',
  { user, role }: { user: { id: string; email: string; full_name: string }; role: RoleRow },
): Promise<void> {
  const change = event === 'role_assigned' ? 'assigned to' : 'removed from';
  await emit(db, {
    account_id,
    event,
    actor,
    resource: { type: 'role', id: role.id, name: role.name },
    summary: `Role "${role.name}" ${change} ${user.full_name}`,
    user_id: user.id,
    payload: { role_id: role.id, role_name: role.name, user_id: user.id, email: user.email },
  });
}
