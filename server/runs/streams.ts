import { and, asc, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import {
  catalogStreams,
  type ConnectionRow,
  connectionStreams,
  type RunRow,
  type StreamRow,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { isLiveRun } from '../pipeline/run-states.ts';
import { badRequest } from '../platform/errors.ts';

/** The order in which every run starts its streams. */
const BY_NAME = [sql`coalesce(${connectionStreams.namespace}, '')`, asc(connectionStreams.name)];

/** The selected streams of connections, by connection. */
export async function selectedStreams(db: Db, connection_ids: string[]): Promise<Map<string, StreamRow[]>> {
  if (connection_ids.length === 0) return new Map();
  const streams = await db
    .select()
    .from(connectionStreams)
    .where(and(inArray(connectionStreams.connection_id, connection_ids), eq(connectionStreams.selected, true)))
    .orderBy(...BY_NAME);
  return Map.groupBy(streams, (stream) => stream.connection_id);
}

/**
 * The streams of a run that has ended, for a rerun: those that did not succeed, so that appended rows are not appended
 * again. All of them if every one succeeded, or if `all` is set.
 * @throws ApiError 400 `run_not_terminal`; `stream_removed` if one of them is gone or no longer selected.
 */
export async function streamsToRerun(
  db: Db,
  { connection, run, all = false }: { connection: ConnectionRow; run: RunRow; all?: boolean },
): Promise<StreamRow[]> {
  if (isLiveRun(run.status)) {
    throw badRequest('run_not_terminal', 'The run has not ended', { connection_run_id: run.id, status: run.status });
  }
  const ended = await db
    .select({ id: streamRuns.stream_id, status: streamRuns.status })
    .from(streamRuns)
    .where(eq(streamRuns.connection_run_id, run.id));
  const failed = all ? [] : ended.filter(({ status }) => status === 'failed' || status === 'stopped');
  const ids = (failed.length > 0 ? failed : ended).map(({ id }) => id);
  const streams = await db
    .select()
    .from(connectionStreams)
    .where(inArray(connectionStreams.id, ids))
    .orderBy(...BY_NAME);
  const gone = await goneFromSource(db, connection);
  const removed = streams.filter((stream) => !stream.selected || gone.has(keyOf(stream)));
  if (removed.length === 0) return streams;
  const names = removed.map(({ name }) => name).join(', ');
  throw badRequest('stream_removed', `Streams of that run were removed or deselected: ${names}`, {
    stream_ids: removed.map((stream) => stream.id),
  });
}

const keyOf = (stream: { namespace: string | null; name: string }) => JSON.stringify([stream.namespace, stream.name]);

async function goneFromSource(db: Db, connection: ConnectionRow): Promise<Set<string>> {
  const rows = await db
    .select({ namespace: catalogStreams.namespace, name: catalogStreams.name })
    .from(catalogStreams)
    .where(and(eq(catalogStreams.account_connector_id, connection.source_id), isNotNull(catalogStreams.removed_at)));
  return new Set(rows.map(keyOf));
}
