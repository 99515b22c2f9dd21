import type { ReadRequest } from '../../contract/connector.ts';
import { datasetFields } from './datasets.ts';
import type { PgSession } from '../connection/session.ts';
import { SORT_MEMORY } from '../connection/sort-memory.ts';
import { BEGIN, beginAt } from './shared-snapshot.ts';

/**
 * Begins the transaction of a read, at the snapshot of the request if it has one. A query of the user's is looked at
 * first: COPY would run several statements.
 */
export async function begin(session: PgSession, request: ReadRequest): Promise<void> {
  const { stream, sync_mode, cursor_field, snapshot, onSnapshot } = request;
  if (snapshot) await beginAt(session, request, snapshot);
  else session.ahead(BEGIN);
  if (sync_mode === 'incremental' && cursor_field) session.ahead(SORT_MEMORY);
  if (onSnapshot) onSnapshot(await snapshotOf(session));
  await session.flush();
  if (stream.dataset_sql !== undefined) await datasetFields(session, { name: stream.name, sql: stream.dataset_sql });
}

/** The transactions that the session sees: whether a version of a row is among them can be asked of the server later. */
export async function snapshotOf(session: PgSession): Promise<string> {
  const { rows } = await session.query('select txid_current_snapshot()::text');
  return rows[0]![0]!;
}
