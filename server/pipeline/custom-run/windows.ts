import { addDays, addMonths, type DaySpan } from '../../platform/utc-days.ts';

export const SPLIT_UNITS = ['none', 'day', 'week', 'month', 'quarter', 'year'] as const;
export type SplitUnit = (typeof SPLIT_UNITS)[number];

export interface Split {
  unit: SplitUnit;
  size: number;
}

const DAYS = { day: 1, week: 7 } as const;
const MONTHS = { month: 1, quarter: 3, year: 12 } as const;

/** Cuts a span of calendar days into spans of so many units, counted from its first day; the last may be shorter. */
export function splitDays(span: DaySpan, { unit, size }: Split): DaySpan[] {
  if (unit === 'none') return [span];
  const chunks: DaySpan[] = [];
  // Each start is counted from the first one: from the one before, a month of 28 days would shift all that follow.
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

/** The calendar day of an instant, as clocks in the zone show it. */
export const dayIn = (timezone: string, at: Date): string =>
  Temporal.Instant.fromEpochMilliseconds(at.getTime()).toZonedDateTimeISO(timezone).toPlainDate().toString();

/** The first instant of a calendar day in a zone, ISO in UTC: not always midnight, where clocks change at midnight. */
export function dayStart(timezone: string, day: string): string {
  const { epochMilliseconds } = Temporal.PlainDate.from(day).toZonedDateTime(timezone);
  return new Date(epochMilliseconds).toISOString();
}

/** Calendar days, both inclusive; null: no limit on that side. */
export interface OpenSpan {
  start: string | null;
  end: string | null;
}

/**
 * The half-open window `[start, end)` of inclusive calendar days of a zone, as a source is asked for it: instants in
 * UTC, or dates where days begin at midnight UTC or the cursor is a date itself. Null: no limit at all.
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

/** Whether two spans have a day in common; a span without limits has every day. */
export const overlaps = (a: OpenSpan, b: OpenSpan): boolean =>
  (a.start === null || b.end === null || a.start <= b.end) && (b.start === null || a.end === null || b.start <= a.end);

/** Whether every day of `span` is in one of the others. */
export function covers(others: readonly DaySpan[], span: DaySpan): boolean {
  let missing = span.start;
  for (const other of others.toSorted((a, b) => (a.start < b.start ? -1 : 1))) {
    if (other.start > missing) return false;
    if (other.end >= missing) missing = addDays(other.end, 1);
    if (missing > span.end) return true;
  }
  return false;
}
