import { type DaySpan, daysIn } from '../../platform/utc-days.ts';

/** A successful run, as input of the estimates. */
export interface PastRun {
  rows_loaded: number;
  duration_ms: number;
  finished_at: string;
  /** The days that it loaded, inclusive; null: it continued from the cursor. */
  window: DaySpan | null;
}

export interface Pace {
  rows_per_day: number | null;
  ms_per_row: number | null;
}

export interface Estimate {
  estimated_rows: number | null;
  estimated_credits: number | null;
  estimated_duration_ms: number | null;
}

const DAY_MS = 86_400_000;

/**
 * Rows per day of data and time per row, from past runs, newest first. Unknown from runs that loaded nothing or lie less
 * than a day apart in all: zero rows within seconds are no rate. Pure.
 */
export function paceOf(runs: readonly PastRun[]): Pace {
  const windowed = runs.filter((run) => run.window !== null);
  const spans =
    windowed.length > 0
      ? windowed.map(windowedSpan)
      : runs.slice(0, -1).map((run, index) => between(run, runs[index + 1]!));
  const days = sum(spans.map((span) => span.days));
  const dated = sum(spans.map((span) => span.rows));
  const rows = sum(runs.map((run) => run.rows_loaded));
  return {
    rows_per_day: days >= 1 && dated > 0 ? dated / days : null,
    ms_per_row: rows > 0 ? sum(runs.map((run) => run.duration_ms)) / rows : null,
  };
}

const windowedSpan = (run: PastRun) => ({ rows: run.rows_loaded, days: daysIn(run.window!) });

/** A run by cursor loads the rows since the run before it. */
const between = (run: PastRun, before: PastRun) => ({
  rows: run.rows_loaded,
  days: Math.max(0, Date.parse(run.finished_at) - Date.parse(before.finished_at)) / DAY_MS,
});

const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);

/** The estimate for a number of days of data. Pure. */
export function estimateDays(pace: Pace, days: number | null, credits_per_row: number): Estimate {
  if (pace.rows_per_day === null || days === null) {
    return { estimated_rows: null, estimated_credits: null, estimated_duration_ms: null };
  }
  const rows = Math.round(pace.rows_per_day * days);
  return {
    estimated_rows: rows,
    estimated_credits: rows * credits_per_row,
    estimated_duration_ms: pace.ms_per_row === null ? null : Math.round(rows * pace.ms_per_row),
  };
}

/** The sum over chunks; null as soon as one of them is unknown. Pure. */
export function sumEstimates(estimates: readonly Estimate[]): Estimate {
  const total = (key: keyof Estimate) =>
    estimates.every((one) => one[key] !== null) ? sum(estimates.map((one) => one[key]!)) : null;
  return {
    estimated_rows: total('estimated_rows'),
    estimated_credits: total('estimated_credits'),
    estimated_duration_ms: total('estimated_duration_ms'),
  };
}
