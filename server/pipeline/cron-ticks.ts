import { Cron } from 'croner';

/** More than any clock is ever set back. */
const MAX_REPEAT_MS = 180 * 60_000;
const EVERY_HOUR = /^\S+ +\*(\/1)? /;

/** @throws Error with a message about the invalid part of the expression. */
export const parseCron = (expression: string, timezone: string) =>
  new Cron(expression, { timezone, mode: '5-part', paused: true });

/**
 * The next `count` ticks after `after`, ascending. An expression that names hours follows the local clock: a time that
 * the clock skips fires at the end of the gap, a time that it repeats fires only the first time. An expression for every
 * hour follows elapsed time, through skipped and repeated hours alike.
 */
export function cronTicks(expression: string, timezone: string, from: { after: Date; count: number }): Date[] {
  const { after, count } = from;
  if (EVERY_HOUR.test(expression)) return parseCron(expression, timezone).nextRuns(count, after);
  // croner handles clock changes only for a single time of day: lists and steps are skipped or doubled.
  const wall = parseCron(expression, 'UTC');
  const ticks: Date[] = [];
  let last = after.getTime();
  let time: Date | null = new Date(wallTime(last, timezone) - MAX_REPEAT_MS);
  while (ticks.length < count) {
    time = wall.nextRun(time);
    if (!time) break;
    const instant = instantOf(time.getTime(), timezone);
    if (instant <= last) continue;
    ticks.push(new Date(instant));
    last = instant;
  }
  return ticks;
}

/** The local time of an instant, as if it were UTC. */
const wallTime = (instant: number, timezone: string): number =>
  zoned(instant, timezone).toPlainDateTime().toZonedDateTime('UTC').epochMilliseconds;

/** The first instant with this local time; if the clock skips it, the end of the gap. */
function instantOf(wall: number, timezone: string): number {
  const shown = zoned(wall, 'UTC').toPlainDateTime();
  const found = shown.toZonedDateTime(timezone);
  const gap = found.toPlainDateTime().equals(shown) ? null : found.getTimeZoneTransition('previous');
  return (gap ?? found).epochMilliseconds;
}

const zoned = (instant: number, timezone: string) =>
  Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
