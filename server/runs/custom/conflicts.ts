import { and, asc, eq, exists, inArray, isNotNull, isNull, or, sql } from 'drizzle-orm';
import { connectionRuns, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { LIVE_RUN, LIVE_STREAM } from '../../pipeline/run-states.ts';
import { type OpenSpan, overlaps } from '../../pipeline/custom-run/windows.ts';

/**
 * The live run that chunks of these streams would conflict with, or null. Two custom runs of a stream may be live as
 * long as their windows share no day. The connection must be locked.
 *
 * Not left to the unique index: the index would wait for a worker that is ending the run, while that worker waits for
 * the connection.
 */
export async function findConflict(
  db: Db,
  wanted: { connection_id: string; stream_ids: string[]; windows: readonly OpenSpan[] },
): Promise<string | null> {
  const { connection_id, stream_ids, windows } = wanted;
  const live = await db
    .select({ id: connectionRuns.id, start: connectionRuns.window_start, end: connectionRuns.window_end })
    .from(connectionRuns)
    .where(
      and(
        eq(connectionRuns.connection_id, connection_id),
        inArray(connectionRuns.status, LIVE_RUN),
        movesOneOf(db, stream_ids),
      ),
    )
    .orderBy(isNotNull(connectionRuns.custom_run_plan_id), asc(connectionRuns.number));
  return live.find((run) => windows.some((window) => overlaps(window, run)))?.id ?? null;
}

/**
 * The live runs that plain runs of these streams would conflict with, by connection. A second plain run is never allowed,
 * nor one beside a custom run of the same stream. The connections must be locked.
 */
export async function findPlainConflicts(
  db: Db,
  wanted: readonly { connection_id: string; stream_ids: string[] }[],
): Promise<Map<string, string>> {
  if (wanted.length === 0) return new Map();
  const stream_ids = wanted.flatMap((one) => one.stream_ids);
  const live = await db
    .selectDistinctOn([connectionRuns.connection_id], {
      connection_id: connectionRuns.connection_id,
      id: connectionRuns.id,
    })
    .from(connectionRuns)
    .where(
      and(
        inArray(
          connectionRuns.connection_id,
          wanted.map(({ connection_id }) => connection_id),
        ),
        inArray(connectionRuns.status, LIVE_RUN),
        or(isNull(connectionRuns.custom_run_plan_id), movesOneOf(db, stream_ids)),
      ),
    )
    .orderBy(connectionRuns.connection_id, isNotNull(connectionRuns.custom_run_plan_id), asc(connectionRuns.number));
  return new Map(live.map(({ connection_id, id }) => [connection_id, id]));
}

/** The run has a live stream run of one of these streams. */
function movesOneOf(db: Db, stream_ids: readonly string[]) {
  // As one parameter: a batch can have more streams than a statement can have parameters.
  const given = `{${stream_ids.join()}}`;
  const moved = db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .where(
      and(
        eq(streamRuns.connection_run_id, connectionRuns.id),
        inArray(streamRuns.status, LIVE_STREAM),
        sql`${streamRuns.stream_id} = any(${given}::uuid[])`,
      ),
    );
  return exists(moved);
}
