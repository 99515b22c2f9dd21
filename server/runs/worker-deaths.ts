import { and, eq, inArray, type SQL, sql } from 'drizzle-orm';
import { type StoredRunError, type StreamRunRow, streamRuns } from '../../db/schema/index.ts';
import { meterStreamRun } from '../billing/metering.ts';
import type { Deps } from '../deps.ts';
import { emitStreamEvent } from '../events/run-events.ts';
import {
  HELD_STREAM,
  isLiveRun,
  LIVE_STREAM,
  MAX_ATTEMPTS,
  MAX_ATTEMPTS_WITHOUT_PROGRESS,
  MAX_WORKER_DEATHS,
} from '../pipeline/run-states.ts';
import { executeStream } from '../queue/jobs.ts';
import { isHeldFresh } from './claim-stream.ts';
import { advanceRun } from './finish-run.ts';
import { lockRun } from './lock-run.ts';
import { failedLine, withLine } from './log/append-lines.ts';
import { forgetKeepers } from './snapshot/lost-keepers.ts';

/**
 * How a worker takes up a stream run. `isolate`: a worker died while it held the stream, so it runs alone in a process of
 * its own. `give_up`: its attempts died until none was left. `leave`: another worker holds it, or it has ended.
 */
export type TakeUp = 'claim' | 'isolate' | 'give_up' | 'leave';

export function howToTakeUp(found: StreamBefore): TakeUp {
  if (found.fresh || found.is_ready || !LIVE_STREAM.includes(found.status)) return 'leave';
  const died = found.deaths > 0 || HELD_STREAM.includes(found.status);
  if (!died) return 'claim';
  const exhausted = found.without_progress >= MAX_ATTEMPTS_WITHOUT_PROGRESS || found.attempt >= MAX_ATTEMPTS;
  return exhausted ? 'give_up' : 'isolate';
}

/** What `howToTakeUp` needs of a stream run. */
export const STREAM_BEFORE = {
  status: streamRuns.status,
  attempt: streamRuns.attempt,
  without_progress: streamRuns.attempts_without_progress,
  deaths: streamRuns.worker_deaths,
  fresh: isHeldFresh,
  is_ready: sql<boolean>`${streamRuns.ready} is not null`,
};

export interface StreamBefore extends Pick<StreamRunRow, 'status' | 'attempt'> {
  without_progress: number;
  deaths: number;
  fresh: boolean;
  is_ready: boolean;
}

/** Takes up at once what these workers held when they died, instead of after the queue has missed their heartbeats. */
export async function releaseDeadWorkers(deps: Deps, worker_ids: string[]): Promise<void> {
  if (worker_ids.length === 0) return;
  await forgetKeepers(deps.db, worker_ids);
  await releaseStreams(deps, inArray(streamRuns.worker_id, worker_ids));
}

/** Sends the jobs of held streams again whose worker is dead. `dead`: which streams these are. */
export async function releaseStreams(deps: Deps, dead: SQL): Promise<void> {
  const held = and(dead, inArray(streamRuns.status, HELD_STREAM));
  const lost = await deps.db
    .select({ id: streamRuns.id, run_id: streamRuns.connection_run_id })
    .from(streamRuns)
    .where(held);
  for (const { id, run_id } of lost) {
    await deps.db.transaction(async (tx) => {
      const run = await lockRun(tx, run_id);
      // A run that stops is ended by the job that recovers stuck runs.
      if (!run || run.status === 'stopping') return;
      const [released] = await tx
        .update(streamRuns)
        .set(afterDeath())
        .where(and(eq(streamRuns.id, id), held))
        .returning();
      if (!released) return;
      await deps.queue.send(tx, executeStream, { stream_run_id: id }, { account_id: run.account_id });
      await advanceRun(tx, deps.queue, run);
    });
  }
}

const afterDeath = () => ({
  status: 'retrying' as const,
  // Invalidates the claim: the worker may only seem to be dead.
  fence: sql`nextval('stream_run_fence')`,
  worker_deaths: sql`${streamRuns.worker_deaths} + 1`,
  log: withLine({
    level: 'warning',
    code: 'worker_lost',
    message: 'The worker ended or gave no heartbeat. Another one continues from the last checkpoint',
  }),
});

/**
 * After a process that executed nothing but this stream has died. The stream fails once it ended MAX_WORKER_DEATHS
 * processes; else it gets another attempt.
 * @param how such as "gave no heartbeat for 10 s"
 * @returns false if that process did not hold the stream
 */
export async function recordIsolatedDeath(
  deps: Deps,
  stream: { stream_run_id: string; worker_id: string; how: string },
): Promise<boolean> {
  const held = await deps.db
    .select({ id: streamRuns.id, deaths: streamRuns.worker_deaths })
    .from(streamRuns)
    .where(and(eq(streamRuns.worker_id, stream.worker_id), inArray(streamRuns.status, HELD_STREAM)));
  const own = held.find(({ id }) => id === stream.stream_run_id);
  if (!own) return false;
  const deaths = own.deaths + 1;
  // Of streams that were moved together, each is tried alone next, to find the one.
  const isAlone = held.length === 1;
  if (isAlone && deaths >= MAX_WORKER_DEATHS) await failStream(deps, own.id, { deaths, how: stream.how });
  else await releaseDeadWorkers(deps, [stream.worker_id]);
  return true;
}

/** Fails a stream whose attempts end with their worker. */
export async function failStream(
  deps: Deps,
  stream_run_id: string,
  died: { deaths?: number; how?: string } = {},
): Promise<void> {
  const named = eq(streamRuns.id, stream_run_id);
  await deps.db.transaction(async (tx) => {
    const [before] = await tx.select().from(streamRuns).where(named);
    const run = before && (await lockRun(tx, before.connection_run_id));
    if (!run || !isLiveRun(run.status) || run.status === 'stopping') return;
    const error = workerKilled(before, died);
    const [failed] = await tx
      .update(streamRuns)
      .set({
        status: 'failed',
        fence: sql`nextval('stream_run_fence')`,
        finished_at: sql`clock_timestamp()`,
        ...(died.deaths !== undefined && { worker_deaths: died.deaths }),
        error,
        log: failedLine(error),
      })
      .where(and(named, inArray(streamRuns.status, LIVE_STREAM)))
      .returning();
    if (!failed) return;
    await meterStreamRun(tx, failed);
    await emitStreamEvent(tx, { event: 'stream_run_failed', run, stream: failed });
    await advanceRun(tx, deps.queue, run);
    deps.log.error({ stream_run_id, ...died }, 'stream fails because its worker processes died');
  });
}

function workerKilled(
  { stream_name, attempts_without_progress }: StreamRunRow,
  { deaths = attempts_without_progress, how }: { deaths?: number; how?: string },
): StoredRunError {
  const last = how === undefined ? '' : ` The last one ran nothing else and ${how}.`;
  return {
    code: 'worker_killed',
    message: `Stream "${stream_name}" ended ${deaths} worker processes.${last} Deselect it, or change what it reads, and run it again`,
    origin: 'platform',
    type: 'system_error',
    retryable: false,
    stream_name,
    internal_message: null,
    occurred_at: new Date().toISOString(),
  };
}
