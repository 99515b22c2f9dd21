import {
  HELD_STREAM_RUN as HELD_STREAM,
  LIVE_RUN,
  LIVE_STREAM_RUN as LIVE_STREAM,
  type RUN_STATUSES,
  type STREAM_RUN_STATUSES,
} from '../../db/schema/closed-sets.ts';

export { HELD_STREAM, LIVE_RUN, LIVE_STREAM };

export type RunStatus = (typeof RUN_STATUSES)[number];
export type StreamRunStatus = (typeof STREAM_RUN_STATUSES)[number];

export const isLiveRun = (status: RunStatus) => LIVE_RUN.includes(status);

/** The final status of a run whose streams have all ended. A requested stop takes precedence. */
export function finalRunStatus(streams: StreamRunStatus[], stopRequested: boolean): RunStatus {
  const has = (status: StreamRunStatus) => streams.includes(status);
  if (stopRequested && has('stopped')) return 'stopped';
  if (!has('failed') && !has('stopped')) return 'succeeded';
  if (has('succeeded')) return 'partially_succeeded';
  return has('failed') ? 'failed' : 'stopped';
}

/** Consecutive attempts without progress, and attempts in total, after which a stream fails. */
export const MAX_ATTEMPTS_WITHOUT_PROGRESS = 5;
export const MAX_ATTEMPTS = 20;

/** A stream that ended this many worker processes, the last one on its own, fails. */
export const MAX_WORKER_DEATHS = 2;

const MAX_BACKOFF_SECONDS = 1800;

/** Pause before the next attempt: base × 3^(n-1) after n attempts without progress, at most 30 minutes. */
export function backoffSeconds(attemptsWithoutProgress: number, baseSeconds: number): number {
  if (attemptsWithoutProgress === 0) return Math.min(1, baseSeconds);
  return Math.min(baseSeconds * 3 ** (attemptsWithoutProgress - 1), MAX_BACKOFF_SECONDS);
}
