import { z } from 'zod';
import { badRequest } from '../platform/errors.ts';
import {
  addDays,
  addMonths,
  billingPeriod,
  billingPeriodBefore,
  daysIn,
  type DaySpan,
  monthOf,
} from '../platform/utc-days.ts';
import { day } from './wire-types.ts';

export const AggregateUsageDateRange = z
  .enum([
    'current_billing_period',
    'previous_billing_period',
    'today',
    'last_7_days',
    'last_30_days',
    'last_90_days',
    'month_to_date',
    'last_month',
    'last_6_months',
    'last_12_months',
    'year_to_date',
    'custom',
  ])
  .meta({ id: 'AggregateUsageDateRange' });

/** Query parameters of the usage window, for billing reads and for creates, which check plan limits. */
export const UsageRange = z.object({
  date_range: AggregateUsageDateRange.default('current_billing_period').meta({
    description: 'Range of UTC days over which usage is counted.',
  }),
  start_date: day().nullish().meta({ description: 'First day; only with `date_range=custom`.' }),
  end_date: day().nullish().meta({ description: 'Last day, inclusive; only with `date_range=custom`.' }),
});
export type UsageRange = z.infer<typeof UsageRange>;

/** The range in the input of a create, whose body may have keys of the same names (`query_key: 'usage'`). */
export interface UsageInput {
  usage: UsageRange;
}

const MAX_DAYS = 400;

/**
 * Checks what the shape alone cannot say: dates go with `custom` and only with it, in order, over 400 days at most.
 * @throws ApiError 400 `date_range_conflict`, `missing_dates`, `inverted_range` or `range_too_long`, with `field`.
 */
export function checkUsageRange(range: UsageRange): void {
  const { date_range, start_date, end_date } = range;
  if (date_range !== 'custom') {
    if (start_date == null && end_date == null) return;
    throw badRequest('date_range_conflict', 'start_date and end_date require date_range=custom', {
      field: start_date == null ? 'end_date' : 'start_date',
    });
  }
  if (start_date == null || end_date == null) {
    throw badRequest('missing_dates', 'date_range=custom requires start_date and end_date', {
      field: start_date == null ? 'start_date' : 'end_date',
    });
  }
  checkDays({ start: start_date, end: end_date });
}

/** @throws ApiError 400 `inverted_range` or `range_too_long`, with `field`. */
export function checkDays(days: DaySpan): void {
  if (days.end < days.start) throw badRequest('inverted_range', 'end_date is before start_date', { field: 'end_date' });
  if (daysIn(days) > MAX_DAYS) {
    throw badRequest('range_too_long', `The range is longer than ${MAX_DAYS} days`, { field: 'end_date' });
  }
}

/**
 * The days of a range, seen from `today`. The last n days and months end with today; the calendar month and the billing
 * period end with their last day, be it past or to come.
 * @throws ApiError 400 as `checkUsageRange`.
 */
export function daysOf(range: UsageRange, { today, anchor }: { today: string; anchor: string }): DaySpan {
  checkUsageRange(range);
  const since = (start: string) => ({ start, end: today });
  switch (range.date_range) {
    case 'current_billing_period':
      return billingPeriod(anchor, today);
    case 'previous_billing_period':
      return billingPeriodBefore(anchor, today);
    case 'today':
      return since(today);
    case 'last_7_days':
      return since(addDays(today, -6));
    case 'last_30_days':
      return since(addDays(today, -29));
    case 'last_90_days':
      return since(addDays(today, -89));
    case 'month_to_date':
      return since(monthOf(today));
    case 'last_month':
      return { start: addMonths(monthOf(today), -1), end: addDays(monthOf(today), -1) };
    case 'last_6_months':
      return since(addDays(addMonths(today, -6), 1));
    case 'last_12_months':
      return since(addDays(addMonths(today, -12), 1));
    case 'year_to_date':
      return since(`${today.slice(0, 4)}-01-01`);
    case 'custom':
      return { start: range.start_date ?? today, end: range.end_date ?? today };
  }
}
