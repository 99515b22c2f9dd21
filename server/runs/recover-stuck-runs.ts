import { and, eq, inArray, lt, sql } from 'drizzle-orm';
import { connectionRuns, type StoredRunError, streamRuns } from '../../db/schema/index.ts';
import { findsAny, type Question } from '../../db/ask-together.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { SYSTEM_ACTOR } from '../events/emit.ts';
import { advancePlan, stalledPlans, waitsForTurn } from './custom/advance.ts';
import { emitStreamEvent } from '../events/run-events.ts';
import { finishRun } from './finish-run.ts';
import { lockRun } from './lock-run.ts';
import { failedLine, stoppedLine } from './log/append-lines.ts';
import { recoverSnapshots } from './snapshot/lost-keepers.ts';
import { stopSuspended } from './stop.ts';
import { releaseStreams } from './worker-deaths.ts';
import { HELD_STREAM, LIVE_RUN, LIVE_STREAM } from '../pipeline/run-states.ts';

/** A stop presumes a worker dead after this time without a heartbeat; it does not wait for the queue to notice. */
const DEAD_SECONDS = 6;
/** A stop ends after this time, whatever the workers do. */
const STOP_GRACE_SECONDS = 60;
/** The queue redelivers a dead worker's job after about 10 s. After this time the job is lost and is sent again. */
const LOST_SECONDS = 60;
const MAX_RUN_HOURS = 24;

/** Recovers runs that no worker will finish. Any number of workers may call it at once. */
export async function recoverStuckRuns(deps: Deps): Promise<void> {
  // Snapshots also of runs that have ended.
  const [isLive] = await Promise.all([findsAny(deps.db, ANY_LIVE), recoverSnapshots(deps.db, deps.queue)]);
  if (!isLive) return;
  await stopSuspended(deps.db, deps.queue);
  for (const id of await overdueRuns(deps.db)) {
    await deps.db.transaction((tx) => endStuckRun(deps, tx, id));
  }
  await releaseStreams(deps, lt(streamRuns.heartbeat_at, sql`now() - make_interval(secs => ${LOST_SECONDS})`));
  for (const plan_id of await stalledPlans(deps.db)) {
    await deps.db.transaction((tx) => advancePlan(tx, deps.queue, { plan_id, ended: null }));
  }
}

const ANY_LIVE: Question = {
  name: 'live runs',
  query: (db) =>
    db.select({ id: connectionRuns.id }).from(connectionRuns).where(inArray(connectionRuns.status, LIVE_RUN)).limit(1),
};

async function overdueRuns(db: Db): Promise<string[]> {
  const rows = await db
    .selectDistinct({ id: connectionRuns.id })
    .from(connectionRuns)
    .leftJoin(
      streamRuns,
      and(eq(streamRuns.connection_run_id, connectionRuns.id), inArray(streamRuns.status, HELD_STREAM)),
    )
    .where(
      sql`(${connectionRuns.status} = 'stopping' and (
            ${connectionRuns.stop_requested_at} < now() - make_interval(secs => ${STOP_GRACE_SECONDS})
            or ${streamRuns.heartbeat_at} < now() - make_interval(secs => ${DEAD_SECONDS})))
          or (${inArray(connectionRuns.status, LIVE_RUN)}
            and ${connectionRuns.queued_at} < now() - make_interval(hours => ${MAX_RUN_HOURS})
            and not (${connectionRuns.custom_run_plan_id} is not null and ${waitsForTurn}))`,
    );
  return rows.map((row) => row.id);
}

async function endStuckRun(deps: Deps, db: Db, connection_run_id: string): Promise<void> {
  const run = await lockRun(db, connection_run_id);
  if (!run || !LIVE_RUN.includes(run.status)) return;
  const stopping = run.status === 'stopping';
  const error = timeout(run.status);
  const ended = await db
    .update(streamRuns)
    .set({
      status: stopping ? 'stopped' : 'failed',
      // Invalidates the claim of a worker that may still hold the stream.
      fence: sql`nextval('stream_run_fence')`,
      finished_at: sql`clock_timestamp()`,
      ...(stopping ? { log: stoppedLine() } : { error, log: failedLine(error) }),
    })
    .where(and(eq(streamRuns.connection_run_id, run.id), inArray(streamRuns.status, LIVE_STREAM)))
    .returning();
  const event = stopping ? 'stream_run_stopped' : 'stream_run_failed';
  for (const stream of ended) await emitStreamEvent(db, { event, run, stream });
  await finishRun(db, deps.queue, { connection_run_id: run.id, actor: SYSTEM_ACTOR });
  deps.log.warn({ connection_run_id, stopping }, 'stuck run ended');
}

function timeout(status: string): StoredRunError {
  const queued = status === 'queued';
  return {
    code: queued ? 'queue_timeout' : 'run_timeout',
    message: queued
      ? `No worker started the run within ${MAX_RUN_HOURS} hours`
      : `The run did not finish within ${MAX_RUN_HOURS} hours`,
    origin: 'platform',
    type: 'timeout',
    retryable: true,
    stream_name: null,
    internal_message: null,
    occurred_at: new Date().toISOString(),
  };
}
