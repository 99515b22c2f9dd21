import { and, eq, inArray, isNull, ne, or, sql } from 'drizzle-orm';
import {
  accountConnectors,
  catalogStreams,
  connectionRuns,
  connections,
  connectionStreams,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { isInCatalog } from '../catalog/store.ts';
import { findConnector } from '../connectors/registry.ts';
import { LIVE_STREAM, MAX_WORKER_DEATHS } from '../pipeline/run-states.ts';
import { type Claim, claimColumns, claimStream, isHeldFresh, loadPipelines } from './claim-stream.ts';
import { lockRun } from './lock-run.ts';

interface Claimed {
  claims: Claim[];
  shares_log: boolean;
  is_early: boolean;
}

/**
 * Claims a stream for this worker, together with the streams of the run that are read from the same change log. They
 * share one fence. Empty if there is nothing to do, as `claimStream` has it. `is_early`: a worker still holds another
 * one of them, so the stream has to be tried again.
 */
export async function claimStreams(db: Db, stream_run_id: string, worker_id: string): Promise<Claimed> {
  const [named] = await db
    .select({ run_id: streamRuns.connection_run_id })
    .from(streamRuns)
    .where(eq(streamRuns.id, stream_run_id));
  if (!named || !(await lockRun(db, named.run_id))) return NONE;
  const sharers = (await canShareLog(db, stream_run_id)) ? await sharersOf(db, named.run_id) : [];
  const others = sharers.filter(({ id }) => id !== stream_run_id);
  const shares_log = others.length < sharers.length;
  if (shares_log && others.some(({ fresh }) => fresh)) {
    const isHeld = sharers.some(({ id, fresh }) => id === stream_run_id && fresh);
    return isHeld ? NONE : { ...NONE, is_early: true };
  }
  const first = await claimStream(db, stream_run_id, worker_id);
  if (!first) return NONE;
  // Streams that were moved together when two processes died: each is tried alone.
  const isAlone = first.stream_run.worker_deaths >= MAX_WORKER_DEATHS;
  if (!shares_log || isAlone || others.length === 0) return { claims: [first], shares_log, is_early: false };
  const ids = others.map(({ id }) => id);
  const claimed = await db
    .update(streamRuns)
    .set({
      ...claimColumns(worker_id, sql`${first.stream_run.fence}::bigint`),
      dispatched_at: sql`coalesce(${streamRuns.dispatched_at}, clock_timestamp())`,
    })
    .where(inArray(streamRuns.id, ids))
    .returning();
  return { claims: [first, ...(await loadPipelines(db, first.run, claimed))], shares_log, is_early: false };
}

const NONE: Claimed = { claims: [], shares_log: false, is_early: false };

/** Whether the source can read several streams from one log, and the destination commit them together. */
async function canShareLog(db: Db, stream_run_id: string): Promise<boolean> {
  const ends = await db
    .select({ type: accountConnectors.connector_type, name: accountConnectors.connector_name })
    .from(streamRuns)
    .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id))
    .innerJoin(connectionStreams, eq(connectionStreams.id, streamRuns.stream_id))
    .innerJoin(connections, eq(connections.id, streamRuns.connection_id))
    .innerJoin(
      accountConnectors,
      or(eq(accountConnectors.id, connections.source_id), eq(accountConnectors.id, connections.destination_id)),
    )
    .where(
      and(
        eq(streamRuns.id, stream_run_id),
        isNull(connectionRuns.custom_run_plan_id),
        eq(connectionStreams.sync_mode, 'incremental'),
      ),
    );
  const isAble = ({ type, name }: (typeof ends)[number]) =>
    type === 'source'
      ? findConnector('source', name)?.replication !== undefined
      : findConnector('destination', name)?.openReplication !== undefined;
  return ends.length > 0 && ends.every(isAble);
}

/** The live streams of a run that are read from one change log. */
function sharersOf(db: Db, connection_run_id: string): Promise<{ id: string; fresh: boolean }[]> {
  return db
    .select({ id: streamRuns.id, fresh: isHeldFresh })
    .from(streamRuns)
    .innerJoin(connections, eq(connections.id, streamRuns.connection_id))
    .innerJoin(connectionStreams, eq(connectionStreams.id, streamRuns.stream_id))
    .innerJoin(catalogStreams, isInCatalog(connections.source_id, connectionStreams))
    .where(
      and(
        eq(streamRuns.connection_run_id, connection_run_id),
        inArray(streamRuns.status, LIVE_STREAM),
        eq(connectionStreams.sync_mode, 'incremental'),
        ne(connectionStreams.destination_sync_mode, 'overwrite'),
        isNull(connectionStreams.dataset_sql),
        sql`${catalogStreams.definition} ->> 'change_log' = 'true' and ${catalogStreams.definition} ->> 'dataset_sql' is null`,
      ),
    )
    .orderBy(streamRuns.id);
}
