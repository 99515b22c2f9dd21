import type { ConnectionRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, type Cause, emit, SYSTEM_ACTOR } from './emit.ts';
import type { EventKind } from './kinds.ts';
import { connectionFacts, type End, endsOf, factsByConnection, factsOf } from './run-events.ts';

/**
 * Emits an event about a connection as it is now, with the variables that rules may use, in the transaction of the
 * change. `sentence` follows the name: `was locked`.
 */
export async function emitConnectionChange(
  db: Db,
  change: {
    event: EventKind;
    connection: Pick<ConnectionRow, 'id' | 'account_id' | 'name'>;
    sentence: string;
    changed_fields: readonly string[];
    actor?: Actor;
    causation_depth?: number;
    extra?: Record<string, unknown>;
  },
): Promise<void> {
  const { event, connection, sentence, changed_fields, causation_depth, extra } = change;
  await emit(db, {
    account_id: connection.account_id,
    event,
    actor: change.actor ?? SYSTEM_ACTOR,
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `Connection "${connection.name}" ${sentence}`,
    connection_id: connection.id,
    payload: { ...(await connectionFacts(db, connection.id)), changed_fields, ...extra },
    causation_depth,
  });
}

const SENTENCES = {
  connection_created: 'was created',
  connection_updated: 'was edited',
  connection_paused: 'was paused',
  connection_resumed: 'was resumed',
  connection_deleted: 'was deleted',
};

/** Emits an event about a change of a connection by a user. */
export async function emitConnectionEvent(
  { db, actor }: Cause,
  event: keyof typeof SENTENCES,
  change: {
    connection: ConnectionRow;
    changed_fields: string[];
    before?: object;
    after?: object;
    /** Its source and destination, if they have been read already. */
    ends?: End[];
  },
): Promise<void> {
  const { connection, ends: known, ...facts } = change;
  await emit(db, {
    account_id: connection.account_id,
    event,
    actor,
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `Connection "${connection.name}" ${SENTENCES[event]}`,
    connection_id: connection.id,
    payload: { ...factsOf(connection, known ?? (await endsOf(db, connection))), ...facts },
  });
}

/** An event has some 20 parameters, and a statement at most 65,535. */
const MAX_AT_ONCE = 1000;

/** Emits `connection_updated` for each connection that has moved to another folder. */
export async function emitMoved(
  { db, actor }: Cause,
  { moved, before }: { moved: ConnectionRow[]; before: ReadonlyMap<string, string | null> },
): Promise<void> {
  for (let start = 0; start < moved.length; start += MAX_AT_ONCE) {
    const some = moved.slice(start, start + MAX_AT_ONCE);
    const facts = await factsByConnection(
      db,
      some.map(({ id }) => id),
    );
    const reported = some.map(({ id, name, account_id, folder }) => ({
      account_id,
      event: 'connection_updated' as const,
      actor,
      resource: { type: 'connection', id, name },
      summary: `Connection "${name}" ${SENTENCES.connection_updated}`,
      connection_id: id,
      payload: {
        ...facts.get(id),
        changed_fields: ['folder'],
        before: { folder: before.get(id) ?? null },
        after: { folder },
      },
    }));
    await emit(db, ...reported);
  }
}
