import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  covers,
  dayIn,
  dayStart,
  overlaps,
  splitDays,
  SPLIT_UNITS,
  windowOf,
} from '../../server/pipeline/custom-run/windows.ts';
import { addDays, daysIn } from '../../server/platform/utc-days.ts';

// Clocks change at midnight in Cairo, Beirut and (once) São Paulo; Apia skipped a day; Lord Howe shifts by half an hour.
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/Sao_Paulo',
  'Africa/Cairo',
  'Asia/Beirut',
  'Pacific/Apia',
  'Asia/Kathmandu',
  'America/Havana',
  'Australia/Lord_Howe',
  'Africa/Casablanca',
];
const zone = fc.constantFrom(...ZONES);
const day = fc.integer({ min: 0, max: 15_000 }).map((offset) => addDays('1995-01-01', offset));
const span = fc
  .tuple(day, fc.integer({ min: 0, max: 1829 }))
  .map(([start, more]) => ({ start, end: addDays(start, more) }));
const split = fc.record({ unit: fc.constantFrom(...SPLIT_UNITS), size: fc.integer({ min: 1, max: 365 }) });

describe('chunks', () => {
  test('follow one another without gap or overlap from the first day to the last', () => {
    fc.assert(
      fc.property(span, split, (days, how) => {
        const chunks = splitDays(days, how);
        expect(chunks[0]?.start).toBe(days.start);
        expect(chunks.at(-1)?.end).toBe(days.end);
        for (const [index, chunk] of chunks.entries()) {
          expect(chunk.start <= chunk.end).toBe(true);
          if (index > 0) expect(chunk.start).toBe(addDays(chunks[index - 1]!.end, 1));
        }
      }),
      { numRuns: 300 },
    );
  });

  test('end exactly where the next begins, in every time zone', () => {
    fc.assert(
      fc.property(zone, span, split, (timezone, days, how) => {
        const windows = splitDays(days, how).map((chunk) => windowOf(chunk, { timezone, dates: false })!);
        const whole = windowOf(days, { timezone, dates: false })!;
        expect(windows[0]!.start).toBe(whole.start);
        expect(windows.at(-1)!.end).toBe(whole.end);
        for (let index = 1; index < windows.length; index += 1)
          expect(windows[index]!.start).toBe(windows[index - 1]!.end);
      }),
      { numRuns: 300 },
    );
  });

  test('contain exactly the instants of their days in the time zone', () => {
    const hour = fc.integer({ min: -30, max: 30 });
    fc.assert(
      fc.property(zone, day, hour, fc.integer({ min: 0, max: 3_599_999 }), (timezone, date, hours, millis) => {
        const at = new Date(Date.parse(dayStart(timezone, date)) + hours * 3_600_000 + millis);
        const own = dayIn(timezone, at);
        expect(own).toBe(new Intl.DateTimeFormat('sv', { timeZone: timezone, dateStyle: 'short' }).format(at));
        expect(dayStart(timezone, own) <= at.toISOString()).toBe(true);
        expect(at.toISOString() < dayStart(timezone, addDays(own, 1))).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    [
      '2024-01-01/2024-03-31',
      { unit: 'month', size: 1 },
      ['2024-01-01/2024-01-31', '2024-02-01/2024-02-29', '2024-03-01/2024-03-31'],
    ],
    [
      '2023-01-31/2023-04-15',
      { unit: 'month', size: 1 },
      ['2023-01-31/2023-02-27', '2023-02-28/2023-03-30', '2023-03-31/2023-04-15'],
    ],
    [
      '2024-02-27/2024-03-02',
      { unit: 'day', size: 2 },
      ['2024-02-27/2024-02-28', '2024-02-29/2024-03-01', '2024-03-02/2024-03-02'],
    ],
    ['2024-12-30/2025-01-07', { unit: 'week', size: 1 }, ['2024-12-30/2025-01-05', '2025-01-06/2025-01-07']],
    ['2024-11-30/2025-03-01', { unit: 'quarter', size: 1 }, ['2024-11-30/2025-02-27', '2025-02-28/2025-03-01']],
    ['2024-02-29/2025-03-01', { unit: 'year', size: 1 }, ['2024-02-29/2025-02-27', '2025-02-28/2025-03-01']],
    ['2024-01-01/2024-03-31', { unit: 'none', size: 7 }, ['2024-01-01/2024-03-31']],
  ] as const)('of %s by %j', (days, how, expected) => {
    const [start, end] = days.split('/') as [string, string];
    expect(splitDays({ start, end }, how).map((chunk) => `${chunk.start}/${chunk.end}`)).toEqual([...expected]);
  });
});

describe('a window', () => {
  test('uses instants where days do not begin at midnight UTC, across a clock change', () => {
    const days = { start: '2026-03-29', end: '2026-03-29' };
    expect(windowOf(days, { timezone: 'Europe/Berlin', dates: false })).toEqual({
      start: '2026-03-28T23:00:00.000Z',
      end: '2026-03-29T22:00:00.000Z',
    });
  });

  test('uses dates in UTC, and for a date cursor', () => {
    const days = { start: '2024-02-28', end: '2024-02-29' };
    const dates = { start: '2024-02-28', end: '2024-03-01' };
    expect(windowOf(days, { timezone: 'UTC', dates: false })).toEqual(dates);
    expect(windowOf(days, { timezone: 'Asia/Kathmandu', dates: true })).toEqual(dates);
  });

  test('can be open on either side, and is no window when open on both', () => {
    const how = { timezone: 'America/New_York', dates: false };
    expect(windowOf({ start: null, end: '2026-01-31' }, how)).toEqual({ start: null, end: '2026-02-01T05:00:00.000Z' });
    expect(windowOf({ start: '2026-07-01', end: null }, how)).toEqual({ start: '2026-07-01T04:00:00.000Z', end: null });
    expect(windowOf({ start: null, end: null }, how)).toBeNull();
  });
});

describe('spans', () => {
  test('overlap exactly when they share a day, and cover a range exactly when they contain each day', () => {
    const near = fc
      .tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 5 }))
      .map(([start, more]) => ({ start: addDays('2026-01-01', start), end: addDays('2026-01-01', start + more) }));
    const daysOf = (one: { start: string; end: string }) =>
      Array.from({ length: daysIn(one) }, (_, index) => addDays(one.start, index));
    fc.assert(
      fc.property(near, fc.array(near, { maxLength: 5 }), (one, others) => {
        const there = new Set(others.flatMap(daysOf));
        expect(covers(others, one)).toBe(daysOf(one).every((date) => there.has(date)));
        for (const other of others) {
          expect(overlaps(one, other)).toBe(daysOf(one).some((date) => daysOf(other).includes(date)));
        }
      }),
      { numRuns: 500 },
    );
    expect(overlaps({ start: null, end: null }, { start: '2026-01-01', end: '2026-01-01' })).toBe(true);
    expect(overlaps({ start: null, end: '2025-12-31' }, { start: '2026-01-01', end: null })).toBe(false);
  });
});
