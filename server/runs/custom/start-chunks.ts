import { eq, sql } from 'drizzle-orm';
import {
  type ConnectionRow,
  connectionRuns,
  connections as connectionsTable,
  type RunRow,
  streamRuns,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Actor } from '../../events/emit.ts';
import type { Queue } from '../../queue/boss.ts';
import { advancePlan } from './advance.ts';
import { refuseOverlap } from './conflicts.ts';
import type { PlannedChunk, RunParameters } from '../../pipeline/custom-run/plan.ts';
import { isWindowed } from '../../pipeline/custom-run/plan.ts';
import type { StreamPlan } from '../../pipeline/custom-run/streams.ts';
import { emitRunEvent } from '../../events/run-events.ts';

export interface Launch {
  connection: ConnectionRow;
  plan: { id: string; parameters: RunParameters; total_chunks: number };
  /** Those to run, in the order in which they are to start. */
  chunks: readonly Pick<PlannedChunk, 'index' | 'start_date' | 'end_date'>[];
  streams: readonly StreamPlan[];
  trigger_type: 'custom_plan' | 'rerun';
  rerun_of_run_id?: string;
  actor: Actor;
}

const ROWS_AT_ONCE = 1000;

/**
 * Makes a queued run of each chunk, and starts as many as the plan may have side by side. In the caller's transaction,
 * with the connection locked. Answers with the ids of the runs, in the order of the chunks.
 * @throws ApiError 400 `run_already_active` with `connection_run_id`.
 */
export async function launchChunks(db: Db, queue: Queue, launch: Launch): Promise<string[]> {
  const { connection, plan, chunks } = launch;
  const moved = movedStreams(launch);
  await refuseOverlap(db, {
    connection_id: connection.id,
    stream_ids: moved.map(({ stream }) => stream.id),
    windows: chunks.map(({ start_date, end_date }) => ({ start: start_date, end: end_date })),
  });
  const runs = await insertRuns(db, launch);
  const rows = runs.flatMap((run) =>
    launch.streams.map((one) => streamRunOf(run, one, { plan, skipped: !moved.includes(one) })),
  );
  for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) {
    await db.insert(streamRuns).values(rows.slice(start, start + ROWS_AT_ONCE));
  }
  for (const run of runs) await emitRunEvent(db, { event: 'connection_run_queued', run, actor: launch.actor });
  await advancePlan(db, queue, { plan_id: plan.id, ended: null });
  return runs.map((run) => run.id);
}

const movedStreams = ({ plan, streams }: Launch) =>
  isWindowed(plan.parameters) ? streams.filter((one) => one.supports_date_window) : streams;

async function insertRuns(db: Db, launch: Launch) {
  const { connection, plan, chunks, actor } = launch;
  const [counter] = await db
    .update(connectionsTable)
    .set({ run_counter: sql`${connectionsTable.run_counter} + ${chunks.length}` })
    .where(eq(connectionsTable.id, connection.id))
    .returning({ last: connectionsTable.run_counter });
  const first = (counter?.last ?? chunks.length) - chunks.length + 1;
  const runs = await db
    .insert(connectionRuns)
    .values(
      chunks.map((chunk, position) => ({
        account_id: connection.account_id,
        connection_id: connection.id,
        number: first + position,
        status: 'queued' as const,
        run_type: plan.parameters.mode === 'full_refresh' ? ('full_refresh' as const) : ('custom' as const),
        trigger_type: launch.trigger_type,
        triggered_by: actor.type === 'user' ? actor.id : null,
        rerun_of_run_id: launch.rerun_of_run_id,
        custom_run_plan_id: plan.id,
        chunk_index: chunk.index,
        chunk_count: plan.total_chunks,
        window_start: chunk.start_date,
        window_end: chunk.end_date,
        update_cursor: plan.parameters.update_cursor,
        custom_run_parameters: { ...plan.parameters },
        warnings: launch.streams.flatMap((one) => one.warnings),
        queued_at: sql`clock_timestamp()`,
      })),
    )
    .returning();
  return runs.toSorted((a, b) => a.number - b.number);
}

function streamRunOf(
  run: RunRow,
  { stream, ...how }: StreamPlan,
  { plan, skipped }: { plan: Launch['plan']; skipped: boolean },
): typeof streamRuns.$inferInsert {
  return {
    account_id: run.account_id,
    connection_id: run.connection_id,
    connection_run_id: run.id,
    stream_id: stream.id,
    stream_name: stream.name,
    namespace: stream.namespace,
    status: skipped ? 'skipped' : 'pending',
    finished_at: skipped ? run.queued_at : null,
    sync_mode: how.sync_mode,
    destination_sync_mode: how.destination_sync_mode,
    cursor_before: plan.parameters.mode === 'incremental' ? (stream.state?.cursor ?? null) : null,
    // Those of a stream that moves are its worker's to write; the plan's own stand at the run.
    warnings: skipped ? how.warnings : [],
  };
}
