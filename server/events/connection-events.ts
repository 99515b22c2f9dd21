import type { ConnectionRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, emit, SYSTEM_ACTOR } from './emit.ts';
import type { EventKind } from './kinds.ts';
import { connectionFacts } from './run-events.ts';

/**
 * Writes an event about a connection as it is now, with the variables that rules may use (interface decisions 5.2): in
 * the transaction of what the service itself did with it. `sentence` follows the name: `was locked`.
 */
export async function emitConnectionChange(
  db: Db,
  change: {
    event: EventKind;
    connection: Pick<ConnectionRow, 'id' | 'account_id' | 'name'>;
    sentence: string;
    changed_fields: readonly string[];
    actor?: Actor;
    extra?: Record<string, unknown>;
  },
): Promise<void> {
  const { event, connection, sentence, changed_fields, extra } = change;
  await emit(db, {
    account_id: connection.account_id,
    event,
    actor: change.actor ?? SYSTEM_ACTOR,
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `Connection "${connection.name}" ${sentence}`,
    connection_id: connection.id,
    payload: { ...(await connectionFacts(db, connection.id)), changed_fields, ...extra },
  });
}
