import { and, eq, gt, inArray, isNull, not, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import {
  type AccountConnectorRow,
  accountConnectors,
  type ConnectionRow,
  connectionRuns,
  connections,
  connectionStreams,
  type RunRow,
  type StoredLogLine,
  type StoredWarning,
  type StreamRow,
  type StreamRunRow,
  streamRuns,
} from '../../db/schema/index.ts';
import { lockInOrder } from '../../db/lock-in-order.ts';
import type { Db } from '../../db/types.ts';
import type { StreamState, WriteCounts } from '../connectors/contract/connector.ts';
import { emitRunEvent, factsOf } from '../events/run-events.ts';
import { lockRunOf } from './lock-run.ts';
import { MAX_LOG_LINES, withLine, withLines } from './log/append-lines.ts';
import { isGrouped, membersOf, shareSnapshot, sharedSnapshotOf } from './snapshot/members.ts';
import { HELD_STREAM, isLiveRun, LIVE_STREAM, type RunStatus } from '../pipeline/run-states.ts';

/** A heartbeat younger than this means that another worker holds the stream. */
export const LEASE_SECONDS = 5;

/** Whether a living worker holds the stream run. */
export const isHeldFresh = sql<boolean>`(${inArray(streamRuns.status, HELD_STREAM)}
  and coalesce(${streamRuns.heartbeat_at} >= clock_timestamp() - make_interval(secs => ${LEASE_SECONDS}), false))`;

export interface Claim {
  run: RunRow;
  stream_run: StreamRunRow;
  connection: ConnectionRow;
  stream: StreamRow;
  source: AccountConnectorRow;
  destination: AccountConnectorRow;
  /** The stream is read from a snapshot that the run shares, and published together with others. */
  is_grouped: boolean;
  /** The first claim of such a run has to send the job that opens the snapshot. */
  opens_snapshot: boolean;
  /** It is the first claim of the run. */
  begins_run: boolean;
}

/** Progress of a worker: counted in memory, stored with each heartbeat. */
export interface Progress {
  rows_read: number;
  bytes_read: number;
  rows_loaded: number;
  rows_updated: number;
  rows_deleted: number;
  bytes_loaded: number;
  log_lag_bytes: number | null;
  requests_count: number;
  estimated_rows: number | null;
  first_row_at: string | null;
  rate_limited_until: string | null;
  source_snapshot: string | null;
}

/**
 * Claims a stream for this worker with a new fencing token. Null if there is nothing to do: the stream or run has ended
 * or is stopping, or the job was delivered twice and the other worker's heartbeat is fresh. `locked`: its run, if the
 * caller has locked it.
 */
export async function claimStream(
  db: Db,
  stream_run_id: string,
  worker_id: string,
  locked?: RunRow,
): Promise<Claim | null> {
  const run = locked ?? (await lockRunOf(db, stream_run_id));
  if (!run || !isLiveRun(run.status) || run.status === 'stopping') return null;
  const begins_run = !run.started_at;
  // Sent together: what is read does not change with the claim.
  const [taken, { members, ...pipeline }] = await Promise.all([
    takeStream(db, run, { stream_run_id, worker_id }),
    loadPipeline(db, run, stream_run_id),
  ]);
  if (!taken) return null;
  const claim = claimOf({ ...taken, ...pipeline });
  const { connection, source, destination } = claim;
  if (begins_run) {
    const facts = factsOf(connection, [source, destination]);
    await emitRunEvent(db, { event: 'connection_run_started', run: taken.run, facts });
  }
  const shared = begins_run
    ? await shareSnapshot(db, { run: taken.run, connection }, { source, destination, members })
    : isGrouped(taken.stream_run) && (await sharedSnapshotOf(db, run.id));
  return {
    ...claim,
    begins_run,
    opens_snapshot: begins_run && shared !== null,
    is_grouped: Boolean(shared) && isGroupedNow(claim),
  };
}

/** Takes the stream, if it is free, and marks its run as running. Null: it is not free. */
async function takeStream(
  db: Db,
  run: RunRow,
  { stream_run_id, worker_id }: { stream_run_id: string; worker_id: string },
): Promise<Pick<Claim, 'run' | 'stream_run'> | null> {
  const taken = db.$with('taken').as(
    db
      .update(streamRuns)
      .set(claimColumns(worker_id, sql`nextval('stream_run_fence')`))
      .where(
        and(
          eq(streamRuns.id, stream_run_id),
          inArray(streamRuns.status, LIVE_STREAM),
          isNull(streamRuns.ready),
          not(isHeldFresh),
        ),
      )
      .returning(),
  );
  const [row] = await db
    .with(taken)
    .update(connectionRuns)
    .set({
      status: 'running',
      attempt: sql`greatest(${connectionRuns.attempt}, ${taken.attempt})`,
      started_at: sql`coalesce(${connectionRuns.started_at}, clock_timestamp())`,
    })
    .from(taken)
    .where(eq(connectionRuns.id, run.id))
    .returning();
  if (!row) return null;
  const { taken: stream_run, ...started } = row;
  return { run: started, stream_run };
}

/** The settings may have changed since the run was queued. */
export const isGroupedNow = ({ stream_run, stream }: Pick<Claim, 'stream_run' | 'stream'>): boolean =>
  isGrouped(stream_run) && isGrouped({ ...stream, status: stream_run.status });

const CLAIMED_ATTEMPT = sql`case when ${streamRuns.started_at} is null then 1 else ${streamRuns.attempt} + 1 end`;

/** What a claim sets. */
export const claimColumns = (worker_id: string, fence: SQL) => ({
  status: 'running' as const,
  fence,
  heartbeat_at: sql`clock_timestamp()`,
  started_at: sql`coalesce(${streamRuns.started_at}, clock_timestamp())`,
  attempt: CLAIMED_ATTEMPT,
  log: withLine({
    level: 'info',
    code: 'claimed',
    message: sql`format('Attempt %s begins on worker %s', ${CLAIMED_ATTEMPT}, ${worker_id.slice(-12)}::text)`,
    attempt: CLAIMED_ATTEMPT,
  }),
  rate_limited_until: null,
  snapshot_generation: null,
  worker_id,
  // Counted here, not at the end of the attempt, because an attempt that takes its worker down has no end.
  attempts_without_progress: sql`${streamRuns.attempts_without_progress} + 1`,
  worker_deaths: sql`${streamRuns.worker_deaths} + case when ${inArray(streamRuns.status, HELD_STREAM)} then 1 else 0 end`,
});

/** Everything that the claim of a stream run needs, in one statement. */
async function loadPipeline(
  db: Db,
  run: RunRow,
  stream_run_id: string,
): Promise<Pick<Claim, 'connection' | 'stream' | 'source' | 'destination'> & { members: number }> {
  const [found] = await db
    .select({
      connection: connections,
      stream: connectionStreams,
      source: sourceSide,
      destination: destinationSide,
      members: membersOf(run.id),
    })
    .from(streamRuns)
    .innerJoin(connectionStreams, eq(connectionStreams.id, streamRuns.stream_id))
    .innerJoin(connections, eq(connections.id, connectionStreams.connection_id))
    .innerJoin(sourceSide, eq(sourceSide.id, connections.source_id))
    .innerJoin(destinationSide, eq(destinationSide.id, connections.destination_id))
    .where(eq(streamRuns.id, stream_run_id));
  if (!found) throw new Error(`stream of stream run ${stream_run_id} does not exist`);
  return found;
}

const sourceSide = alias(accountConnectors, 'source');
const destinationSide = alias(accountConnectors, 'destination');

/** The claims of more stream runs of the same run, which this worker has taken with the first one. */
export async function loadOthers(db: Db, first: Claim, taken: StreamRunRow[]): Promise<Claim[]> {
  const ids = taken.map(({ stream_id }) => stream_id);
  const streams = await db.select().from(connectionStreams).where(inArray(connectionStreams.id, ids));
  const { run, connection, source, destination } = first;
  return taken.map((stream_run) => {
    const stream = streams.find(({ id }) => id === stream_run.stream_id);
    if (!stream) throw new Error(`stream of stream run ${stream_run.id} does not exist`);
    return claimOf({ run, stream_run, stream, connection, source, destination });
  });
}

type Loaded = Omit<Claim, 'is_grouped' | 'opens_snapshot' | 'begins_run'>;

const claimOf = ({ stream, ...rest }: Loaded): Claim => ({
  ...rest,
  stream: asRun(rest.run, rest.stream_run, stream),
  begins_run: false,
  opens_snapshot: false,
  is_grouped: false,
});

/** A custom run has its own sync modes, and reads from the live cursor only in incremental mode. */
function asRun(run: RunRow, { sync_mode, destination_sync_mode }: Claim['stream_run'], stream: Claim['stream']) {
  if (run.custom_run_plan_id === null) return stream;
  const state = run.custom_run_parameters?.mode === 'incremental' ? stream.state : null;
  return { ...stream, sync_mode, destination_sync_mode, state, state_version: 0, committed_version: null };
}

/** The row of the stream run, while this worker holds it. */
export const stillHeld = (claim: Claim) =>
  and(
    eq(streamRuns.id, claim.stream_run.id),
    eq(streamRuns.fence, claim.stream_run.fence),
    inArray(streamRuns.status, HELD_STREAM),
  );

/** Whether no other worker has claimed the stream since, and nothing has ended it. */
export async function holdsClaim(db: Db, claim: Claim): Promise<boolean> {
  const [held] = await db.select({ id: streamRuns.id }).from(streamRuns).where(stillHeld(claim));
  return held !== undefined;
}

export async function fencedAttempts(db: Db): Promise<number> {
  const [row] = await db
    .select({
      count: sql<number>`(coalesce(sum(${streamRuns.attempts_fenced}), 0)
        + coalesce((select attempts_fenced from installation), 0))::int`,
    })
    .from(streamRuns)
    .where(gt(streamRuns.attempts_fenced, 0));
  return row?.count ?? 0;
}

/** Counts an attempt that ended because of its fence. */
export async function countFenced(db: Db, { stream_run }: Claim): Promise<void> {
  await db
    .update(streamRuns)
    .set({ attempts_fenced: sql`${streamRuns.attempts_fenced} + 1` })
    .where(eq(streamRuns.id, stream_run.id));
}

/** Claims that are made meanwhile must not get a fence twice. */
const FENCES_SKIPPED = 1000;

/**
 * Continues the fences above one that a destination holds. It can be higher than all that were given here if the control
 * database was restored from a backup.
 */
export async function raiseFences(db: Db, floor: number): Promise<void> {
  await db.execute(
    sql`select setval('stream_run_fence', ${floor + FENCES_SKIPPED}::bigint) from stream_run_fence where last_value <= ${floor}::bigint`,
  );
}

/** Stores a heartbeat and the progress. Returns the status of the run, or null if this worker has lost its claim. */
export async function recordProgress(
  db: Db,
  claim: Claim,
  { lines = [], ...progress }: Progress & { warnings?: StoredWarning[]; lines?: readonly StoredLogLine[] },
): Promise<RunStatus | null> {
  const [held] = await db
    .update(streamRuns)
    .set({
      ...progress,
      ...(lines.length > 0 && { log: withLines(lines) }),
      status: progress.rate_limited_until ? 'rate_limited' : 'running',
      heartbeat_at: sql`clock_timestamp()`,
    })
    .from(connectionRuns)
    .where(and(stillHeld(claim), eq(connectionRuns.id, streamRuns.connection_run_id)))
    .returning({ status: connectionRuns.status });
  return held?.status ?? null;
}

/** The run and the connection of claims, as they are now. */
interface SharedProgress {
  status: RunStatus;
  connection_status: ConnectionRow['status'];
  revision: number;
}

/** As `recordProgress`, for claims with one fence. @returns null if this worker has lost one of them */
export async function recordSharedProgress(
  db: Db,
  held: readonly {
    claim: Claim;
    progress: Progress;
    warnings: readonly StoredWarning[];
    lines: readonly StoredLogLine[];
  }[],
): Promise<SharedProgress | null> {
  const [first] = held;
  if (!first) return null;
  const progress = held.map((one) => ({
    id: one.claim.stream_run.id,
    ...one.progress,
    warnings: one.warnings.length > 0 ? one.warnings : undefined,
    lines: one.lines,
  }));
  const rows = await db.execute<SharedProgress & Record<string, unknown>>(sql`
    with locked as (${lockedRows(held)})
    update stream_runs s set rows_read = p.rows_read, bytes_read = p.bytes_read, rows_loaded = p.rows_loaded,
      rows_updated = p.rows_updated, rows_deleted = p.rows_deleted, bytes_loaded = p.bytes_loaded,
      log_lag_bytes = p.log_lag_bytes, requests_count = p.requests_count, estimated_rows = p.estimated_rows,
      first_row_at = p.first_row_at, warnings = coalesce(p.warnings, s.warnings), source_snapshot = p.source_snapshot,
      log = case when jsonb_array_length(s.log) < ${MAX_LOG_LINES}::int then s.log || p.lines else s.log end,
      heartbeat_at = clock_timestamp()
    from connection_runs r, connections c, jsonb_to_recordset(${JSON.stringify(progress)}::text::jsonb) as p (id uuid,
      rows_read bigint, bytes_read bigint, rows_loaded bigint, rows_updated bigint, rows_deleted bigint,
      bytes_loaded bigint, log_lag_bytes bigint, requests_count integer, estimated_rows bigint,
      first_row_at timestamptz, warnings jsonb, source_snapshot text, lines jsonb)
    where s.id = p.id and s.id in (select id from locked) and s.fence = ${first.claim.stream_run.fence} and r.id = s.connection_run_id
      and c.id = s.connection_id
      and s.status in (${sql.join(
        HELD_STREAM.map((status) => sql`${status}`),
        sql`, `,
      )})
    returning r.status, c.status as connection_status, c.revision`);
  return rows.length === held.length ? (rows[0] ?? null) : null;
}

const lockedRows = (held: readonly { claim: Claim }[]) =>
  lockInOrder(
    'stream_runs',
    held.map(({ claim }) => claim.stream_run.id),
  );

/** What the destination has just committed of a stream. */
export interface Checkpoint {
  state: StreamState | null;
  state_version: number;
  counts: WriteCounts;
}

/** Stores what the destination has just committed. False if this worker has lost its claim. */
export const recordCheckpoint = (db: Db, claim: Claim, commit: Checkpoint): Promise<boolean> =>
  recordCheckpoints(db, [{ claim, ...commit }]);

/**
 * As `recordCheckpoint`, for streams with one fence. False if this worker has lost one of them. A state that was set
 * meanwhile (`stateSetTo`) stays.
 */
export async function recordCheckpoints(db: Db, commits: readonly (Checkpoint & { claim: Claim })[]): Promise<boolean> {
  const [first] = commits;
  if (!first) return true;
  const rows = commits.map(({ claim, state, state_version, counts }) => ({
    id: claim.stream_run.id,
    stream_id: claim.run.custom_run_plan_id === null ? claim.stream.id : null,
    state,
    state_version,
    ...counts,
  }));
  const [found] = await db.execute<{ held: number }>(sql`
    with locked as (${lockedRows(commits)}),
    p as (select * from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as p (id uuid, stream_id uuid, state jsonb,
      state_version bigint, rows_loaded bigint, rows_updated bigint, rows_deleted bigint, bytes_loaded bigint,
      rows_rejected bigint)),
    held as (
      update stream_runs s set rows_loaded = p.rows_loaded, rows_updated = p.rows_updated, rows_deleted = p.rows_deleted,
        bytes_loaded = p.bytes_loaded, rows_rejected = coalesce(p.rows_rejected, s.rows_rejected),
        attempts_without_progress = 0, worker_deaths = 0, updated_at = clock_timestamp(),
        cursor_after = case when p.state is null then s.cursor_after else p.state ->> 'cursor' end,
        state_after = case when p.stream_id is null then coalesce(p.state, s.state_after) else s.state_after end
      from p
      where s.id = p.id and s.id in (select id from locked) and s.fence = ${first.claim.stream_run.fence}
        and s.status in (${sql.join(
          HELD_STREAM.map((status) => sql`${status}`),
          sql`, `,
        )})
      returning s.id),
    streams as (${lockInOrder(
      'connection_streams',
      rows.flatMap(({ stream_id }) => stream_id ?? []),
    )}),
    moved as (
      update connection_streams c set state_version = p.state_version, state = coalesce(p.state, c.state),
        committed_version = case when p.state is null then c.committed_version else p.state_version end,
        cursor_updated_at = case when p.state is null then c.cursor_updated_at else clock_timestamp() end
      from p join held on held.id = p.id
      where c.id = p.stream_id and c.id in (select id from streams) and c.state_version < p.state_version)
    select count(*)::int as held from held`);
  return found!.held === commits.length;
}
