import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { connections, streamRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Queue } from '../queue/boss.ts';
import { executeStream } from '../queue/jobs.ts';
import { LIVE_STREAM } from '../pipeline/run-states.ts';

/**
 * Dispatches pending streams of a run, up to the parallel streams of the connection. The run must be locked.
 * @returns whether any stream was dispatched.
 */
export async function dispatchStreams(
  db: Db,
  queue: Queue,
  run: { id: string; connection_id: string; account_id: string },
): Promise<boolean> {
  const [connection] = await db
    .select({ slots: connections.max_parallel_streams })
    .from(connections)
    .where(eq(connections.id, run.connection_id));
  const live = await db
    .select({ id: streamRuns.id, dispatched_at: streamRuns.dispatched_at, ready: streamRuns.ready })
    .from(streamRuns)
    .where(and(eq(streamRuns.connection_run_id, run.id), inArray(streamRuns.status, LIVE_STREAM)));
  const free = (connection?.slots ?? 1) - live.filter((row) => row.dispatched_at && row.ready === null).length;
  if (free <= 0) return false;
  const waiting = db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .where(
      and(eq(streamRuns.connection_run_id, run.id), eq(streamRuns.status, 'pending'), isNull(streamRuns.dispatched_at)),
    )
    .orderBy(asc(streamRuns.id))
    .limit(free);
  const next = await db
    .update(streamRuns)
    .set({ dispatched_at: sql`clock_timestamp()` })
    .where(inArray(streamRuns.id, waiting))
    .returning({ id: streamRuns.id });
  const { account_id } = run;
  await queue.sendAll(
    db,
    executeStream,
    next.map(({ id }) => ({ payload: { stream_run_id: id }, account_id })),
  );
  return next.length > 0;
}
