import type { ReadRequest } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import { mix } from './random.ts';

/** How the rows of a stream are spread over time: evenly, each shifted by up to half a step, in ascending order. */
export interface Span {
  /** Microseconds since 1970. */
  start: number;
  /** Microseconds between two rows. */
  step: number;
  rows: number;
  seed: number;
  end_date: string;
}

export function spanOf(given: { seed: number; rows: number; start_date: string; end_date: string }): Span {
  const start = microsOf(given.start_date);
  const end = microsOf(given.end_date);
  if (!(end > start)) {
    throw new ConfigurationError(
      'invalid_date_range',
      `The start date ${given.start_date} must be before ${given.end_date}`,
    );
  }
  return { start, step: (end - start) / given.rows, rows: given.rows, seed: given.seed, end_date: given.end_date };
}

/** Time of a row's last change, in microseconds since 1970. */
export const timeOfRow = (span: Span, index: number) =>
  Math.floor(span.start + index * span.step + (mix(index ^ span.seed) / 2 ** 33) * span.step);

/** The rows `[from, to)` that a request asks for: after its state and within its window. */
export function rowRange(request: ReadRequest, span: Span): { from: number; to: number } {
  const { state, window } = request;
  let from = 0;
  let to = span.rows;
  if (window?.start) from = firstAt(span, instant(window.start));
  if (window?.end) to = firstAt(span, instant(window.end));
  if (state) from = Math.max(from, resumeAt(span, state));
  return { from: Math.min(from, to), to };
}

/** Resumes by position if the state still fits; by time if a user has set the cursor or the rows have moved. */
function resumeAt(span: Span, state: NonNullable<ReadRequest['state']>): number {
  const next = state.next_row;
  if (typeof next === 'number' && next > 0 && state.cursor === timestampText(timeOfRow(span, next - 1))) return next;
  return state.cursor === null ? 0 : firstAt(span, instant(state.cursor) + 1);
}

function instant(text: string): number {
  const micros = microsOf(text);
  if (Number.isNaN(micros)) throw new ConfigurationError('invalid_cursor', `"${text}" is not a date or timestamp`);
  return micros;
}

function firstAt(span: Span, micros: number): number {
  let low = 0;
  let high = span.rows;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (timeOfRow(span, middle) < micros) low = middle + 1;
    else high = middle;
  }
  return low;
}
