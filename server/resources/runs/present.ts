import type { StoredRunError } from '../../../db/schema/index.ts';
import { MAX_ATTEMPTS_WITHOUT_PROGRESS } from '../../pipeline/run-states.ts';
import type { RunRecord, StreamRunRecord } from './query.ts';
import type { ConnectionRunSchema, StreamRunSchema } from './schema.ts';

/** What a response depends on besides the run. */
export interface Viewing {
  now: Date;
  /** Administrators see the internal message of an error. */
  internal: boolean;
}

export function presentRun(record: RunRecord, viewing: Viewing): ConnectionRunSchema {
  const { update_cursor: _cursor, stop_reason: _stop, skip_reason: _skip, custom_run_plan_id, ...run } = record.run;
  return {
    ...run,
    plan_id: custom_run_plan_id,
    parent_run_id: record.parent_run_id,
    // Part of the API for compatibility; the limit is one for all runs.
    max_attempts: MAX_ATTEMPTS_WITHOUT_PROGRESS,
    ...record.totals,
    triggered_by: record.triggered_by,
    stop_requested_by: record.stop_requested_by,
    duration_ms: durationOf(run, viewing.now),
    error: presentError(run.error, viewing),
    warnings: [...run.warnings, ...record.live_warnings],
    has_network_logs: record.has_network_logs,
  };
}

export function presentStreamRun(record: StreamRunRecord, viewing: Viewing): StreamRunSchema {
  const { state_after: _state, ready, snapshot_generation: _generation, source_jobs: _jobs, ...stream } = record.stream;
  return {
    ...stream,
    // Its rows are loaded, and wait to be published with those of the other streams.
    status: ready !== null && stream.status === 'pending' ? 'running' : stream.status,
    duration_ms: durationOf(stream, viewing.now),
    progress_percent: progressOf(stream),
    window_start: record.window_start,
    window_end: record.window_end,
    has_network_logs: {
      source: record.logged.includes('source'),
      destination: record.logged.includes('destination'),
    },
    error: presentError(stream.error, viewing),
  };
}

/** Up to now for a run that has not ended. */
function durationOf(work: { started_at: string | null; finished_at: string | null }, now: Date): number | null {
  if (work.started_at === null) return null;
  const end = work.finished_at === null ? now.getTime() : Date.parse(work.finished_at);
  return Math.max(0, end - Date.parse(work.started_at));
}

/** At most 99 until the end, since the estimate may be too low. */
function progressOf(stream: Pick<StreamRunRecord['stream'], 'status' | 'estimated_rows' | 'rows_read'>): number | null {
  if (stream.status === 'succeeded') return 100;
  if (!stream.estimated_rows) return null;
  return Math.min(99, Math.floor((stream.rows_read / stream.estimated_rows) * 100));
}

const presentError = (error: StoredRunError | null, viewing: Viewing) =>
  error && { ...error, internal_message: viewing.internal ? error.internal_message : null };
