import { and, eq, inArray, isNotNull, isNull, ne, sql } from 'drizzle-orm';
import { accounts, connectionRuns, streamRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, SYSTEM_ACTOR } from '../events/emit.ts';
import { emitStreamEvent } from '../events/run-events.ts';
import { HELD_STREAM, isLiveRun, LIVE_RUN } from '../pipeline/run-states.ts';
import type { Queue } from '../queue/boss.ts';
import { finishRun } from './finish-run.ts';
import { isPublishing } from './publish-snapshot.ts';
import { lockRun } from './lock-run.ts';
import { stoppedLine } from './log/append-lines.ts';

/** Workers listen here for runs to stop; the payload is the id of the run. Only a hint: they also check every second. */
export const STOP_CHANNEL = 'run_stop';

/**
 * Asks a run to stop, in the caller's transaction. Returns the id of the run, or null if it had already ended. Streams
 * without a worker stop at once; workers are notified.
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
  // What is being published ends with that.
  const publishing = await isPublishing(db, run.id);
  const stopped = await db
    .update(streamRuns)
    .set({ status: 'stopped', finished_at: sql`clock_timestamp()`, log: stoppedLine() })
    .where(
      and(
        eq(streamRuns.connection_run_id, run.id),
        inArray(streamRuns.status, ['pending', 'retrying']),
        publishing ? isNull(streamRuns.ready) : undefined,
      ),
    )
    .returning();
  for (const stream of stopped) await emitStreamEvent(db, { event: 'stream_run_stopped', run, stream });
  const held = await db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .where(and(eq(streamRuns.connection_run_id, run.id), inArray(streamRuns.status, HELD_STREAM)));
  if (held.length === 0 && !publishing) await finishRun(db, queue, { connection_run_id: run.id, actor: input.actor });
  else await db.execute(sql`select pg_notify(${STOP_CHANNEL}, ${run.id})`);
  return run.id;
}

interface RunsToStop {
  connection_id: string;
  actor: Actor;
  reason: string;
  /** Chunks of custom runs go on. */
  plain_only?: boolean;
}

/**
 * Asks all live runs of a connection to stop, in the caller's transaction. Must be called before the connection is locked:
 * ending a run locks the run first and its connection second, and the other order would deadlock. @returns how many there
 * are
 */
export async function stopLiveRuns(
  db: Db,
  queue: Queue,
  { connection_id, plain_only = false, ...stop }: RunsToStop,
): Promise<number> {
  const live = await db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .where(
      and(
        eq(connectionRuns.connection_id, connection_id),
        inArray(connectionRuns.status, LIVE_RUN),
        plain_only ? isNull(connectionRuns.custom_run_plan_id) : undefined,
      ),
    )
    .orderBy(connectionRuns.number)
    .for('no key update');
  // All runs are locked before the first one ends, which locks its plan. The last chunks stop first, so that none starts.
  for (const { id } of live.toReversed()) await requestStop(db, queue, { connection_run_id: id, ...stop });
  return live.length;
}

/**
 * Stops the live runs of suspended accounts. Also called periodically: a start that began before the suspension can commit
 * after it.
 */
export async function stopSuspended(db: Db, queue: Queue): Promise<void> {
  const running = await db
    .selectDistinct({ id: connectionRuns.connection_id })
    .from(connectionRuns)
    .innerJoin(accounts, eq(accounts.id, connectionRuns.account_id))
    .where(
      and(
        isNotNull(accounts.suspended_at),
        inArray(connectionRuns.status, LIVE_RUN),
        ne(connectionRuns.status, 'stopping'),
      ),
    );
  for (const { id: connection_id } of running) {
    const stop = { connection_id, actor: SYSTEM_ACTOR, reason: 'account_suspended' };
    await db.transaction((tx) => stopLiveRuns(tx, queue, stop));
  }
}
