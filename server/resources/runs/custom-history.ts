import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import { connectionRuns, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { PastChunk, RunParameters } from '../../pipeline/custom-run/plan.ts';
import type { PastRun } from '../../pipeline/custom-run/estimates.ts';
import { LIVE_STREAM } from '../../pipeline/run-states.ts';

const MAX_PAST_RUNS = 30;

/** Earlier custom runs of these streams within the window, and how they ended. Empty without a window. */
export async function pastChunks(
  db: Db,
  { connection_id, stream_ids, start_date, end_date }: Scope & Pick<RunParameters, 'start_date' | 'end_date'>,
): Promise<PastChunk[]> {
  if (start_date === null || end_date === null || stream_ids.length === 0) return [];
  const rows = await db
    .select({
      stream_id: streamRuns.stream_id,
      start: connectionRuns.window_start,
      end: connectionRuns.window_end,
      status: streamRuns.status,
      number: connectionRuns.number,
      mode: sql<string | null>`${connectionRuns.custom_run_parameters} ->> 'mode'`,
    })
    .from(streamRuns)
    .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id))
    .where(
      and(
        eq(connectionRuns.connection_id, connection_id),
        isNotNull(connectionRuns.custom_run_plan_id),
        inArray(streamRuns.stream_id, stream_ids),
        sql`${connectionRuns.window_start} <= ${end_date} and ${connectionRuns.window_end} >= ${start_date}`,
      ),
    );
  return rows.flatMap(({ start, end, status, mode, ...row }) => {
    const outcome = LIVE_STREAM.includes(status) ? 'live' : OUTCOMES[status];
    // How many of its days an incremental run loaded depends on the cursor that it started from.
    if (start === null || end === null || !outcome || (outcome !== 'live' && mode !== 'backfill')) return [];
    return { ...row, window: { start, end }, outcome };
  });
}

const OUTCOMES: Record<string, 'succeeded' | 'failed'> = {
  succeeded: 'succeeded',
  failed: 'failed',
  stopped: 'failed',
};

interface Scope {
  connection_id: string;
  stream_ids: string[];
}

/** The latest successful runs that show how much data a day has: windowed and incremental ones. Newest first. */
export async function pastRuns(db: Db, { connection_id, stream_ids }: Scope): Promise<PastRun[]> {
  if (stream_ids.length === 0) return [];
  const rows = await db
    .select({
      rows_loaded: sql<string>`sum(${streamRuns.rows_loaded})`,
      started_at: connectionRuns.started_at,
      finished_at: connectionRuns.finished_at,
      start: connectionRuns.window_start,
      end: connectionRuns.window_end,
    })
    .from(connectionRuns)
    .innerJoin(streamRuns, eq(streamRuns.connection_run_id, connectionRuns.id))
    .where(
      and(
        eq(connectionRuns.connection_id, connection_id),
        eq(connectionRuns.status, 'succeeded'),
        inArray(streamRuns.stream_id, stream_ids),
        eq(streamRuns.status, 'succeeded'),
        sql`(${connectionRuns.window_end} is not null
          or (${connectionRuns.custom_run_plan_id} is null and ${streamRuns.sync_mode} = 'incremental'))`,
      ),
    )
    .groupBy(connectionRuns.id)
    .orderBy(sql`${connectionRuns.number} desc`)
    .limit(MAX_PAST_RUNS);
  return rows.flatMap(({ rows_loaded, started_at, finished_at, start, end }) => {
    if (started_at === null || finished_at === null || (start === null && end !== null)) return [];
    const duration_ms = Math.max(0, Date.parse(finished_at) - Date.parse(started_at));
    const window = start !== null && end !== null ? { start, end } : null;
    return { rows_loaded: Number(rows_loaded), duration_ms, finished_at, window };
  });
}
