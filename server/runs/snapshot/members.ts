import { and, eq, inArray, isNotNull, isNull, ne, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  type ConnectionRow,
  type RunRow,
  type SnapshotRow,
  snapshots,
  type StoredRunError,
  type StreamRunRow,
  streamRuns,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { SharedSnapshot } from '../../connectors/contract/connector.ts';
import { findConnector } from '../../connectors/registry.ts';
import { LIVE_STREAM } from '../../pipeline/run-states.ts';

/** A keeper without a heartbeat for this long is lost. */
export const LOST_SECONDS = 5;

/** A keeper holds the snapshot. */
export const isKeptFresh = sql`${snapshots.heartbeat_at} >= clock_timestamp() - make_interval(secs => ${LOST_SECONDS})`;

/** Streams of a run that overwrite their tables: these are read at one moment and published together. */
export const isGrouped = (stream: { sync_mode: string; destination_sync_mode: string; status: string }): boolean =>
  stream.sync_mode === 'full_refresh' && stream.destination_sync_mode === 'overwrite' && stream.status !== 'skipped';

export const grouped = (connection_run_id: string) =>
  and(
    eq(streamRuns.connection_run_id, connection_run_id),
    eq(streamRuns.sync_mode, 'full_refresh'),
    eq(streamRuns.destination_sync_mode, 'overwrite'),
    ne(streamRuns.status, 'skipped'),
  );

/** Members that no table is complete of: they need the snapshot. */
export const unread = (connection_run_id: string) =>
  and(grouped(connection_run_id), inArray(streamRuns.status, LIVE_STREAM), isNull(streamRuns.ready));

/** How many streams of a run a shared snapshot could be for. */
export const membersOf = (connection_run_id: string) =>
  sql<number>`(select count(*)::int from ${streamRuns} where ${grouped(connection_run_id)})`;

type Side = Pick<AccountConnectorRow, 'connector_name' | 'parameters'>;

/** Whether both sides of a connection can show a run as one moment. */
export function canShowOneMoment(sides: { source: Side; destination: Side }): boolean {
  const source = findConnector('source', sides.source.connector_name);
  const destination = findConnector('destination', sides.destination.connector_name);
  if (source?.keepSnapshot === undefined || destination?.publish === undefined) return false;
  const locked = source.locks?.(sides.source.parameters);
  return locked === undefined || locked !== destination.locate?.(sides.destination.parameters).store;
}

/** One worker has to read all streams that share a snapshot. */
export const isKeptInProcess = ({ source }: { source: Pick<AccountConnectorRow, 'connector_name'> }): boolean =>
  findConnector('source', source.connector_name)?.keeps_snapshot_in_process === true;

/**
 * The snapshot of a run that the first of its streams is claimed of; null: each stream is read at a moment of its own. The
 * run must be locked. A run of one such stream needs none. `members`: see `membersOf`.
 */
export async function shareSnapshot(
  db: Db,
  { run, connection }: { run: RunRow; connection: ConnectionRow },
  claim: Parameters<typeof canShowOneMoment>[0] & { members: number },
): Promise<SnapshotRow | null> {
  if (connection.consistency !== 'run' || run.window_start !== null || run.window_end !== null) return null;
  if (claim.members < 2 || !canShowOneMoment(claim)) return null;
  const [row] = await db
    .insert(snapshots)
    .values({ connection_run_id: run.id, requested_at: sql`clock_timestamp()` })
    .onConflictDoNothing()
    .returning();
  return row ?? null;
}

export async function sharedSnapshotOf(db: Db, connection_run_id: string): Promise<SnapshotRow | null> {
  const [row] = await db.select().from(snapshots).where(eq(snapshots.connection_run_id, connection_run_id));
  return row ?? null;
}

/** What a read needs of the run's snapshot. Null: no keeper holds one at this moment. */
export interface JoinableSnapshot {
  generation: number;
  snapshot: SharedSnapshot;
}

/**
 * Joins the snapshot of the run with the current claim.
 * @returns `unavailable`: the source cannot share a snapshot, so each stream is read and published on its own
 */
export async function joinSnapshot(
  db: Db,
  claim: { run: Pick<RunRow, 'id'>; stream_run: Pick<StreamRunRow, 'id' | 'fence'> },
): Promise<JoinableSnapshot | { unavailable: StoredRunError } | null> {
  const [joined] = await db
    .update(streamRuns)
    .set({ snapshot_generation: sql`${snapshots.generation}` })
    .from(snapshots)
    .where(
      and(
        eq(streamRuns.id, claim.stream_run.id),
        eq(streamRuns.fence, claim.stream_run.fence),
        eq(snapshots.connection_run_id, streamRuns.connection_run_id),
        isNotNull(snapshots.snapshot),
        isKeptFresh,
      ),
    )
    .returning({ generation: snapshots.generation, snapshot: snapshots.snapshot });
  if (joined) return { generation: joined.generation, snapshot: joined.snapshot as SharedSnapshot };
  const row = await sharedSnapshotOf(db, claim.run.id);
  return row?.error ? { unavailable: row.error } : null;
}
