import type { StreamRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emit, SYSTEM_ACTOR } from './emit.ts';
import { connectionFacts } from './run-events.ts';

/** Emits that a stream reads rows again because its destination lost them. */
export async function emitPositionEvent(
  db: Db,
  report: {
    stream: Pick<StreamRow, 'id' | 'account_id' | 'connection_id' | 'name' | 'namespace'>;
    summary: string;
    /** The recorded cursor, and the one that the stream resumes from; null: the start. */
    cursor_before: string | null;
    cursor_now: string | null;
  },
): Promise<void> {
  const { stream, summary, cursor_before, cursor_now } = report;
  const facts = await connectionFacts(db, stream.connection_id);
  await emit(db, {
    account_id: stream.account_id,
    event: 'destination_went_back',
    actor: SYSTEM_ACTOR,
    resource: { type: 'connection', id: stream.connection_id, name: facts.connection_name },
    summary,
    connection_id: stream.connection_id,
    payload: {
      ...facts,
      stream_id: stream.id,
      stream_name: stream.name,
      namespace: stream.namespace,
      cursor_before,
      cursor_now,
    },
  });
}
