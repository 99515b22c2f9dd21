import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import {
  type ConnectionRow,
  connectionRuns,
  connections,
  type RunRow,
  type StreamRow,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Actor } from '../events/emit.ts';
import type { Queue } from '../queue/boss.ts';
import { executeStream } from '../queue/jobs.ts';
import { creditsToReserve } from '../billing/credits.ts';
import { refuseOverlap, runAlreadyActive } from './custom/conflicts.ts';
import { emitRunEvent, emitStreamEvent } from '../events/run-events.ts';
import { finishRun, lockRun } from './finish-run.ts';
import { HELD_STREAM, isLiveRun, LIVE_RUN } from '../pipeline/run-states.ts';
import { tableName } from '../pipeline/transfer-plan.ts';

/** The channel on which workers hear that a run is to stop; the payload is its id. A hint: they also look each second. */
export const STOP_CHANNEL = 'run_stop';

const EVERY_DAY = { start: null, end: null };

export interface StartRun {
  connection: ConnectionRow;
  /** The streams to move, selected ones of the connection. */
  streams: StreamRow[];
  run_type: 'plain';
  trigger_type: 'schedule' | 'manual' | 'api' | 'rerun' | 'automation';
  actor: Actor;
  rerun_of_run_id?: string;
  /** When an action of a trigger starts it: one more than that of the event. */
  causation_depth?: number;
}

/**
 * Makes run row, stream runs, event and jobs in the caller's transaction; answers with the run's id. Whether the plan
 * allows it (`movementRefusal`) the caller has asked in this transaction, and the connection he has locked, so that two
 * starts see one another and numbers have no gaps.
 * @throws ApiError 400 `run_already_active` with `connection_run_id` when a plain run is live, or a custom one of these
 * streams.
 */
export async function startRun(db: Db, queue: Queue, input: StartRun): Promise<string> {
  const { connection } = input;
  await refuseSecondPlainRun(db, connection.id);
  await refuseOverlap(db, {
    connection_id: connection.id,
    stream_ids: input.streams.map((stream) => stream.id),
    windows: [EVERY_DAY],
    custom_only: true,
  });
  const [counter] = await db
    .update(connections)
    .set({ run_counter: sql`${connections.run_counter} + 1` })
    .where(eq(connections.id, connection.id))
    .returning({ number: connections.run_counter });
  const [run] = await db
    .insert(connectionRuns)
    .values({
      account_id: connection.account_id,
      connection_id: connection.id,
      number: counter?.number ?? 1,
      status: 'queued',
      run_type: input.run_type,
      trigger_type: input.trigger_type,
      triggered_by: input.actor.type === 'user' ? input.actor.id : null,
      rerun_of_run_id: input.rerun_of_run_id,
      causation_depth: input.causation_depth,
      credits_reserved: await creditsToReserve(db, connection, new Date()),
      queued_at: sql`clock_timestamp()`,
    })
    .returning();
  if (!run) throw new Error('a run was not stored');
  await insertStreamRuns(db, queue, { run, input });
  await emitRunEvent(db, { event: 'connection_run_queued', run, actor: input.actor });
  return run.id;
}

/**
 * Looks, and does not leave it to the unique index: that would wait for a worker that is just ending the run, while the
 * worker waits for the connection, which is locked here.
 */
async function refuseSecondPlainRun(db: Db, connection_id: string): Promise<void> {
  const [live] = await db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .where(
      and(
        eq(connectionRuns.connection_id, connection_id),
        isNull(connectionRuns.custom_run_plan_id),
        inArray(connectionRuns.status, LIVE_RUN),
      ),
    );
  if (live) throw runAlreadyActive(live.id);
}

async function insertStreamRuns(db: Db, queue: Queue, made: { run: RunRow; input: StartRun }): Promise<void> {
  const { run, input } = made;
  const now = new Date().toISOString();
  const rows = await db
    .insert(streamRuns)
    .values(
      input.streams.map((stream, index) => ({
        account_id: run.account_id,
        connection_id: run.connection_id,
        connection_run_id: run.id,
        stream_id: stream.id,
        stream_name: stream.name,
        namespace: stream.namespace,
        status: 'pending' as const,
        sync_mode: stream.sync_mode,
        destination_sync_mode: stream.destination_sync_mode,
        destination_table: tableName(input.connection, stream),
        cursor_before: stream.state?.cursor ?? null,
        dispatched_at: index < input.connection.max_parallel_streams ? now : null,
      })),
    )
    .returning({ id: streamRuns.id, dispatched_at: streamRuns.dispatched_at });
  const options = { account_id: run.account_id };
  for (const row of rows) {
    if (row.dispatched_at) await queue.send(db, executeStream, { stream_run_id: row.id }, options);
  }
}

/**
 * Asks a run to stop, in the caller's transaction. Answers with the run's id, or null when it had ended already.
 * Streams that no worker holds end at once; workers are told by NOTIFY.
 */
export async function requestStop(
  db: Db,
  queue: Queue,
  input: { connection_run_id: string; actor: Actor; reason: string | null },
): Promise<string | null> {
  const run = await lockRun(db, input.connection_run_id);
  if (!run || !isLiveRun(run.status)) return null;
  if (run.status === 'stopping') return run.id;
  await db
    .update(connectionRuns)
    .set({
      status: 'stopping',
      stop_requested_at: sql`clock_timestamp()`,
      stop_requested_by: input.actor.type === 'user' ? input.actor.id : null,
      stop_reason: input.reason,
    })
    .where(eq(connectionRuns.id, run.id));
  const stopped = await db
    .update(streamRuns)
    .set({ status: 'stopped', finished_at: sql`clock_timestamp()` })
    .where(and(eq(streamRuns.connection_run_id, run.id), inArray(streamRuns.status, ['pending', 'retrying'])))
    .returning();
  for (const stream of stopped) await emitStreamEvent(db, { event: 'stream_run_stopped', run, stream });
  const held = await db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .where(and(eq(streamRuns.connection_run_id, run.id), inArray(streamRuns.status, HELD_STREAM)));
  if (held.length === 0) await finishRun(db, queue, { connection_run_id: run.id, actor: input.actor });
  else await db.execute(sql`select pg_notify(${STOP_CHANNEL}, ${run.id})`);
  return run.id;
}
