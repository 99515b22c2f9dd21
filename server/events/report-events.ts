import type { EventRow } from '../../db/schema/index.ts';
import type { Deps } from '../deps.ts';
import type { EventKind } from './kinds.ts';

/** What became of a run or stream run; null: it has begun. */
const OUTCOMES: Partial<Record<EventKind, string | null>> = {
  connection_run_started: null,
  connection_run_skipped: 'skipped',
  connection_run_stopped: 'stopped',
  connection_succeeded: 'succeeded',
  connection_partially_failed: 'partially_succeeded',
  connection_failed: 'failed',
  stream_run_succeeded: 'succeeded',
  stream_run_failed: 'failed',
  stream_run_stopped: 'stopped',
};

/** Reports committed events to the operator: a line in the log for each start and end of a run, and the counters. */
export function reportEvents({ log, metrics }: Pick<Deps, 'log' | 'metrics'>, committed: readonly EventRow[]): void {
  for (const row of committed) {
    const outcome = OUTCOMES[row.event as EventKind];
    if (outcome === undefined) continue;
    const line = lineOf(row, outcome);
    if (outcome === 'failed' || outcome === 'partially_succeeded') log.warn(line, sentenceOf(row, 'failed'));
    else log.info(line, sentenceOf(row, outcome === null ? 'started' : 'ended'));
    if (outcome !== null && row.stream_run_id === null) metrics.runEnded(endedRun(row, outcome));
  }
}

const sentenceOf = (row: EventRow, what: string) => `${row.stream_run_id === null ? 'run' : 'stream'} ${what}`;

function lineOf(row: EventRow, outcome: string | null) {
  const { payload } = row;
  const line = {
    account_id: row.account_id,
    connection_id: row.connection_id,
    connection_run_id: row.connection_run_id,
    run_number: payload.run_number,
    trigger: payload.trigger_type,
    stream_run_id: row.stream_run_id ?? undefined,
    stream: payload.stream_name,
    namespace: payload.namespace ?? undefined,
    attempt: payload.attempt,
    // The line is written once the event is evaluated.
    at: row.occurred_at,
  };
  if (outcome === null) return line;
  return {
    ...line,
    outcome,
    code: payload.error_code ?? payload.skip_reason ?? null,
    rows_read: payload.rows_read,
    rows: payload.rows_loaded,
    rows_rejected: payload.rows_rejected,
    bytes: payload.bytes_loaded,
    ms: payload.duration_ms,
  };
}

function endedRun({ payload }: EventRow, outcome: string) {
  const text = (name: string) => (typeof payload[name] === 'string' ? payload[name] : '');
  const count = (name: string) => (typeof payload[name] === 'number' ? payload[name] : 0);
  const ms = payload.duration_ms;
  return {
    outcome,
    reason: text('error_code') || text('skip_reason'),
    trigger: text('trigger_type'),
    seconds: typeof ms === 'number' ? ms / 1000 : null,
    rows_read: count('rows_read'),
    rows_loaded: count('rows_loaded'),
    rows_rejected: count('rows_rejected'),
    bytes_loaded: count('bytes_loaded'),
  };
}
