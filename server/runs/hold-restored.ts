import { eq, inArray, sql } from 'drizzle-orm';
import { connectionRuns, installation, type StoredRunError, streamRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { SYSTEM_ACTOR } from '../events/emit.ts';
import { LIVE_RUN, LIVE_STREAM } from '../pipeline/run-states.ts';
import { NO_QUEUE } from '../queue/no-queue.ts';
import { finishRun } from './finish-run.ts';

/**
 * Makes a database usable that was set back to an earlier moment, in one transaction. What happened since is unknown:
 * - fences continue above all that were ever given, so that no worker of the time before can write
 * - live runs fail: whether they loaded their rows is not known, so they must not go on by themselves
 * - schedules wait until an operator releases them
 * Returns the number of runs that failed.
 */
export async function holdRestored(db: Db): Promise<number> {
  await db.execute(sql`
    select setval('stream_run_fence', greatest(nextval('stream_run_fence'),
      (select coalesce(max(fence), 0) from stream_runs),
      (extract(epoch from clock_timestamp()) * 1000)::bigint))`);
  await db
    .insert(installation)
    .values({ held_at: sql`clock_timestamp()` as never })
    .onConflictDoUpdate({ target: installation.id, set: { held_at: sql`clock_timestamp()` } });
  const live = await db.select().from(connectionRuns).where(inArray(connectionRuns.status, LIVE_RUN));
  for (const { id } of live) {
    const failed = { status: 'failed' as const, finished_at: sql`clock_timestamp()`, error: restored() };
    await db
      .update(streamRuns)
      .set(failed)
      .where(sql`${eq(streamRuns.connection_run_id, id)} and ${inArray(streamRuns.status, LIVE_STREAM)}`);
    await finishRun(db, NO_QUEUE, { connection_run_id: id, actor: SYSTEM_ACTOR });
  }
  return live.length;
}

const restored = (): StoredRunError => ({
  code: 'restored',
  message:
    'The control database was restored to a moment at which this run had not ended. Check the destination, then run the connection again',
  origin: 'platform',
  type: 'system_error',
  retryable: false,
  stream_name: null,
  internal_message: null,
  occurred_at: new Date().toISOString(),
});

/** Lets schedules start runs again. False: they were not held. */
export async function releaseSchedules(db: Db): Promise<boolean> {
  const released = await db
    .update(installation)
    .set({ held_at: null })
    .where(sql`${installation.held_at} is not null`)
    .returning();
  return released.length > 0;
}
