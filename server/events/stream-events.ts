import type { StreamRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emit, SYSTEM_ACTOR } from './emit.ts';
import { connectionFacts } from './run-events.ts';

interface StreamReport {
  stream: Pick<StreamRow, 'id' | 'account_id' | 'connection_id' | 'name' | 'namespace'>;
  summary: string;
}

/** Emits an event about the CDC consumer of a stream. */
export const emitCdcEvent = (
  db: Db,
  event: 'change_log_lagging' | 'change_log_not_released',
  { stream, summary, ...facts }: StreamReport & { lag_bytes?: number | null; error_message?: string | null },
): Promise<void> =>
  emitOfStream(db, event, { stream, summary, facts: { lag_bytes: null, error_message: null, ...facts } });

/**
 * Emits that a stream reads rows again because its destination lost them: with the recorded cursor, and the one that the
 * stream resumes from; null: the start.
 */
export const emitPositionEvent = (
  db: Db,
  { stream, summary, ...facts }: StreamReport & { cursor_before: string | null; cursor_now: string | null },
): Promise<void> => emitOfStream(db, 'destination_went_back', { stream, summary, facts });

async function emitOfStream(
  db: Db,
  event: 'change_log_lagging' | 'change_log_not_released' | 'destination_went_back',
  { stream, summary, facts }: StreamReport & { facts: Record<string, unknown> },
): Promise<void> {
  const { id, account_id, connection_id, name, namespace } = stream;
  const ofConnection = await connectionFacts(db, connection_id);
  await emit(db, {
    account_id,
    event,
    actor: SYSTEM_ACTOR,
    resource: { type: 'connection', id: connection_id, name: ofConnection.connection_name },
    summary,
    connection_id,
    payload: { ...ofConnection, stream_id: id, stream_name: name, namespace, ...facts },
  });
}
