import { addDays, addMonths, type DaySpan } from '../../platform/utc-days.ts';

export const SPLIT_UNITS = ['none', 'day', 'week', 'month', 'quarter', 'year'] as const;
export type SplitUnit = (typeof SPLIT_UNITS)[number];

export interface Split {
  unit: SplitUnit;
  size: number;
}

const DAYS = { day: 1, week: 7 } as const;
const MONTHS = { month: 1, quarter: 3, year: 12 } as const;

/** Splits calendar days into spans of `size` units, counted from the first day. The last span may be shorter. */
export function splitDays(span: DaySpan, { unit, size }: Split): DaySpan[] {
  if (unit === 'none') return [span];
  const chunks: DaySpan[] = [];
  // Counted from the first day, not from the previous start: February would shift all later month starts to the 28th.
  for (let index = 0, start = span.start; start <= span.end; index += 1) {
    const next = startOf(span.start, unit, (index + 1) * size);
    const end = addDays(next, -1);
    chunks.push({ start, end: end < span.end ? end : span.end });
    start = next;
  }
  return chunks;
}

const startOf = (first: string, unit: Exclude<SplitUnit, 'none'>, units: number) =>
  unit === 'day' || unit === 'week' ? addDays(first, units * DAYS[unit]) : addMonths(first, units * MONTHS[unit]);

/** The calendar day of an instant in a time zone. */
export const dayIn = (timezone: string, at: Date): string =>
  Temporal.Instant.fromEpochMilliseconds(at.getTime()).toZonedDateTimeISO(timezone).toPlainDate().toString();

/** The first instant of a calendar day in a time zone, ISO in UTC. Not midnight if the clock skips it. */
export function dayStart(timezone: string, day: string): string {
  const { epochMilliseconds } = Temporal.PlainDate.from(day).toZonedDateTime(timezone);
  return new Date(epochMilliseconds).toISOString();
}

/** Calendar days, both inclusive; null: unlimited on that side. */
export interface OpenSpan {
  start: string | null;
  end: string | null;
}

/**
 * The half-open window `[start, end)` of inclusive calendar days in a time zone, as sources take it: instants in UTC, or
 * dates if the zone is UTC or the cursor is a date. Null: unlimited.
 */
export function windowOf(days: OpenSpan, how: { timezone: string; dates: boolean }): OpenSpan | null {
  if (days.start === null && days.end === null) return null;
  const plain = how.dates || how.timezone === 'UTC';
  const limit = (day: string) => (plain ? day : dayStart(how.timezone, day));
  return {
    start: days.start === null ? null : limit(days.start),
    end: days.end === null ? null : limit(addDays(days.end, 1)),
  };
}

/** Whether two spans share a day. */
export const overlaps = (a: OpenSpan, b: OpenSpan): boolean =>
  (a.start === null || b.end === null || a.start <= b.end) && (b.start === null || a.end === null || b.start <= a.end);

/** Whether the others contain every day of `span`. */
export function covers(others: readonly DaySpan[], span: DaySpan): boolean {
  let missing = span.start;
  for (const other of others.toSorted((a, b) => (a.start < b.start ? -1 : 1))) {
    if (other.start > missing) return false;
    if (other.end >= missing) missing = addDays(other.end, 1);
    if (missing > span.end) return true;
  }
  return false;
}
