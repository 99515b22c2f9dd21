import type { RUN_STATUSES, STREAM_RUN_STATUSES } from '../../db/schema/index.ts';

export type RunStatus = (typeof RUN_STATUSES)[number];
export type StreamRunStatus = (typeof STREAM_RUN_STATUSES)[number];

/** Run states that still change. */
export const LIVE_RUN: RunStatus[] = ['queued', 'running', 'retrying', 'stopping'];
/** Stream run states in which a worker holds the stream. */
export const HELD_STREAM: StreamRunStatus[] = ['running', 'rate_limited'];
/** Stream run states that still change. */
export const LIVE_STREAM: StreamRunStatus[] = ['pending', 'retrying', ...HELD_STREAM];

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
