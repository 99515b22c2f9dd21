import { actorOf, type Ctx } from '../../api/procedure.ts';
import { emitRoleEvent as emitEvent } from '../../events/role-events.ts';

type Emitted = Parameters<typeof emitEvent>;

/** Emits an event about a change of a role by the caller. */
export const emitRoleEvent = ({ db, principal }: Ctx, event: Emitted[1], change: Emitted[2]): Promise<void> =>
  emitEvent({ db, actor: actorOf(principal), account_id: principal.account_id }, event, change);
