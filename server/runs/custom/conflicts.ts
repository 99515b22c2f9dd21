import { and, asc, eq, exists, inArray, isNotNull, isNull, or } from 'drizzle-orm';
import { connectionRuns, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { LIVE_RUN, LIVE_STREAM } from '../../pipeline/run-states.ts';
import { type OpenSpan, overlaps } from '../../pipeline/custom-run/windows.ts';

/**
 * The live run that a new run of these streams would conflict with, or null. Two custom runs of a stream may be live as
 * long as their windows share no day; a second plain run is never allowed. The connection must be locked.
 *
 * Not left to the unique index: the index would wait for a worker that is ending the run, while that worker waits for
 * the connection.
 */
export async function findConflict(
  db: Db,
  wanted: { connection_id: string; stream_ids: string[]; windows: readonly OpenSpan[]; plain?: boolean },
): Promise<string | null> {
  const { connection_id, stream_ids, windows, plain = false } = wanted;
  const sameStreams = db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .where(
      and(
        eq(streamRuns.connection_run_id, connectionRuns.id),
        inArray(streamRuns.status, LIVE_STREAM),
        inArray(streamRuns.stream_id, stream_ids),
      ),
    );
  const conflicting = plain ? or(isNull(connectionRuns.custom_run_plan_id), exists(sameStreams)) : exists(sameStreams);
  const live = await db
    .select({ id: connectionRuns.id, start: connectionRuns.window_start, end: connectionRuns.window_end })
    .from(connectionRuns)
    .where(and(eq(connectionRuns.connection_id, connection_id), inArray(connectionRuns.status, LIVE_RUN), conflicting))
    .orderBy(isNotNull(connectionRuns.custom_run_plan_id), asc(connectionRuns.number));
  return live.find((run) => windows.some((window) => overlaps(window, run)))?.id ?? null;
}
