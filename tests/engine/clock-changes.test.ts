import { describe, expect, test } from 'bun:test';
import { MANUAL, nextTicks } from '../../server/pipeline/schedule.ts';

/**
 * Schedules compared with an independent calculation: clock changes found with Intl alone, and every
 * minute around each of them matched against the five fields.
 */
const ZONES = [
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'Europe/Berlin',
  'Europe/London',
  'Europe/Helsinki',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Australia/Lord_Howe',
  'Antarctica/Troll',
];
const NAMED_HOURS = [
  '0 0 * * *',
  '0 1 * * *',
  '0 2 * * *',
  '30 2 * * *',
  '0 3 * * *',
  '0 2 * * 0',
  '*/20 0-3 * * *',
  '5,35 */2 * * 0,5,6',
  '59 23 * * *',
];
const EVERY_HOUR = ['0 * * * *', '7,38 */1 * * 0,1,5,6'];
const YEARLY = ['0 2 14 3 *', '30 2 28 3 0', '0 0 30 4 *', '30 1 1 11 *'];

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Compared before and after a change. */
const AROUND = 14 * HOUR;
const START = Date.UTC(2027, 0, 1);
const END = Date.UTC(2047, 0, 1);

interface Change {
  at: number;
  before: number;
  after: number;
}

function offsets(timezone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  return (instant) => {
    const part = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(part.year!, part.month! - 1, part.day, part.hour, part.minute) - instant;
  };
}

/** No zone changes its clock twice within a week. */
function changesOf(timezone: string): Change[] {
  const offsetAt = offsets(timezone);
  const changes: Change[] = [];
  const week = 7 * 24 * HOUR;
  for (let from = START; from < END; from += week) {
    let [low, high] = [from, from + week];
    const [before, after] = [offsetAt(low), offsetAt(high)];
    if (before === after) continue;
    while (high - low > MINUTE) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE) * MINUTE;
      if (offsetAt(middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ at: high, before, after });
  }
  return changes;
}

const numbers = (field: string, [low, high]: readonly [number, number]) =>
  new Set(
    field.split(',').flatMap((part) => {
      const [range = '', step = '1'] = part.split('/');
      const [from, to] = range === '*' ? [low, high] : range.split('-').map(Number);
      const last = to ?? from!;
      return Array.from({ length: Math.floor((last - from!) / Number(step)) + 1 }, (_, n) => from! + n * Number(step));
    }),
  );
const RANGES = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const;

/** Whether a local time, given as if it were UTC, matches the expression. */
function matcher(expression: string): (local: number) => boolean {
  const fields = expression.split(' ');
  const [minutes, hours, days, months, weekdays] = RANGES.map((range, index) => numbers(fields[index]!, range));
  const either = fields[2] !== '*' && fields[4] !== '*';
  return (local) => {
    if (!minutes!.has((local / MINUTE) % 60) || !hours!.has(Math.floor(local / HOUR) % 24)) return false;
    const time = new Date(local);
    if (!months!.has(time.getUTCMonth() + 1)) return false;
    const [day, weekday] = [days!.has(time.getUTCDate()), weekdays!.has(time.getUTCDay())];
    return either ? day || weekday : day && weekday;
  };
}

/** Tries every minute of a period with at most one change. */
function expectedTicks(
  expression: string,
  { at, before, after }: Change,
  [from, to]: readonly [number, number],
): number[] {
  const matches = matcher(expression);
  const hourly = EVERY_HOUR.includes(expression);
  const gap = Math.max(0, after - before);
  const skipped = Array.from({ length: gap / MINUTE }, (_, n) => at + before + n * MINUTE);
  const isDue = (instant: number) => {
    const local = instant + (instant < at ? before : after);
    const repeated = instant >= at && local < at + before;
    if (matches(local) && (hourly || !repeated)) return true;
    if (hourly) return instant >= at && instant < at + gap && matches(instant + before);
    return instant === at && skipped.some(matches);
  };
  const ticks: number[] = [];
  for (let instant = from + MINUTE; instant <= to; instant += MINUTE) if (isDue(instant)) ticks.push(instant);
  return ticks;
}

function scheduled(expression: string, timezone: string, [from, to]: readonly [number, number], count: number) {
  const schedule = { ...MANUAL, type: 'cron' as const, cron_expression: expression, timezone };
  const ticks = nextTicks(schedule, { anchor: new Date(from), after: new Date(from) }, count);
  return ticks.map((tick) => tick.getTime()).filter((tick) => tick <= to);
}

const iso = (ticks: number[]) => ticks.map((tick) => new Date(tick).toISOString()).join(' ');

describe.each(ZONES)('schedules in %s over twenty years', (timezone) => {
  const changes = changesOf(timezone);

  test('fire each due time once around every change of the clock', () => {
    expect(changes.length).toBeGreaterThan(30);
    for (const change of changes) {
      for (const expression of [...NAMED_HOURS, ...EVERY_HOUR]) {
        const width = EVERY_HOUR.includes(expression) ? AROUND / 4 : AROUND;
        const around = [change.at - width, change.at + width] as const;
        const expected = expectedTicks(expression, change, around);
        const found = scheduled(expression, timezone, around, expected.length + 1);
        expect(`${expression}: ${iso(found)}`).toBe(`${expression}: ${iso(expected)}`);
      }
    }
  });

  test('fire when they are next computed from within a change', () => {
    for (const change of changes.slice(0, 4)) {
      for (const minutes of [-30, -1, 0, 1, 29, 59]) {
        const around = [change.at + minutes * MINUTE, change.at + AROUND] as const;
        for (const expression of [...NAMED_HOURS, ...EVERY_HOUR]) {
          const [expected] = expectedTicks(expression, change, around);
          if (expected === undefined) continue;
          expect(iso(scheduled(expression, timezone, around, 1)), `${expression} ${minutes}`).toBe(iso([expected]));
        }
      }
    }
  });

  test('fire once a year on a date', () => {
    for (const expression of YEARLY) {
      const matches = matcher(expression);
      const expected: number[] = [];
      const offsetAt = offsets(timezone);
      for (let local = START; local < END; local += 30 * MINUTE) {
        if (!matches(local)) continue;
        const gap = changes.find(({ at, before, after }) => local >= at + before && local < at + after);
        // The earlier one, if the clock shows this time twice.
        const shown = changes.flatMap(({ before, after }) => [before, after]).toSorted((a, b) => b - a);
        const instant = shown.map((offset) => local - offset).find((one) => one + offsetAt(one) === local);
        expected.push(gap?.at ?? instant!);
      }
      const range = [START - 24 * HOUR, END - 24 * HOUR] as const;
      const found = scheduled(expression, timezone, range, expected.length);
      expect(`${expression}: ${iso(found)}`).toBe(`${expression}: ${iso(expected)}`);
    }
  });
});
