import { and, eq, inArray, isNull, ne, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import {
  accountConnectors,
  catalogStreams,
  connectionRuns,
  connections,
  connectionStreams,
  type RunRow,
  type StreamRow,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { isInCatalog } from '../catalog/store.ts';
import { findConnector } from '../connectors/registry.ts';
import { LIVE_STREAM, MAX_WORKER_DEATHS } from '../pipeline/run-states.ts';
import { type Claim, claimColumns, claimStream, isGroupedNow, isHeldFresh, loadOthers } from './claim-stream.ts';
import { howToTakeUp, STREAM_BEFORE, type StreamBefore, type TakeUp } from './worker-deaths.ts';
import { claimKeeperOf, type KeeperClaim, keeperOf } from './snapshot/claim-keeper.ts';
import { isGrouped, isKeptInProcess } from './snapshot/members.ts';

interface Claimed {
  claims: Claim[];
  /** What the streams are read from together. Null: the stream is read on its own. */
  shared: 'log' | 'snapshot' | null;
  /** Set with the claims of streams that share a snapshot in this process. */
  keeper: KeeperClaim | null;
  is_early: boolean;
  /** Other than `claim`: what the caller has to do with the stream instead. */
  how: TakeUp;
}

/**
 * Claims a stream for this worker, together with the streams of the run that are read from the same change log, or from
 * a snapshot that one process holds. They share one fence. Empty if there is nothing to do, as `claimStream` has it.
 * `is_early`: another worker still holds one of them or their snapshot, so the stream has to be tried again.
 * `isIsolated`: this process executes nothing else, so that a stream that workers died with is claimed as well.
 */
export async function claimStreams(
  db: Db,
  stream_run_id: string,
  { worker_id, isIsolated }: { worker_id: string; isIsolated: boolean },
): Promise<Claimed> {
  const found = await lockRunToRead(db, stream_run_id);
  if (!found) return { ...NONE, how: 'leave' };
  const { run, before, read } = found;
  const how = isIsolated ? 'claim' : howToTakeUp(before);
  if (how !== 'claim') return { ...NONE, how };
  const sharers = canShareLog(run, read) ? await sharersOf(db, run.id) : [];
  const others = sharers.filter(({ id }) => id !== stream_run_id);
  const shares_log = others.length < sharers.length;
  // Such a source holds snapshots in one process.
  if (!shares_log && isKeptInProcess(read)) return claimWithKeeper(db, { run, stream_run_id, worker_id });
  if (shares_log && others.some(({ fresh }) => fresh)) {
    const isHeld = sharers.some(({ id, fresh }) => id === stream_run_id && fresh);
    return isHeld ? NONE : { ...NONE, is_early: true };
  }
  const first = await claimStream(db, stream_run_id, worker_id, run);
  if (!first) return NONE;
  // Streams that were moved together when two processes died: each is tried alone.
  const isAlone = first.stream_run.worker_deaths >= MAX_WORKER_DEATHS;
  const shared = shares_log ? 'log' : null;
  if (!shares_log || isAlone || others.length === 0) return { ...NONE, claims: [first], shared };
  const ids = others.map(({ id }) => id);
  return { ...NONE, claims: [first, ...(await claimOthers(db, first, { ids, worker_id }))], shared };
}

const NONE: Claimed = { claims: [], shared: null, keeper: null, is_early: false, how: 'claim' };

/** Claims more streams of the run with the fence of the first. */
async function claimOthers(
  db: Db,
  first: Claim,
  { ids, worker_id }: { ids: readonly string[]; worker_id: string },
): Promise<Claim[]> {
  if (ids.length === 0) return [];
  const claimed = await db
    .update(streamRuns)
    .set({
      ...claimColumns(worker_id, sql`${first.stream_run.fence}::bigint`),
      dispatched_at: sql`coalesce(${streamRuns.dispatched_at}, clock_timestamp())`,
    })
    .where(inArray(streamRuns.id, [...ids]))
    .returning();
  return loadOthers(db, first, claimed);
}

interface Read {
  source: { connector_name: string };
  destination: { connector_name: string };
  sync_mode: StreamRow['sync_mode'];
}

/** Locks the run of a stream run, and finds how to take it up, and from where, to where and how it is read. */
async function lockRunToRead(
  db: Db,
  stream_run_id: string,
): Promise<{ run: RunRow; before: StreamBefore; read: Read } | undefined> {
  const [found] = await db
    .select({
      run: connectionRuns,
      before: STREAM_BEFORE,
      source: { connector_name: source.connector_name },
      destination: { connector_name: destination.connector_name },
      sync_mode: connectionStreams.sync_mode,
    })
    .from(streamRuns)
    .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id))
    .innerJoin(connectionStreams, eq(connectionStreams.id, streamRuns.stream_id))
    .innerJoin(connections, eq(connections.id, streamRuns.connection_id))
    .innerJoin(source, eq(source.id, connections.source_id))
    .innerJoin(destination, eq(destination.id, connections.destination_id))
    .where(eq(streamRuns.id, stream_run_id))
    .for('no key update', { of: connectionRuns });
  if (!found) return undefined;
  const { run, before, ...read } = found;
  return { run, before, read };
}

const source = alias(accountConnectors, 'source');
const destination = alias(accountConnectors, 'destination');

/**
 * The first stream that is claimed brings the others, and the keeper of their snapshot. A stream that is tried again
 * later goes to the worker that has the keeper.
 */
async function claimWithKeeper(
  db: Db,
  { run, stream_run_id, worker_id }: { run: RunRow; stream_run_id: string; worker_id: string },
): Promise<Claimed> {
  const kept_by = await keeperOf(db, run.id);
  if (kept_by !== null && kept_by !== worker_id && (await needsKeeper(db, stream_run_id))) {
    return { ...NONE, is_early: true };
  }
  const first = await claimStream(db, stream_run_id, worker_id, run);
  if (!first) return NONE;
  const taken = first.is_grouped ? await claimKeeperOf(db, first, worker_id) : null;
  if (!taken) return { ...NONE, claims: [first] };
  const others = await claimOthers(db, first, { ids: taken.stream_run_ids, worker_id });
  const claims = [first, ...others.map((claim) => ({ ...claim, is_grouped: isGroupedNow(claim) }))];
  return { ...NONE, claims, shared: 'snapshot', keeper: taken.keeper };
}

/** The stream waits to be read from the snapshot of its run. */
async function needsKeeper(db: Db, stream_run_id: string): Promise<boolean> {
  const [found] = await db
    .select({ row: streamRuns, fresh: isHeldFresh })
    .from(streamRuns)
    .where(and(eq(streamRuns.id, stream_run_id), inArray(streamRuns.status, LIVE_STREAM), isNull(streamRuns.ready)));
  return found !== undefined && !found.fresh && isGrouped(found.row);
}

/** Whether the source can read several streams from one log, and the destination commit them together. */
const canShareLog = ({ custom_run_plan_id }: RunRow, read: Read): boolean =>
  custom_run_plan_id === null &&
  read.sync_mode === 'incremental' &&
  findConnector('source', read.source.connector_name)?.replication !== undefined &&
  findConnector('destination', read.destination.connector_name)?.openReplication !== undefined;

/** Whether all live streams of a run share a change log, if its source and destination can do that. */
export async function readsLogOnly(db: Db, connection_run_id: string): Promise<boolean> {
  const live = await db
    .select({ custom_run_plan_id: connectionRuns.custom_run_plan_id })
    .from(streamRuns)
    .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id))
    .where(and(eq(streamRuns.connection_run_id, connection_run_id), inArray(streamRuns.status, LIVE_STREAM)));
  if (live.some(({ custom_run_plan_id }) => custom_run_plan_id !== null)) return false;
  return (await sharersOf(db, connection_run_id)).length === live.length;
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
