import type { ReadRequest } from '../../contract/connector.ts';
import type { ReadProgress } from '../../kits/rest/progress.ts';
import type { Injection } from '../requests/build-request.ts';

/** One step of a read: in microseconds, or in counts. */
export interface Interval {
  start: number;
  /** The end that is requested. Services include it. */
  end: number;
  /** Start of the next interval; null: nothing is known about records after those that were seen. */
  next: number | null;
  is_last: boolean;
}

export interface ReadRange {
  /** Rows before it are not of this read; null: the service returns none of them. */
  floor: number | null;
  intervals: Iterable<Interval>;
}

/** The cursor of a stream, with its templates evaluated. Values have a `normal` form that sorts as text. */
export interface StreamCursor {
  readonly field: string;
  /** Whether the values are times, so that a read may have a window of them. */
  readonly isTime: boolean;
  /** The service returns the newest records first. */
  readonly isFeed: boolean;
  /** The class in Python that adds to requests what the cursor has. */
  readonly python: Record<string, unknown> | null;
  /** Of a record's value: null for no value; undefined for a value that is not one of the cursor. */
  normal(value: unknown): string | null | undefined;
  /** Of a stored value. @throws ConfigurationError when it is not one of the cursor */
  normalOf(text: string): string;
  /** The form that users see. */
  shown(normal: string): string;
  /** What templates see as the state. @param normal the highest cursor; null: there is no state */
  stateOf(normal: string | null): Record<string, unknown>;
  /** A position of an interval in the form of `normal`. */
  textOf(position: number): string;
  /** The position of a value in that form. */
  position(normal: string): number;
  /** The limit of a window in the form of `normal`. */
  limit(text: string): string;
  /** The interval as templates see it. */
  interval(interval: Interval): Record<string, unknown>;
  /** What it adds to requests. */
  injections(interval: Interval): Injection[];
  /** @param sliced whether requests contain the interval: otherwise a read has a single one */
  range(progress: ReadProgress, window: ReadRequest['window'], sliced: boolean): ReadRange;
}
