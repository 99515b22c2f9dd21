import { actorOf, type Ctx } from '../../api/procedure.ts';
import { emitConnectionEvent as emitEvent } from '../../events/connection-events.ts';

type Emitted = Parameters<typeof emitEvent>;

/** Emits an event about a change of a connection by the caller. */
export const emitConnectionEvent = (ctx: Ctx, event: Emitted[1], change: Emitted[2]): Promise<void> =>
  emitEvent({ db: ctx.db, actor: actorOf(ctx.principal) }, event, change);
