import { type DaySpan, daysIn, eachDay, monthOf } from '../../platform/utc-days.ts';
import type { Usage, UsagePoint } from './schema.ts';

type Amounts = Omit<Usage, 'rows_total'>;
export type Granularity = 'day' | 'month';

const MAX_DAY_POINTS = 92;

export const granularityOf = (days: DaySpan): Granularity => (daysIn(days) > MAX_DAY_POINTS ? 'month' : 'day');

/** The sum of all amounts. */
export function total(amounts: readonly Amounts[]): Usage {
  const usage = { rows_total: 0, rows_free: 0, rows_paid: 0, credits_used: 0, credits_free: 0, bytes_loaded: 0 };
  for (const one of amounts) {
    usage.rows_total += one.rows_free + one.rows_paid;
    usage.rows_free += one.rows_free;
    usage.rows_paid += one.rows_paid;
    usage.credits_used += one.credits_used;
    usage.credits_free += one.credits_free;
    usage.bytes_loaded += one.bytes_loaded;
  }
  return usage;
}

/** One point per day, or per month for many days, with those without usage. */
export function seriesOf(days: DaySpan, amounts: readonly (Amounts & { day: string })[]): UsagePoint[] {
  const pointOf = granularityOf(days) === 'month' ? monthOf : (day: string) => day;
  const points = new Map<string, UsagePoint>();
  for (const day of eachDay(days)) {
    const date = pointOf(day);
    if (!points.has(date)) points.set(date, { date, rows_free: 0, rows_paid: 0, credits_used: 0 });
  }
  for (const one of amounts) {
    const point = points.get(pointOf(one.day));
    if (!point) continue;
    point.rows_free += one.rows_free;
    point.rows_paid += one.rows_paid;
    point.credits_used += one.credits_used;
  }
  return [...points.values()];
}

export const round = (value: number, decimals: number) => Math.round(value * 10 ** decimals) / 10 ** decimals;
