import type { StreamRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emit, SYSTEM_ACTOR } from './emit.ts';
import { connectionFacts } from './run-events.ts';

/** Emits an event about the CDC consumer of a stream. */
export async function emitCdcEvent(
  db: Db,
  event: 'change_log_lagging' | 'change_log_not_released',
  report: {
    stream: Pick<StreamRow, 'id' | 'account_id' | 'connection_id' | 'name' | 'namespace'>;
    summary: string;
    lag_bytes?: number | null;
    error_message?: string | null;
  },
): Promise<void> {
  const { stream, summary, lag_bytes = null, error_message = null } = report;
  const facts = await connectionFacts(db, stream.connection_id);
  await emit(db, {
    account_id: stream.account_id,
    event,
    actor: SYSTEM_ACTOR,
    resource: { type: 'connection', id: stream.connection_id, name: facts.connection_name },
    summary,
    connection_id: stream.connection_id,
    payload: {
      ...facts,
      stream_id: stream.id,
      stream_name: stream.name,
      namespace: stream.namespace,
      lag_bytes,
      error_message,
    },
  });
}
