import { Cron } from 'croner';

/** More than any clock is ever set back or forward. */
const MAX_CHANGE_MS = 180 * 60_000;
const EVERY_HOUR = /^\S+ +\*(\/1)? /;

/** Parses for a clock that never changes. @throws Error with a message about the invalid part of the expression. */
export const parseCron = (expression: string) => new Cron(expression, { utcOffset: 0, mode: '5-part', paused: true });

interface Wanted {
  timezone: string;
  after: Date;
  count: number;
}

/**
 * The next `count` ticks after `after`, ascending. An expression that names hours follows the local clock: a time that
 * the clock skips fires at the end of the gap, a time that it repeats fires only the first time. An expression for every
 * hour follows elapsed time, through skipped and repeated hours alike.
 *
 * croner computes local times only: with a time zone it skips or doubles lists and steps when the clock changes.
 */
export function cronTicks(expression: string, wanted: Wanted): Date[] {
  const wall = parseCron(expression);
  const instants = EVERY_HOUR.test(expression) ? elapsedTicks(wall, wanted) : localTicks(wall, wanted);
  return instants.map((instant) => new Date(instant));
}

function localTicks(wall: Cron, { timezone, after, count }: Wanted): number[] {
  const ticks: number[] = [];
  let last = after.getTime();
  let time: Date | null = new Date(last + offsetAt(last, timezone) - MAX_CHANGE_MS);
  while (ticks.length < count) {
    time = wall.nextRun(time);
    if (!time) break;
    const instant = instantOf(time.getTime(), timezone);
    if (instant <= last) continue;
    ticks.push(instant);
    last = instant;
  }
  return ticks;
}

/** Goes from one change of the clock to the next. Times that a change skips fire by the offset that applied before it. */
function elapsedTicks(wall: Cron, { timezone, after, count }: Wanted): number[] {
  const found = new Set<number>();
  const ascending = () => [...found].toSorted((a, b) => a - b).slice(0, count);
  const last = after.getTime();
  const justChanged = offsetAt(last - MAX_CHANGE_MS, timezone) !== offsetAt(last, timezone);
  for (let from = (justChanged ? last - MAX_CHANGE_MS : last) + 1; ; ) {
    const offset = offsetAt(from, timezone);
    const change = zoned(from, timezone).getTimeZoneTransition('next')?.epochMilliseconds ?? Infinity;
    const skipped = change === Infinity ? 0 : Math.max(0, offsetAt(change, timezone) - offset);
    for (let time = wall.nextRun(new Date(from + offset - 1)); ; time = wall.nextRun(time)) {
      if (!time) return ascending();
      const instant = time.getTime() - offset;
      if (instant >= change + skipped) break;
      if (instant > last) found.add(instant);
      if (found.size >= count && instant < change) return ascending();
    }
    from = change;
  }
}

/** The first instant with this local time; if the clock skips it, the end of the gap. */
function instantOf(wall: number, timezone: string): number {
  const shown = zoned(wall, 'UTC').toPlainDateTime();
  const found = shown.toZonedDateTime(timezone, { disambiguation: 'earlier' });
  // For a skipped time, `earlier` is an instant before the gap.
  const gap = found.toPlainDateTime().equals(shown) ? null : found.getTimeZoneTransition('next');
  return (gap ?? found).epochMilliseconds;
}

const offsetAt = (instant: number, timezone: string) => zoned(instant, timezone).offsetNanoseconds / 1e6;

const zoned = (instant: number, timezone: string) =>
  Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
