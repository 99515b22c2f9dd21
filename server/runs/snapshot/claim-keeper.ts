import { and, eq, inArray, isNotNull, isNull, lt, ne, sql } from 'drizzle-orm';
import { type RunRow, snapshots, type StreamRunRow, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { HELD_STREAM, isLiveRun, MAX_ATTEMPTS, MAX_ATTEMPTS_WITHOUT_PROGRESS } from '../../pipeline/run-states.ts';
import type { Queue } from '../../queue/boss.ts';
import { executeStream } from '../../queue/jobs.ts';
import { lockRun } from '../lock-run.ts';
import { grouped, isKeptFresh, sharedSnapshotOf, unread } from './members.ts';

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
