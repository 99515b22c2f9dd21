import { describe, expect, test } from 'bun:test';
import {
  checkSchedule,
  describeSchedule,
  MANUAL,
  nextRunAt,
  nextTicks,
  type Schedule,
} from '../../server/pipeline/schedule.ts';

const cron = (cron_expression: string, timezone = 'UTC'): Schedule => ({
  ...MANUAL,
  type: 'cron',
  cron_expression,
  timezone,
});
const every = (interval_minutes: number, rest: Partial<Schedule> = {}): Schedule => ({
  ...MANUAL,
  type: 'interval',
  interval_minutes,
  ...rest,
});
const ticks = (schedule: Schedule, after: string, options: { anchor?: string; count?: number } = {}) =>
  nextTicks(schedule, { anchor: new Date(options.anchor ?? after), after: new Date(after) }, options.count ?? 3).map(
    (tick) => tick.toISOString(),
  );

describe('a cron schedule', () => {
  test('fires a time skipped by the clock at the next valid instant', () => {
    expect(ticks(cron('30 2 * * *', 'America/New_York'), '2026-03-07T12:00:00Z')).toEqual([
      '2026-03-08T07:00:00.000Z',
      '2026-03-09T06:30:00.000Z',
      '2026-03-10T06:30:00.000Z',
    ]);
  });

  test('fires a time repeated by the clock once', () => {
    expect(ticks(cron('30 1 * * *', 'America/New_York'), '2026-10-31T12:00:00Z')).toEqual([
      '2026-11-01T05:30:00.000Z',
      '2026-11-02T06:30:00.000Z',
      '2026-11-03T06:30:00.000Z',
    ]);
  });

  test.each([
    // Several times within the skipped hour fire once, when it is over.
    ['15,45 2 * * *', 'Europe/Berlin', '2027-03-27T12:00Z', '03-28T01:00 03-29T00:15 03-29T00:45'],
    ['*/30 2 * * *', 'Europe/Berlin', '2027-03-27T12:00Z', '03-28T01:00 03-29T00:00 03-29T00:30'],
    ['0 2,3 * * *', 'Europe/Berlin', '2027-03-27T12:00Z', '03-28T01:00 03-29T00:00 03-29T01:00'],
    ['15,45 2 * * *', 'Europe/Berlin', '2027-10-30T12:00Z', '10-31T00:15 10-31T00:45 11-01T01:15'],
    ['15,45 2 * * *', 'Europe/Berlin', '2027-10-31T00:50Z', '11-01T01:15 11-01T01:45 11-02T01:15'],
    ['30 1,2,3 * * *', 'Europe/Berlin', '2027-10-30T23:45Z', '10-31T00:30 10-31T02:30 11-01T00:30'],
    ['0 */2 * * *', 'Europe/Berlin', '2027-10-30T22:00Z', '10-31T00:00 10-31T03:00 10-31T05:00'],
    // The clock repeats half an hour here, between the offsets 11:00 and 10:30.
    ['15,45 1 * * *', 'Australia/Lord_Howe', '2027-04-03T12:00Z', '04-03T14:15 04-03T14:45 04-04T14:45'],
    ['20,50 2 * * *', 'Australia/Lord_Howe', '2027-10-02T12:00Z', '10-02T15:30 10-02T15:50 10-03T15:20'],
    // Hourly expressions fire every hour, whatever the clock does.
    ['30 * * * *', 'Europe/Berlin', '2027-10-31T00:00Z', '10-31T00:30 10-31T01:30 10-31T02:30'],
    ['59 23 31 12 *', 'Pacific/Kiritimati', '2027-12-31T09:58Z', '12-31T09:59 12-31T09:59 12-31T09:59'],
    ['0 0 29 2 *', 'Asia/Kolkata', '2027-01-01T00:00Z', '02-28T18:30 02-28T18:30 02-28T18:30'],
  ])('%s in %s after %s', (expression, timezone, after, expected) => {
    const found = ticks(cron(expression, timezone), after).map((tick) => tick.slice(5, 16));
    expect(found.join(' ')).toBe(expected);
  });

  test('matches day of month or day of week, as in Unix cron', () => {
    expect(ticks(cron('0 0 13 * 5'), '2026-11-10T00:00:00Z', { count: 2 })).toEqual([
      '2026-11-13T00:00:00.000Z',
      '2026-11-20T00:00:00.000Z',
    ]);
  });

  test('is refused when it is not valid Unix cron or never fires', () => {
    const refused = ['* * * * * *', '@daily', '0 0 L * *', '0 0 * * 5#2', '0 0 ? * *', '60 * * * *', '0 0 31 2 *', ''];
    for (const expression of refused) {
      expect(() => checkSchedule(cron(expression), new Date()), expression).toThrow();
    }
    for (const expression of ['*/15 * * * *', '0 9-17/2 * JUL MON-FRI', '5,35 0 1 1 0']) {
      expect(() => checkSchedule(cron(expression), new Date()), expression).not.toThrow();
    }
  });
});

describe('an interval schedule', () => {
  test('stays on the grid of its anchor, however late it is evaluated', () => {
    expect(ticks(every(60), '2026-01-01T12:34:56Z', { anchor: '2026-01-01T00:10:00Z' })).toEqual([
      '2026-01-01T13:10:00.000Z',
      '2026-01-01T14:10:00.000Z',
      '2026-01-01T15:10:00.000Z',
    ]);
  });

  test('fires strictly after the given instant', () => {
    const [first] = ticks(every(15), '2026-01-01T00:15:00Z', { anchor: '2026-01-01T00:00:00Z' });
    expect(first).toBe('2026-01-01T00:30:00.000Z');
  });

  test('with a time of day keeps that time across a clock change', () => {
    const daily = every(1440, { time_of_day: '06:30', timezone: 'Europe/Berlin' });
    expect(ticks(daily, '2026-03-27T12:00:00Z', { count: 2 })).toEqual([
      '2026-03-28T05:30:00.000Z',
      '2026-03-29T04:30:00.000Z',
    ]);
  });
});

test('a manual schedule never fires', () => {
  expect(nextRunAt(MANUAL, { anchor: new Date(), after: new Date() })).toBeNull();
});

test('a schedule has a description in plain words', () => {
  expect(describeSchedule(every(15))).toBe('Every 15 minutes');
  expect(describeSchedule(every(60))).toBe('Every hour');
  expect(describeSchedule(every(720))).toBe('Every 12 hours');
  expect(describeSchedule(every(1440, { time_of_day: '06:30', timezone: 'Europe/Berlin' }))).toBe(
    'Every day at 06:30 (Europe/Berlin)',
  );
  expect(describeSchedule(cron('30 6 * * 1'))).toBe('At 06:30, only on Monday (UTC)');
});
