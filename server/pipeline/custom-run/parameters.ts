import { createHash } from 'node:crypto';
import { badRequest } from '../../platform/errors.ts';
import { addDays, daysIn } from '../../platform/utc-days.ts';
import { MAX_RANGE_DAYS, type RunParameters } from './plan.ts';

type Absent<T> = { [Key in keyof T]?: T[Key] | null };

/**
 * Fills in the defaults of a custom run, and checks its window. Pure. `today` is in the time zone of the connection;
 * `earliest` is the start date of the connection, the default for a split without one.
 * @throws ApiError 400 `invalid_window`, `future_window`, `range_too_long` with `field`.
 */
export function completeParameters(
  given: Absent<RunParameters>,
  known: { today: string; earliest: string | null },
): RunParameters {
  const parameters: RunParameters = {
    start_date: given.start_date ?? null,
    end_date: given.end_date ?? null,
    stream_ids: given.stream_ids ?? null,
    stream_names: given.stream_names ?? null,
    mode: given.mode ?? 'backfill',
    split: given.split ?? { unit: 'none', size: 1 },
    order: given.order ?? 'chronological',
    max_parallel_runs: given.max_parallel_runs ?? 1,
    reprocess: given.reprocess ?? 'all',
    update_cursor: given.update_cursor ?? false,
    clear_destination: given.clear_destination ?? false,
    on_chunk_failure: given.on_chunk_failure ?? 'continue',
    reason: given.reason ?? null,
  };
  if (parameters.start_date !== null) parameters.end_date ??= known.today;
  else if (parameters.end_date !== null) parameters.start_date = known.earliest;
  checkWindow(parameters, known.today);
  return parameters;
}

/** As a plan or a run keeps what `completeParameters` returned. */
export const storedParameters = (stored: Record<string, unknown>) => stored as unknown as RunParameters;

function checkWindow({ start_date, end_date, split, mode }: RunParameters, today: string): void {
  const refuse = (code: string, field: string, message: string) => badRequest(code, message, { field });
  if (mode === 'full_refresh' && end_date !== null) {
    throw refuse('invalid_window', 'start_date', 'A full refresh reads all rows: remove the dates');
  }
  if (split.unit !== 'none' && start_date === null) {
    throw refuse('invalid_window', 'start_date', 'A split needs a start date');
  }
  if (end_date !== null && end_date > addDays(today, MAX_RANGE_DAYS)) {
    throw refuse('future_window', 'end_date', `${end_date} is too far in the future`);
  }
  if (start_date === null || end_date === null) return;
  if (start_date > today) throw refuse('future_window', 'start_date', `${start_date} is in the future`);
  if (start_date > end_date) throw refuse('invalid_window', 'end_date', `${end_date} is before ${start_date}`);
  if (daysIn({ start: start_date, end: end_date }) > MAX_RANGE_DAYS) {
    throw refuse('range_too_long', 'end_date', `The window is longer than ${MAX_RANGE_DAYS} days`);
  }
}

/** A SHA-256 of the parameters and the revision of the connection, so that a launch can name the previewed plan. */
export function planHash(parameters: RunParameters, connection: { id: string; revision: number }): string {
  const sorted = Object.entries(parameters).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([connection.id, connection.revision, sorted]))
    .digest('hex');
}
