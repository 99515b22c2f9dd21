import { and, eq, inArray, sql } from 'drizzle-orm';
import { connectionRuns, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { badRequest } from '../../platform/errors.ts';
import type { OpenSpan } from '../../pipeline/custom-run/windows.ts';
import { overlaps } from '../../pipeline/custom-run/windows.ts';
import { LIVE_RUN, LIVE_STREAM } from '../../pipeline/run-states.ts';

/**
 * Refuses runs of streams that a live run is at: two windows may be loaded side by side, as long as they share no day.
 * `custom_only`: looks only at custom runs. The connection must be locked, so that two starts see one another.
 * @throws ApiError 400 `run_already_active` with `connection_run_id`.
 */
export async function refuseOverlap(
  db: Db,
  wanted: { connection_id: string; stream_ids: string[]; windows: readonly OpenSpan[]; custom_only?: boolean },
): Promise<void> {
  const live = await liveRunsOf(db, wanted);
  const blocking = live.find((run) => wanted.windows.some((window) => overlaps(window, run.window)));
  if (blocking) throw runAlreadyActive(blocking.id);
}

export const runAlreadyActive = (connection_run_id: string) =>
  badRequest('run_already_active', 'A run of this connection is active', { connection_run_id });

interface LiveRun {
  id: string;
  /** Without limits: it may touch every day. */
  window: OpenSpan;
}

async function liveRunsOf(
  db: Db,
  { connection_id, stream_ids, custom_only }: { connection_id: string; stream_ids: string[]; custom_only?: boolean },
): Promise<LiveRun[]> {
  if (stream_ids.length === 0) return [];
  const rows = await db
    .selectDistinct({
      id: connectionRuns.id,
      number: connectionRuns.number,
      start: connectionRuns.window_start,
      end: connectionRuns.window_end,
    })
    .from(connectionRuns)
    .innerJoin(streamRuns, eq(streamRuns.connection_run_id, connectionRuns.id))
    .where(
      and(
        eq(connectionRuns.connection_id, connection_id),
        inArray(connectionRuns.status, LIVE_RUN),
        inArray(streamRuns.status, LIVE_STREAM),
        inArray(streamRuns.stream_id, stream_ids),
        custom_only ? sql`${connectionRuns.custom_run_plan_id} is not null` : undefined,
      ),
    )
    .orderBy(connectionRuns.number);
  return rows.map(({ id, start, end }) => ({ id, window: { start, end } }));
}
