import { badRequest } from '../platform/errors.ts';
import { cronTicks, parseCron } from './cron-ticks.ts';
import { dailyCron } from './daily-times.ts';

/** A schedule as stored with the connection. */
export interface Schedule {
  type: 'manual' | 'interval' | 'cron' | 'continuous';
  interval_minutes: number | null;
  cron_expression: string | null;
  timezone: string;
  time_of_day: string | null;
}

export const MANUAL: Schedule = {
  type: 'manual',
  interval_minutes: null,
  cron_expression: null,
  timezone: 'UTC',
  time_of_day: null,
};

const MINUTE = 60_000;
/** Unix cron only: no seconds, no Quartz signs (`?`, `L`, `W`, `#`), no `@daily`. */
const FIVE_FIELDS = /^[\dA-Za-z*,/-]+( +[\dA-Za-z*,/-]+){4}$/;
const QUARTZ_LETTERS = /(?:^|[\s,\d])[LW](?:$|[\s,\d])/i;

/** A run follows the log of its source until it rolls over into the next one. */
export const isContinuous = ({ type }: Pick<Schedule, 'type'>): boolean => type === 'continuous';

/** Daily at a time of day is cron too, so that both handle clock changes alike. */
function cronOf(schedule: Schedule): string | null {
  if (schedule.type === 'cron') return schedule.cron_expression;
  if (schedule.type !== 'interval' || schedule.time_of_day === null) return null;
  return dailyCron(schedule.time_of_day);
}

/**
 * Refuses a cron expression that is not 5-field Unix cron, or that never fires. `name`: of the field with the schedule.
 * @throws ApiError 400 `invalid_cron` with `field`.
 */
export function checkSchedule(schedule: Schedule, now: Date, name = 'schedule'): void {
  if (schedule.type !== 'cron') return;
  const refuse = (message: string) => badRequest('invalid_cron', message, { field: `${name}.cron_expression` });
  const expression = schedule.cron_expression ?? '';
  if (!FIVE_FIELDS.test(expression) || QUARTZ_LETTERS.test(expression)) {
    throw refuse('A cron expression has five fields: minute, hour, day, month, weekday');
  }
  let first: Date | null;
  try {
    first = parseCron(expression).nextRun(now);
  } catch (error) {
    throw refuse(error instanceof Error ? error.message.replace(/^CronPattern: /, '') : 'Invalid cron expression');
  }
  if (first === null) throw refuse('This cron expression never fires');
}

/**
 * The next `count` ticks after `after`, ascending; none for a manual or continuous schedule. Interval ticks lie on the grid
 * `anchor + n × interval`, so neither a late tick nor a manual run shifts them. `anchor` is the last known tick, or the
 * instant at which the schedule was set.
 */
export function nextTicks(schedule: Schedule, from: { anchor: Date; after: Date }, count: number): Date[] {
  const expression = cronOf(schedule);
  if (expression !== null) return cronTicks(expression, { timezone: schedule.timezone, after: from.after, count });
  if (schedule.type !== 'interval' || schedule.interval_minutes === null) return [];
  const step = schedule.interval_minutes * MINUTE;
  const passed = Math.floor((from.after.getTime() - from.anchor.getTime()) / step);
  const first = from.anchor.getTime() + (passed + 1) * step;
  return Array.from({ length: count }, (_, index) => new Date(first + index * step));
}

const TICKS_LOOKED_AT = 200;

/**
 * The shortest time between two ticks, in minutes; null for a manual schedule, 0 for a continuous one. For cron, among the
 * next 200 ticks.
 */
export function shortestGapMinutes(schedule: Schedule, now: Date): number | null {
  if (schedule.type === 'manual') return null;
  if (isContinuous(schedule)) return 0;
  if (schedule.type === 'interval') return schedule.interval_minutes;
  const ticks = nextTicks(schedule, { anchor: now, after: now }, TICKS_LOOKED_AT).map((tick) => tick.getTime());
  const gaps = ticks.slice(1).map((tick, index) => (tick - ticks[index]!) / MINUTE);
  return gaps.length === 0 ? null : Math.min(...gaps);
}

/** The next tick, ISO; null for a manual schedule. A continuous one is due at once. */
export function nextRunAt(schedule: Schedule, from: { anchor: Date; after: Date }): string | null {
  if (isContinuous(schedule)) return from.after.toISOString();
  return nextTicks(schedule, from, 1)[0]?.toISOString() ?? null;
}

/** The schedule in words, such as "Every 15 minutes". */
export function describeSchedule(schedule: Schedule): string {
  if (schedule.type === 'manual') return 'Manual: runs only on request';
  if (isContinuous(schedule)) return 'Continuous: each change as it is committed';
  const zone = ` (${schedule.timezone})`;
  if (schedule.time_of_day !== null) return `Every day at ${schedule.time_of_day}${zone}`;
  if (schedule.type === 'cron') {
    // Loaded with its first use.
    const { toString } = require('cronstrue') as typeof import('cronstrue');
    return toString(schedule.cron_expression ?? '', { use24HourTimeFormat: true }) + zone;
  }
  const minutes = schedule.interval_minutes ?? 0;
  if (minutes % 60 !== 0) return `Every ${minutes} minutes`;
  return minutes === 60 ? 'Every hour' : `Every ${minutes / 60} hours`;
}
