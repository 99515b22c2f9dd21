import { type DaySpan, daysIn } from '../../platform/utc-days.ts';
import { type Estimate, estimateDays, type Pace, sumEstimates } from './estimates.ts';
import type { PlanNotice, StreamPlan } from './streams.ts';
import { covers, type OpenSpan, overlaps, type Split, splitDays } from './windows.ts';

export const MAX_CHUNKS = 366;
export const MAX_RANGE_DAYS = 1830;
const CONFIRM_ABOVE_CHUNKS = 100;

/** CustomRunParameters with the defaults filled in. */
export interface RunParameters {
  start_date: string | null;
  end_date: string | null;
  stream_ids: string[] | null;
  stream_names: string[] | null;
  mode: 'backfill' | 'incremental' | 'full_refresh';
  split: Split;
  order: 'chronological' | 'reverse_chronological';
  max_parallel_runs: number;
  reprocess: 'all' | 'missing' | 'failed';
  update_cursor: boolean;
  clear_destination: boolean;
  on_chunk_failure: 'stop' | 'continue';
  reason: string | null;
}

/** A stream of an earlier custom run, with its window and outcome. */
export interface PastChunk {
  stream_id: string;
  window: DaySpan;
  outcome: 'succeeded' | 'failed' | 'live';
  /** The number of its run. Of two runs, the later one counts. */
  number: number;
}

export type SkipReason = 'already_succeeded' | 'in_flight' | 'empty_window' | 'never_run';

export interface PlannedChunk extends Estimate {
  index: number;
  start_date: string | null;
  end_date: string | null;
  stream_names: string[];
  action: 'run' | 'skip';
  skip_reason: SkipReason | null;
}

export interface PlannerInput {
  parameters: RunParameters;
  /** The streams of the run, in the order of the response. */
  streams: readonly StreamPlan[];
  history: readonly PastChunk[];
  pace: Pace;
  credits_per_row: number;
  credits_remaining: number | null;
  /** In the connection's time zone. */
  today: string;
  /** The limit of the billing plan. */
  max_chunks: number | null;
  /** Found by the caller, such as a missing capability of the destination. */
  blockers: readonly PlanNotice[];
}

export interface CustomRunPlan extends Estimate {
  decision: 'single_run' | 'split_runs' | 'nothing_to_do' | 'blocked';
  chunks: PlannedChunk[];
  total_chunks: number;
  runnable_chunks: number;
  skipped_chunks: number;
  warnings: PlanNotice[];
  blockers: PlanNotice[];
  requires_confirmation: boolean;
}

/** Decides what a custom run consists of. Pure: the same input, the same plan. */
export function planCustomRun(input: PlannerInput): CustomRunPlan {
  const { parameters, streams, credits_remaining } = input;
  const windowed = isWindowed(parameters);
  const moved = windowed ? streams.filter((one) => one.supports_date_window) : streams;
  const chunks = spansOf(parameters).map((span, index) => planChunk(input, { span, index, moved }));
  const runnable = chunks.filter((chunk) => chunk.action === 'run');
  const estimate = sumEstimates(runnable);
  const blockers = [...input.blockers, ...blockersOf(input, { chunks: chunks.length, moved: moved.length })];
  const expensive = credits_remaining !== null && (estimate.estimated_credits ?? 0) > credits_remaining / 2;
  return {
    decision: decide(blockers.length, runnable.length),
    chunks,
    total_chunks: chunks.length,
    runnable_chunks: runnable.length,
    skipped_chunks: chunks.length - runnable.length,
    ...estimate,
    warnings: streams.flatMap((one) => one.warnings),
    blockers,
    requires_confirmation: parameters.clear_destination || runnable.length > CONFIRM_ABOVE_CHUNKS || expensive,
  };
}

/** The plan with what would refuse its launch. Pure. */
export const withBlockers = (plan: CustomRunPlan, blockers: readonly PlanNotice[]): CustomRunPlan =>
  blockers.length === 0 ? plan : { ...plan, decision: 'blocked', blockers: [...plan.blockers, ...blockers] };

export const isWindowed = (parameters: Pick<RunParameters, 'start_date' | 'end_date'>) =>
  parameters.start_date !== null || parameters.end_date !== null;

function decide(blockers: number, runnable: number): CustomRunPlan['decision'] {
  if (blockers > 0) return 'blocked';
  if (runnable === 0) return 'nothing_to_do';
  return runnable === 1 ? 'single_run' : 'split_runs';
}

/** The windows of the chunks, in the order in which they run. */
function spansOf({ start_date, end_date, split, order }: RunParameters): OpenSpan[] {
  if (start_date === null || end_date === null) return [{ start: start_date, end: end_date }];
  const spans = splitDays({ start: start_date, end: end_date }, split);
  return order === 'chronological' ? spans : spans.toReversed();
}

function planChunk(
  input: PlannerInput,
  { span, index, moved }: { span: OpenSpan; index: number; moved: readonly StreamPlan[] },
): PlannedChunk {
  const skip_reason = whySkip(input, span, moved);
  const days = span.start !== null && span.end !== null ? daysIn({ start: span.start, end: span.end }) : null;
  return {
    index,
    start_date: span.start,
    end_date: span.end,
    stream_names: moved.map(({ stream }) => (stream.namespace ? `${stream.namespace}.${stream.name}` : stream.name)),
    action: skip_reason ? 'skip' : 'run',
    skip_reason,
    ...estimateDays(input.pace, days, input.credits_per_row),
  };
}

function whySkip(input: PlannerInput, span: OpenSpan, moved: readonly StreamPlan[]): SkipReason | null {
  const { start, end } = span;
  if (start !== null && start > input.today) return 'empty_window';
  const ids = moved.map(({ stream }) => stream.id);
  const past = input.history.filter((one) => ids.includes(one.stream_id) && overlaps(one.window, span));
  if (isWindowed(input.parameters) && past.some((one) => one.outcome === 'live')) return 'in_flight';
  const { reprocess } = input.parameters;
  if (reprocess === 'all' || start === null || end === null) return null;
  const of = (id: string) => past.filter((one) => one.stream_id === id);
  if (reprocess === 'missing') return ids.every((id) => isLoaded(of(id), { start, end })) ? 'already_succeeded' : null;
  if (ids.some((id) => lastFailed(of(id), { start, end }))) return null;
  return past.length > 0 ? 'already_succeeded' : 'never_run';
}

const isLoaded = (past: PastChunk[], span: DaySpan) =>
  covers(
    past.filter((one) => one.outcome === 'succeeded').map((one) => one.window),
    span,
  );

/** Whether days of the window failed without a later success. */
const lastFailed = (past: PastChunk[], span: DaySpan) =>
  past.some((failed) => {
    if (failed.outcome !== 'failed') return false;
    const lost = { start: later(failed.window.start, span.start), end: earlier(failed.window.end, span.end) };
    const since = past.filter((one) => one.outcome === 'succeeded' && one.number > failed.number);
    return !covers(
      since.map((one) => one.window),
      lost,
    );
  });

const later = (a: string, b: string) => (a > b ? a : b);
const earlier = (a: string, b: string) => (a < b ? a : b);

function blockersOf(input: PlannerInput, planned: { chunks: number; moved: number }): PlanNotice[] {
  const blocker = (code: string, message: string): PlanNotice => ({ code, message, stream_name: null });
  const { streams, max_chunks } = input;
  const blockers: PlanNotice[] = [];
  if (streams.length === 0) blockers.push(blocker('no_streams_selected', 'No stream is selected'));
  else if (planned.moved === 0) {
    blockers.push(blocker('window_unsupported', 'None of these streams can be limited to a date window'));
  }
  if (planned.chunks > MAX_CHUNKS) {
    blockers.push(
      blocker(
        'too_many_chunks',
        `${planned.chunks} chunks exceed the limit of ${MAX_CHUNKS} per run. Choose larger chunks`,
      ),
    );
  } else if (max_chunks !== null && planned.chunks > max_chunks) {
    blockers.push(
      blocker(
        'max_custom_run_chunks',
        `${planned.chunks} chunks exceed the ${max_chunks} of the billing plan. Choose larger chunks`,
      ),
    );
  }
  return blockers;
}
