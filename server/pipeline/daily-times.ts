import { cronTicks } from './cron-ticks.ts';

/** A day of 25 hours and another one: a moment of each time of day lies within it. */
const LOOKBACK_MS = 50 * 3_600_000;

/** A local time of day, `HH:MM`. */
export const TIME_OF_DAY = /^([01]\d|2[0-3]):[0-5]\d$/;

/** A time of day as a cron expression: daily moments and schedules handle clock changes alike. */
export function dailyCron(time: string): string {
  const [hour, minute] = time.split(':');
  return `${Number(minute)} ${Number(hour)} * * *`;
}

/** The first moment after `after` at which the clock of the zone shows this time of day. */
export function nextDaily(time: string, { timezone, after }: { timezone: string; after: Date }): Date {
  const [next] = cronTicks(dailyCron(time), { timezone, after, count: 1 });
  if (!next) throw new Error(`${time} is not a time of day`);
  return next;
}

/** The last such moment that is not after `until`. */
export function latestDaily(time: string, { timezone, until }: { timezone: string; until: Date }): Date {
  const after = new Date(until.getTime() - LOOKBACK_MS);
  return cronTicks(dailyCron(time), { timezone, after, count: 3 }).findLast((tick) => tick <= until) ?? after;
}
