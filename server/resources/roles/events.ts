import type { RoleRow } from '../../../db/schema/index.ts';
import { emit } from '../../events/emit.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';

const SENTENCES = { role_created: 'was created', role_updated: 'was changed', role_deleted: 'was deleted' };

/** Reports a change of a role by the caller. */
export async function emitRoleEvent(
  ctx: Ctx,
  event: keyof typeof SENTENCES,
  change: { role: RoleRow; changed_fields?: string[]; before?: object; after?: object },
): Promise<void> {
  const { role, ...facts } = change;
  await emit(ctx.db, {
    account_id: ctx.principal.account_id,
    event,
    actor: actorOf(ctx.principal),
    resource: { type: 'role', id: role.id, name: role.name },
    summary: `Role "${role.name}" ${SENTENCES[event]}`,
    payload: { role_id: role.id, role_name: role.name, permissions: role.permissions, ...facts },
  });
}
