import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { MANUAL, shortestGapMinutes } from '../../server/pipeline/schedule.ts';
import { PLANS } from '../../server/pipeline/billing-plans.ts';
import {
  addDays,
  addMonths,
  billingPeriod,
  billingPeriodBefore,
  daysIn,
  utcDay,
} from '../../server/platform/utc-days.ts';

describe('billing periods', () => {
  test.each([
    ['2026-01-10', '2026-03-15', '2026-03-10', '2026-04-09'],
    ['2026-01-10', '2026-03-10', '2026-03-10', '2026-04-09'],
    ['2026-01-10', '2026-03-09', '2026-02-10', '2026-03-09'],
    ['2026-01-01', '2026-12-31', '2026-12-01', '2026-12-31'],
    ['2026-01-31', '2026-02-27', '2026-01-31', '2026-02-27'],
    ['2026-01-31', '2026-02-28', '2026-02-28', '2026-03-30'],
    ['2026-01-31', '2024-02-29', '2024-02-29', '2024-03-30'],
    ['2026-01-15', '2026-01-01', '2025-12-15', '2026-01-14'],
  ])('anchored on %s, the period of %s is %s to %s', (anchor, day, start, end) => {
    expect(billingPeriod(anchor, day)).toEqual({ start, end });
  });

  test('follow one another without gap or overlap, 28 to 31 days long, for every anchor', () => {
    const day = fc.integer({ min: 0, max: 20_000 }).map((offset) => utcDay(new Date(offset * 86_400_000)));
    fc.assert(
      fc.property(day, day, (anchor, of) => {
        const period = billingPeriod(anchor, of);
        expect(period.start <= of && of <= period.end).toBe(true);
        expect(daysIn(period)).toBeWithin(28, 32);
        expect(billingPeriod(anchor, period.start)).toEqual(period);
        expect(billingPeriod(anchor, period.end)).toEqual(period);
        expect(addDays(billingPeriodBefore(anchor, of).end, 1)).toBe(period.start);
      }),
      { numRuns: 2000 },
    );
  });

  test('end on the last day of a shorter month', () => {
    expect([1, 2, 12, -1, -11].map((count) => addMonths('2026-01-31', count))).toEqual([
      '2026-02-28',
      '2026-03-31',
      '2027-01-31',
      '2025-12-31',
      '2025-02-28',
    ]);
  });
});

describe('the shortest time between two ticks', () => {
  const cron = (cron_expression: string) => ({ ...MANUAL, type: 'cron' as const, cron_expression });
  test.each([
    ['* * * * *', 1],
    ['*/15 * * * *', 15],
    ['*/7 * * * *', 4],
    ['0,59 * * * *', 1],
    ['0 0,23 * * *', 60],
    ['30 4 * * *', 1440],
    ['0,1 3 1 1 *', 1],
    ['0 9 * * 1-5', 1440],
  ])('of %s is %d minutes', (expression, minutes) => {
    expect(shortestGapMinutes(cron(expression), new Date('2026-01-05T12:34:00Z'))).toBe(minutes);
  });

  test('of an interval is the interval; a manual schedule has none', () => {
    expect(shortestGapMinutes({ ...MANUAL, type: 'interval', interval_minutes: 30 }, new Date())).toBe(30);
    expect(shortestGapMinutes(MANUAL, new Date())).toBeNull();
  });
});

test('a larger plan allows at least as much as a smaller one', () => {
  const [, ...limited] = PLANS;
  for (const [index, plan] of limited.entries()) {
    const larger = limited[index + 1];
    if (!larger) continue;
    for (const key of ['max_connections', 'max_sources', 'max_users', 'max_custom_run_chunks'] as const) {
      expect(larger.limits[key] ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(plan.limits[key] ?? 0);
    }
    expect(plan.features.every((feature) => larger.features.includes(feature))).toBe(true);
  }
});
