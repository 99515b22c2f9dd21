import { Cron } from 'croner';

/** A clock is set back by less than this. */
const LONGEST_REPEAT = 180 * 60_000;
const EVERY_HOUR = /^\S+ +\*(\/1)? /;

/** @throws Error that says what is wrong with the expression. */
export const parseCron = (expression: string, timezone: string) =>
  new Cron(expression, { timezone, mode: '5-part', paused: true });

/**
 * The next `count` ticks after `after`, ascending. What names its hours goes by the clock on the wall: a time that the
 * clock skips fires at the next valid instant, one that it repeats fires the first time only. What runs every hour goes
 * by the time that passes, through skipped and repeated hours alike.
 */
export function cronTicks(expression: string, timezone: string, from: { after: Date; count: number }): Date[] {
  const { after, count } = from;
  if (EVERY_HOUR.test(expression)) return parseCron(expression, timezone).nextRuns(count, after);
  // croner heeds the clock's changes for a single time of day only: lists and steps it leaves out or doubles.
  const wall = parseCron(expression, 'UTC');
  const ticks: Date[] = [];
  let last = after.getTime();
  let time: Date | null = new Date(wallTime(last, timezone) - LONGEST_REPEAT);
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

/** What the clock on the wall shows, as if it were UTC. */
const wallTime = (instant: number, timezone: string): number =>
  zoned(instant, timezone).toPlainDateTime().toZonedDateTime('UTC').epochMilliseconds;

/** When the clock on the wall shows this for the first time; where it never does, the end of the gap. */
function instantOf(wall: number, timezone: string): number {
  const shown = zoned(wall, 'UTC').toPlainDateTime();
  const found = shown.toZonedDateTime(timezone);
  const gap = found.toPlainDateTime().equals(shown) ? null : found.getTimeZoneTransition('previous');
  return (gap ?? found).epochMilliseconds;
}

const zoned = (instant: number, timezone: string) =>
  Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
