import { inRows, inTime, inWords } from '../../pipeline/log-words.ts';
import type { RunRecord } from './query.ts';
import type { RunLogLine } from './log-line.ts';

type Line = Pick<RunLogLine, 'at' | 'level' | 'code' | 'message'>;

/** What a run itself went through, from the times that it has stored. */
export function linesOfRun(record: RunRecord): RunLogLine[] {
  const lines = [queued(record), started(record), stopRequested(record), ended(record)];
  const ofRun = { stream_run_id: null, stream_name: null, namespace: null, attempt: null };
  return lines.flatMap((line) => (line ? [{ ...line, ...ofRun, id: line.code }] : []));
}

function queued({ run, triggered_by, totals }: RunRecord): Line | null {
  if (run.status === 'skipped') return null;
  const streams = `${inWords(totals.streams_total)} ${totals.streams_total === 1 ? 'stream' : 'streams'}`;
  const by = triggered_by ? ` by ${triggered_by.name}` : '';
  return { at: run.queued_at, level: 'info', code: 'queued', message: `Queued${by}, ${origin(run)}, with ${streams}` };
}

function origin({ trigger_type, chunk_index, chunk_count, window_start, window_end }: RunRecord['run']): string {
  if (chunk_index !== null) {
    const days = window_start === null ? '' : `, ${window_start} to ${window_end ?? 'today'}`;
    return `as chunk ${chunk_index + 1} of ${chunk_count}${days}`;
  }
  return ORIGINS[trigger_type];
}

const ORIGINS: Record<RunRecord['run']['trigger_type'], string> = {
  schedule: 'by the schedule',
  manual: 'in the console',
  api: 'over the API',
  rerun: 'as a rerun',
  custom_plan: 'as a custom run',
  automation: 'by a trigger',
};

function started({ run }: RunRecord): Line | null {
  if (run.started_at === null) return null;
  const waited = inTime(Date.parse(run.started_at) - Date.parse(run.queued_at));
  return { at: run.started_at, level: 'info', code: 'started', message: `Started after ${waited} in the queue` };
}

function stopRequested({ run, stop_requested_by }: RunRecord): Line | null {
  if (run.stop_requested_at === null) return null;
  const by = stop_requested_by ? ` by ${stop_requested_by.name}` : '';
  const because = run.stop_reason ? `: ${run.stop_reason}` : '';
  const message = `Stop requested${by}${because}`;
  return { at: run.stop_requested_at, level: 'warning', code: 'stop_requested', message };
}

function ended({ run, totals }: RunRecord): Line | null {
  if (run.finished_at === null) return null;
  const at = run.finished_at;
  if (run.status === 'skipped')
    return { at, level: 'warning', code: 'skipped', message: `Skipped: ${run.error?.message ?? run.skip_reason}` };
  const took = run.started_at === null ? '' : ` after ${inTime(Date.parse(at) - Date.parse(run.started_at))}`;
  const rejected = totals.rows_rejected > 0 ? `, ${inWords(totals.rows_rejected)} rejected` : '';
  const counts = `${inRows(totals.rows_read)} read, ${inWords(totals.rows_loaded)} loaded${rejected}`;
  const credits = `${inWords(run.credits_used)} ${run.credits_used === 1 ? 'credit' : 'credits'} used`;
  const because = run.error ? ` ${run.error.message}.` : '';
  const status = run.status.replaceAll('_', ' ');
  const message = `Run ${status}${took}.${because} ${counts}; ${credits}`;
  return { at, level: LEVELS[run.status] ?? 'info', code: 'ended', message };
}

const LEVELS: Partial<Record<RunRecord['run']['status'], RunLogLine['level']>> = {
  failed: 'error',
  partially_succeeded: 'warning',
  stopped: 'warning',
};
