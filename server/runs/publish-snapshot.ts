import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  type ConnectionRow,
  connections,
  connectionStreams,
  type RunRow,
  snapshots,
  type StoredRunError,
  type StreamRunRow,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { loadSides } from './load-sides.ts';
import { meterStreamRun } from '../billing/metering.ts';
import { emitStreamEvent } from '../events/run-events.ts';
import { backoffSeconds, isLiveRun, LIVE_STREAM, MAX_ATTEMPTS_WITHOUT_PROGRESS } from '../pipeline/run-states.ts';
import type { Queue } from '../queue/boss.ts';
import { publishTables } from '../queue/jobs.ts';
import { freshSince } from './log/freshness.ts';
import { lockRun } from './lock-run.ts';
import { failedLine, stoppedLine, withLine } from './log/append-lines.ts';
import { isGrouped, sharedSnapshotOf } from './snapshot/members.ts';

type Member = Pick<
  StreamRunRow,
  'id' | 'stream_name' | 'status' | 'sync_mode' | 'destination_sync_mode' | 'ready' | 'error'
>;

/** The code of streams that only others kept from being published. */
export const NOT_PUBLISHED = 'group_not_published';

/** The columns that tell how far the streams of a run are. */
export const MEMBER = {
  id: streamRuns.id,
  stream_name: streamRuns.stream_name,
  status: streamRuns.status,
  sync_mode: streamRuns.sync_mode,
  destination_sync_mode: streamRuns.destination_sync_mode,
  ready: streamRuns.ready,
  error: streamRuns.error,
};

/** Complete at the destination, and not visible. */
const isReady = ({ status, ready }: Pick<Member, 'status' | 'ready'>) => status === 'pending' && ready !== null;

/** Whether the tables of these streams of a run can be published together. */
export const isPublishedTogether = (
  streams: readonly Pick<Member, 'sync_mode' | 'destination_sync_mode' | 'status'>[],
) => streams.filter(isGrouped).length > 1;

/**
 * After a stream of the run has changed: has the tables published once all of them are complete, or ends the other
 * streams of the group after one of them has failed. The run must be locked.
 * @returns the streams as they are now
 */
export async function advancePublication(
  db: Db,
  queue: Queue,
  { run, streams }: { run: RunRow; streams: Member[] },
): Promise<Member[]> {
  if (!isPublishedTogether(streams)) return streams;
  const members = streams.filter(isGrouped);
  const shared = await sharedSnapshotOf(db, run.id);
  if (!shared || shared.settled_at !== null) return streams;
  const live = members.filter(({ status }) => LIVE_STREAM.includes(status));
  const failed = members.find(({ status }) => status === 'failed');
  if (failed && live.length > 0) {
    await failMembers(db, { run, members: live, error: notPublished(failed) });
    return streams.map((one) => (live.includes(one) ? { ...one, status: 'failed' as const } : one));
  }
  const isComplete = live.length > 0 && live.every(isReady);
  if (isComplete && run.status !== 'stopping' && shared.publish_requested_at === null) {
    await requestPublishing(db, queue, run);
  }
  return streams;
}

async function requestPublishing(db: Db, queue: Queue, run: RunRow, start_after?: number): Promise<void> {
  await db
    .update(snapshots)
    .set({ publish_requested_at: sql`clock_timestamp()`, publishing_at: null })
    .where(eq(snapshots.connection_run_id, run.id));
  await queue.send(db, publishTables, { connection_run_id: run.id }, { account_id: run.account_id, start_after });
}

/** Also ends the claims of the members that are being read. */
async function failMembers(
  db: Db,
  { run, members, error }: { run: RunRow; members: readonly Pick<Member, 'id'>[]; error: StoredRunError },
): Promise<void> {
  const failed = await db
    .update(streamRuns)
    .set({
      status: 'failed',
      fence: sql`nextval('stream_run_fence')`,
      finished_at: sql`clock_timestamp()`,
      error: sql`${JSON.stringify(error)}::jsonb || jsonb_build_object('stream_name', ${streamRuns.stream_name})`,
      log: failedLine(error),
    })
    .where(
      and(
        inArray(
          streamRuns.id,
          members.map(({ id }) => id),
        ),
        inArray(streamRuns.status, LIVE_STREAM),
      ),
    )
    .returning();
  for (const stream of failed) await emitStreamEvent(db, { event: 'stream_run_failed', run, stream });
}

async function stopMembers(db: Db, { run, streams }: Publication): Promise<void> {
  const stopped = await db
    .update(streamRuns)
    .set({ status: 'stopped', finished_at: sql`clock_timestamp()`, log: stoppedLine() })
    .where(
      and(
        inArray(
          streamRuns.id,
          streams.map(({ id }) => id),
        ),
        inArray(streamRuns.status, LIVE_STREAM),
      ),
    )
    .returning();
  for (const stream of stopped) await emitStreamEvent(db, { event: 'stream_run_stopped', run, stream });
}

function notPublished({ stream_name, error }: Member): StoredRunError {
  return {
    code: NOT_PUBLISHED,
    message: `The tables of a run are published together, and ${stream_name} failed: ${error?.message ?? 'unknown error'}`,
    origin: error?.origin ?? 'unknown',
    type: error?.type ?? 'system_error',
    retryable: error?.retryable ?? false,
    stream_name: null,
    internal_message: null,
    occurred_at: new Date().toISOString(),
  };
}

/** When a run ends: whatever it has not published is removed from the destination. The run must be locked. */
export async function discardUnpublished(db: Db, queue: Queue, run: RunRow): Promise<void> {
  const shared = await sharedSnapshotOf(db, run.id);
  if (!shared || shared.settled_at !== null) return;
  // A fence above those of all attempts of this run, and below those of the next one.
  await db
    .update(streamRuns)
    .set({ fence: sql`nextval('stream_run_fence')` })
    .where(eq(streamRuns.connection_run_id, run.id));
  await requestPublishing(db, queue, run);
}

/** The work of one job: tables that become visible, or, of a run that has ended, tables that go. */
export interface Publication {
  what: 'publish' | 'discard';
  run: RunRow;
  generation: number;
  streams: StreamRunRow[];
  connection: ConnectionRow;
  source: AccountConnectorRow;
  destination: AccountConnectorRow;
}

/** Null: there is nothing to do, or no longer. Several workers may do the same work: destinations do it once. */
export async function claimPublication(db: Db, connection_run_id: string): Promise<Publication | null> {
  const run = await lockRun(db, connection_run_id);
  const shared = run && (await sharedSnapshotOf(db, run.id));
  if (!shared || shared.settled_at !== null || shared.publish_requested_at === null) return null;
  const all = await db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, run.id));
  const members = all.filter(isGrouped);
  const ready = members.filter(isReady);
  const what = isLiveRun(run.status) ? 'publish' : 'discard';
  if (what === 'publish' && (run.status === 'stopping' || ready.length === 0)) return null;
  await db
    .update(snapshots)
    .set({ publishing_at: sql`clock_timestamp()` })
    .where(eq(snapshots.connection_run_id, run.id));
  const streams = what === 'publish' ? ready : members.filter(({ status }) => status !== 'succeeded');
  return { what, run, generation: shared.generation, streams, ...(await sidesOf(db, run)) };
}

async function sidesOf(db: Db, run: RunRow) {
  const [connection] = await db.select().from(connections).where(eq(connections.id, run.connection_id));
  if (!connection) throw new Error(`connection of run ${run.id} does not exist`);
  return { connection, ...(await loadSides(db, connection)) };
}

const PUBLISHING_SECONDS = 5;

/** Whether a worker publishes the tables of the run at this moment, so that their streams end with it. */
export async function isPublishing(db: Db, connection_run_id: string): Promise<boolean> {
  const fresh = sql`${snapshots.publishing_at} >= clock_timestamp() - make_interval(secs => ${PUBLISHING_SECONDS})`;
  const [found] = await db
    .select({ id: snapshots.connection_run_id })
    .from(snapshots)
    .where(and(eq(snapshots.connection_run_id, connection_run_id), fresh));
  return found !== undefined;
}

/** The heartbeat of the worker that publishes. */
export async function recordPublishing(db: Db, run: Pick<RunRow, 'id'>): Promise<void> {
  await db
    .update(snapshots)
    .set({ publishing_at: sql`clock_timestamp()` })
    .where(and(eq(snapshots.connection_run_id, run.id), isNotNull(snapshots.publishing_at)));
}

export async function recordSettled(db: Db, run: Pick<RunRow, 'id'>): Promise<void> {
  await db
    .update(snapshots)
    .set({ settled_at: sql`clock_timestamp()`, publishing_at: null, snapshot: null, heartbeat_at: null })
    .where(eq(snapshots.connection_run_id, run.id));
}

/** The destination shows the tables: their streams have succeeded. The run must be locked and live. */
export async function succeedPublished(db: Db, { run, streams }: Pick<Publication, 'run' | 'streams'>): Promise<void> {
  for (const { id, ready } of streams) {
    if (!ready) continue;
    const [stream] = await db
      .update(streamRuns)
      .set({
        ...ready.counts,
        status: 'succeeded',
        finished_at: sql`clock_timestamp()`,
        error: null,
        log: withLine({ level: 'info', code: 'published', message: publishedText(streams.length) }),
      })
      .where(and(eq(streamRuns.id, id), eq(streamRuns.status, 'pending')))
      .returning();
    if (!stream) continue;
    await meterStreamRun(db, stream);
    await emitStreamEvent(db, { event: 'stream_run_succeeded', run, stream });
    await db
      .update(connectionStreams)
      .set({
        row_count_last_run: stream.rows_loaded,
        loaded_columns: ready.loaded_columns,
        // The snapshot may be older than the claim of this stream.
        ...freshSince(run, run.started_at),
      })
      .where(eq(connectionStreams.id, stream.stream_id));
  }
}

const publishedText = (tables: number) =>
  tables === 1 ? 'The rows are visible' : `The rows are visible, together with those of ${tables - 1} other streams`;

/** The tables could not be published or removed: it is tried again, or the streams fail. The run must be locked. */
export async function failPublishing(
  db: Db,
  queue: Queue,
  { work, error, backoff_base_seconds }: { work: Publication; error: StoredRunError; backoff_base_seconds: number },
): Promise<void> {
  const [row] = await db
    .update(snapshots)
    .set({
      publish_attempts: sql`${snapshots.publish_attempts} + 1`,
      publish_error: error.internal_message ?? error.message,
    })
    .where(eq(snapshots.connection_run_id, work.run.id))
    .returning();
  if (!row) return;
  const exhausted = row.publish_attempts >= MAX_ATTEMPTS_WITHOUT_PROGRESS;
  if (work.what === 'discard') {
    // The next run of the stream removes what is left.
    if (exhausted) await recordSettled(db, work.run);
    else await requestPublishing(db, queue, work.run, backoffSeconds(row.publish_attempts, backoff_base_seconds));
    return;
  }
  if (work.run.status === 'stopping') await stopMembers(db, work);
  else if (error.retryable && !exhausted) {
    await requestPublishing(db, queue, work.run, backoffSeconds(row.publish_attempts, backoff_base_seconds));
  } else await failMembers(db, { run: work.run, members: work.streams, error });
}
