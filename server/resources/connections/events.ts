import type { ConnectionRow } from '../../../db/schema/index.ts';
import { type End, endsOf, factsOf } from '../../events/run-events.ts';
import { emit } from '../../events/emit.ts';
import type { EventKind } from '../../events/kinds.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';

const SENTENCES: Partial<Record<EventKind, string>> = {
  connection_created: 'was created',
  connection_updated: 'was changed',
  connection_paused: 'was paused',
  connection_resumed: 'was resumed',
  connection_deleted: 'was deleted',
};

interface ConnectionChange {
  connection: ConnectionRow;
  changed_fields: string[];
  before?: object;
  after?: object;
  /** Its source and destination, where they have been read already. */
  ends?: End[];
}

/** Reports a change of a connection by the caller, with the variables that rules may use. */
export async function emitConnectionEvent(ctx: Ctx, event: EventKind, change: ConnectionChange): Promise<void> {
  const { connection, ends: known, ...facts } = change;
  await emit(ctx.db, {
    account_id: connection.account_id,
    event,
    actor: actorOf(ctx.principal),
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `Connection "${connection.name}" ${SENTENCES[event] ?? 'was changed'}`,
    connection_id: connection.id,
    payload: { ...factsOf(connection, known ?? (await endsOf(ctx.db, connection))), ...facts },
  });
}
