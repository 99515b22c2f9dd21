import { and, eq, exists, inArray, isNotNull, isNull, lt, ne, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import {
  type AccountConnectorRow,
  type ConnectionRow,
  connectionRuns,
  type RunRow,
  type SnapshotRow,
  snapshots,
  type StoredRunError,
  type StreamRunRow,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { SharedSnapshot } from '../connectors/contract/connector.ts';
import { findConnector } from '../connectors/registry.ts';
import {
  HELD_STREAM,
  isLiveRun,
  LIVE_STREAM,
  MAX_ATTEMPTS,
  MAX_ATTEMPTS_WITHOUT_PROGRESS,
} from '../pipeline/run-states.ts';
import type { Queue } from '../queue/boss.ts';
import { executeStream, keepSnapshot, publishTables } from '../queue/jobs.ts';
import { lockRun, warnOfRun } from './lock-run.ts';

/** A keeper without a heartbeat for this long is lost. */
const LOST_SECONDS = 5;
/** The queue hands the job of a dead worker to another one after about 10 s. */
const LOST_PUBLISHING_SECONDS = 60;
/** From this age on, the run has a warning: the source keeps all row versions since, and its tables grow. */
const OLD_SECONDS = 3600;

/** A keeper holds the snapshot. */
const isKeptFresh = sql`${snapshots.heartbeat_at} >= clock_timestamp() - make_interval(secs => ${LOST_SECONDS})`;

/** Streams of a run that overwrite their tables: these are read at one moment and published together. */
export const isGrouped = (stream: { sync_mode: string; destination_sync_mode: string; status: string }): boolean =>
  stream.sync_mode === 'full_refresh' && stream.destination_sync_mode === 'overwrite' && stream.status !== 'skipped';

const grouped = (connection_run_id: string) =>
  and(
    eq(streamRuns.connection_run_id, connection_run_id),
    eq(streamRuns.sync_mode, 'full_refresh'),
    eq(streamRuns.destination_sync_mode, 'overwrite'),
    ne(streamRuns.status, 'skipped'),
  );

/** Members that no table is complete of: they need the snapshot. */
const unread = (connection_run_id: string) =>
  and(grouped(connection_run_id), inArray(streamRuns.status, LIVE_STREAM), isNull(streamRuns.ready));

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
 * run must be locked. A run of one such stream needs none.
 */
export async function shareSnapshot(
  db: Db,
  { run, connection }: { run: RunRow; connection: ConnectionRow },
  sides: Parameters<typeof canShowOneMoment>[0],
): Promise<SnapshotRow | null> {
  if (connection.consistency !== 'run' || run.window_start !== null || run.window_end !== null) return null;
  if (!canShowOneMoment(sides)) return null;
  const members = await db.select({ id: streamRuns.id }).from(streamRuns).where(grouped(run.id)).limit(2);
  if (members.length < 2) return null;
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

/** Sends the job that opens the snapshot, or has the streams claimed again that share one in a process. */
export async function requestKeeper(db: Db, queue: Queue, run: Pick<RunRow, 'id' | 'account_id'>): Promise<void> {
  await queue.send(db, keepSnapshot, { connection_run_id: run.id }, { account_id: run.account_id });
}

/** A reader could not join: the snapshot is replaced, unless that has happened already. */
export async function reportLost(
  db: Db,
  queue: Queue,
  { run, generation }: { run: Pick<RunRow, 'id' | 'account_id'>; generation: number },
): Promise<void> {
  const [lost] = await db
    .update(snapshots)
    .set({ snapshot: null, heartbeat_at: null, requested_at: sql`clock_timestamp()` })
    .where(and(eq(snapshots.connection_run_id, run.id), eq(snapshots.generation, generation)))
    .returning({ id: snapshots.connection_run_id });
  if (lost) await requestKeeper(db, queue, run);
}

/** The keeper of a run, while its fence is the newest. */
export interface KeeperClaim {
  run: RunRow;
  fence: number;
}

/**
 * Claims the run for a keeper in this worker. Null: another keeper holds the snapshot, or no stream needs it any more. If
 * there was a snapshot before, streams that were read from it start again.
 */
export async function claimKeeper(
  db: Db,
  queue: Queue,
  { connection_run_id, worker_id }: { connection_run_id: string; worker_id: string },
): Promise<KeeperClaim | null> {
  const found = await unkept(db, connection_run_id);
  if (!found) return null;
  const { run } = found;
  const claim = await takeKeeper(db, found, worker_id);
  if (found.replaces) for (const id of await readAgain(db, run)) await send(db, queue, run, id);
  return claim;
}

const send = (db: Db, queue: Queue, { account_id }: Pick<RunRow, 'account_id'>, stream_run_id: string) =>
  queue.send(db, executeStream, { stream_run_id }, { account_id });

/** A run that lacks a keeper. */
interface Unkept {
  run: RunRow;
  generation: number;
  /** A snapshot was lost. */
  replaces: boolean;
}

async function unkept(db: Db, connection_run_id: string): Promise<Unkept | null> {
  const run = await lockRun(db, connection_run_id);
  if (!run || !isLiveRun(run.status) || run.status === 'stopping') return null;
  const before = await sharedSnapshotOf(db, run.id);
  if (!before || before.settled_at !== null || before.error) return null;
  if (before.publish_requested_at !== null || (await isKept(db, run.id)) || !(await isNeeded(db, run.id))) return null;
  return { run, generation: before.generation, replaces: before.opened_at !== null };
}

async function takeKeeper(db: Db, { run, generation, replaces }: Unkept, worker_id: string): Promise<KeeperClaim> {
  const [row] = await db
    .update(snapshots)
    .set({
      worker_id,
      fence: sql`nextval('stream_run_fence')`,
      heartbeat_at: sql`clock_timestamp()`,
      snapshot: null,
      opened_at: null,
      generation: generation + (replaces ? 1 : 0),
    })
    .where(eq(snapshots.connection_run_id, run.id))
    .returning();
  if (!row) throw new Error(`snapshot of run ${run.id} does not exist`);
  return { run, fence: row.fence };
}

/**
 * As `claimKeeper`, with all streams that have to be read in the process of the keeper: takes them away from other
 * workers, for `claimColumns`. `first` is claimed already.
 */
export async function claimKeeperOf(
  db: Db,
  { run, stream_run }: { run: RunRow; stream_run: StreamRunRow },
  worker_id: string,
): Promise<{ keeper: KeeperClaim; stream_run_ids: string[] } | null> {
  const found = await unkept(db, run.id);
  if (!found) return null;
  const keeper = await takeKeeper(db, found, worker_id);
  await readAgain(db, run, stream_run);
  const others = await db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .where(
      and(
        unread(run.id),
        ne(streamRuns.id, stream_run.id),
        // The job of such a stream ends it.
        lt(streamRuns.attempts_without_progress, MAX_ATTEMPTS_WITHOUT_PROGRESS),
        lt(streamRuns.attempt, MAX_ATTEMPTS),
      ),
    )
    .orderBy(streamRuns.id);
  return { keeper, stream_run_ids: others.map(({ id }) => id) };
}

/** The worker that holds the snapshot of the run; null: none does. */
export async function keeperOf(db: Db, connection_run_id: string): Promise<string | null> {
  const [kept] = await db
    .select({ worker_id: snapshots.worker_id })
    .from(snapshots)
    .where(and(eq(snapshots.connection_run_id, connection_run_id), isNull(snapshots.settled_at), isKeptFresh));
  return kept?.worker_id ?? null;
}

/** Has the streams of a run claimed again whose snapshot was lost with its process. */
export async function restartKeeper(db: Db, queue: Queue, connection_run_id: string): Promise<void> {
  const found = await unkept(db, connection_run_id);
  if (!found?.replaces) return;
  const { run, generation } = found;
  await db
    .update(snapshots)
    .set({ snapshot: null, heartbeat_at: null, opened_at: null, generation: generation + 1 })
    .where(eq(snapshots.connection_run_id, run.id));
  for (const id of await readAgain(db, run)) await send(db, queue, run, id);
}

async function isKept(db: Db, connection_run_id: string): Promise<boolean> {
  const [kept] = await db
    .select({ id: snapshots.connection_run_id })
    .from(snapshots)
    .where(and(eq(snapshots.connection_run_id, connection_run_id), isKeptFresh));
  return kept !== undefined;
}

async function isNeeded(db: Db, connection_run_id: string): Promise<boolean> {
  const [reader] = await db.select({ id: streamRuns.id }).from(streamRuns).where(unread(connection_run_id)).limit(1);
  return reader !== undefined;
}

/**
 * Takes the streams that were read, or are being read, from a lost snapshot away from their workers.
 * @param claimed is claimed for the next one, with all the others: also those that have not joined the lost one yet. They
 * get its fence: a newer one could not be exchanged for it.
 */
async function readAgain(db: Db, run: RunRow, claimed: StreamRunRow | null = null): Promise<string[]> {
  const joined = claimed ? ne(streamRuns.id, claimed.id) : isNotNull(streamRuns.snapshot_generation);
  const again = await db
    .update(streamRuns)
    .set({
      status: 'retrying',
      ready: null,
      snapshot_generation: null,
      // Invalidates the claims: the workers let go with their next heartbeat.
      fence: claimed ? claimed.fence : sql`nextval('stream_run_fence')`,
      attempts_without_progress: sql`greatest(${streamRuns.attempts_without_progress} - 1, 0)`,
    })
    .where(
      and(
        grouped(run.id),
        sql`(${and(inArray(streamRuns.status, HELD_STREAM), joined)}
          or (${streamRuns.status} = 'pending' and ${streamRuns.ready} is not null))`,
      ),
    )
    .returning({ id: streamRuns.id });
  return again.map(({ id }) => id);
}

const held = ({ run, fence }: KeeperClaim) => and(eq(snapshots.connection_run_id, run.id), eq(snapshots.fence, fence));

/** False: another keeper has the run. */
export async function recordSnapshot(db: Db, claim: KeeperClaim, snapshot: SharedSnapshot): Promise<boolean> {
  const now = sql`clock_timestamp()`;
  const [row] = await db
    .update(snapshots)
    .set({ snapshot, opened_at: now, heartbeat_at: now, is_old: false })
    .where(held(claim))
    .returning({ id: snapshots.connection_run_id });
  return row !== undefined;
}

/** The heartbeat of a keeper that is being opened, which waits for the source. */
export async function recordOpening(db: Db, claim: KeeperClaim): Promise<void> {
  await db
    .update(snapshots)
    .set({ heartbeat_at: sql`clock_timestamp()` })
    .where(and(held(claim), isNull(snapshots.opened_at)));
}

/** The source cannot share a snapshot: its streams are read one by one. */
export async function recordUnavailable(db: Db, claim: KeeperClaim, error: StoredRunError): Promise<void> {
  await db
    .update(snapshots)
    .set({ error, snapshot: null, heartbeat_at: null, settled_at: sql`clock_timestamp()` })
    .where(held(claim));
}

/**
 * The keeper's heartbeat. False: it must let go, because no stream needs the snapshot any more, the run ends, or another
 * keeper has the run.
 */
export async function keepAlive(db: Db, claim: KeeperClaim): Promise<boolean> {
  const [kept] = await db
    .update(snapshots)
    .set({ heartbeat_at: sql`clock_timestamp()` })
    .from(connectionRuns)
    .where(
      and(
        held(claim),
        sql`${snapshots.snapshot} is not null`,
        eq(connectionRuns.id, snapshots.connection_run_id),
        inArray(connectionRuns.status, ['running', 'retrying']),
        exists(db.select({ one: sql`1` }).from(streamRuns).where(unread(claim.run.id))),
      ),
    )
    .returning({
      is_overdue: sql<boolean>`not ${snapshots.is_old} and ${snapshots.opened_at} < clock_timestamp() - make_interval(secs => ${OLD_SECONDS})`,
    });
  if (kept?.is_overdue) await db.transaction((tx) => warnOfAge(tx, claim));
  return kept !== undefined;
}

async function warnOfAge(db: Db, claim: KeeperClaim): Promise<void> {
  const run = await lockRun(db, claim.run.id);
  if (!run || !isLiveRun(run.status)) return;
  await db.update(snapshots).set({ is_old: true }).where(held(claim));
  const message = `The source has kept its snapshot for more than ${OLD_SECONDS / 60} minutes, and cannot remove row versions that are newer. Its tables grow until the run has read them. Set consistency to stream, or split the connection, if that is too much`;
  const warning = { code: 'snapshot_held_long', message, stream_name: null };
  await warnOfRun(db, run, [warning]);
}

/** @param again the snapshot was lost while streams need it, so another keeper opens a new one */
export async function releaseKeeper(db: Db, queue: Queue, claim: KeeperClaim, again: boolean): Promise<void> {
  const [released] = await db
    .update(snapshots)
    .set({ snapshot: null, heartbeat_at: null, ...(again && { requested_at: sql`clock_timestamp()` }) })
    .where(held(claim))
    .returning({ id: snapshots.connection_run_id });
  if (released && again) await requestKeeper(db, queue, claim.run);
}

/** The snapshots of workers that have died. Others are requested by `recoverSnapshots`. */
export async function forgetKeepers(db: Db, worker_ids: string[]): Promise<void> {
  await db
    .update(snapshots)
    .set({ snapshot: null, heartbeat_at: null })
    .where(and(inArray(snapshots.worker_id, worker_ids), isNull(snapshots.settled_at)));
}

/** Requests a keeper where none has answered, and sends jobs again that were lost with their worker. */
export async function recoverSnapshots(db: Db, queue: Queue): Promise<void> {
  const shared = db.select({ id: snapshots.connection_run_id }).from(snapshots);
  if ((await shared.where(isNull(snapshots.settled_at)).limit(1)).length === 0) return;
  const before = (column: AnyPgColumn, seconds: number) =>
    sql`coalesce(${column} < clock_timestamp() - make_interval(secs => ${seconds}), true)`;
  const lacksKeeper = and(
    isNull(snapshots.settled_at),
    isNull(snapshots.publish_requested_at),
    before(snapshots.heartbeat_at, LOST_SECONDS),
    before(snapshots.requested_at, LOST_SECONDS),
  );
  const unpublished = and(
    isNull(snapshots.settled_at),
    isNotNull(snapshots.publish_requested_at),
    before(snapshots.publishing_at, LOST_PUBLISHING_SECONDS),
    before(snapshots.publish_requested_at, LOST_PUBLISHING_SECONDS),
  );
  const now = sql`clock_timestamp()`;
  const runOf = { id: connectionRuns.id, account_id: connectionRuns.account_id };
  const isOf = eq(connectionRuns.id, snapshots.connection_run_id);
  await db.transaction(async (tx) => {
    const set = { requested_at: now };
    const lost = await tx
      .update(snapshots)
      .set(set)
      .from(connectionRuns)
      .where(and(lacksKeeper, isOf))
      .returning(runOf);
    for (const run of lost) await requestKeeper(tx, queue, run);
  });
  await db.transaction(async (tx) => {
    const set = { publish_requested_at: now };
    const lost = await tx
      .update(snapshots)
      .set(set)
      .from(connectionRuns)
      .where(and(unpublished, isOf))
      .returning(runOf);
    for (const { id, account_id } of lost) {
      await queue.send(tx, publishTables, { connection_run_id: id }, { account_id });
    }
  });
}
