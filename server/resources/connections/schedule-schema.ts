import { z } from 'zod';
import { TIME_OF_DAY } from '../../pipeline/daily-times.ts';
import type { Schedule } from '../../pipeline/schedule.ts';
import { instant, readOnlyKeys, text, timeZone, whole } from '../../api/wire-types.ts';

const INTERVALS = [5, 15, 30, 60, 120, 180, 360, 480, 720, 1440] as const;
const DAY_MINUTES = 1440;

const type = () =>
  z.enum(['manual', 'interval', 'cron', 'continuous']).meta({
    description:
      '`continuous`: one run follows the change log of the source and moves each commit as it comes. Needs a source with change data capture and a destination that commits its streams together.',
  });
const fields = {
  interval_minutes: z
    .literal([...INTERVALS])
    .meta({ type: 'integer' })
    .nullable(),
  cron_expression: text(1, 200)
    .trim()
    .nullable()
    .meta({ description: 'Five-field Unix cron expression, without seconds (not Quartz).' }),
  timezone: timeZone(),
  time_of_day: z
    .string()
    .regex(TIME_OF_DAY)
    .nullable()
    .meta({ description: '`HH:MM` in the time zone; only with interval_minutes 1440.' }),
};

export const ConnectionSchedule = z
  .object({
    type: type(),
    interval_minutes: whole().nullable(),
    cron_expression: z.string().nullable(),
    timezone: z.string(),
    time_of_day: z.string().nullable(),
    description: z.string(),
    next_runs: z
      .array(instant())
      .meta({ description: 'The next five scheduled runs. Empty unless the connection is active.' }),
  })
  .meta({ id: 'ConnectionSchedule' });
export type ConnectionSchedule = z.infer<typeof ConnectionSchedule>;

const settings = {
  type: type(),
  interval_minutes: fields.interval_minutes.default(null),
  cron_expression: fields.cron_expression.default(null),
  timezone: fields.timezone.default('UTC'),
  time_of_day: fields.time_of_day.default(null),
};

export const ConnectionScheduleRequest = z
  .strictObject({ ...settings, ...readOnlyKeys(ConnectionSchedule, settings) })
  .check((ctx) => {
    for (const [path, message] of problemsOf(ctx.value)) {
      ctx.issues.push({ code: 'custom', message, path: [path], input: ctx.value });
    }
  })
  .meta({ id: 'ConnectionScheduleRequest' });

/** A schedule has exactly the fields of its type. */
function problemsOf(schedule: Schedule): [keyof Schedule, string][] {
  const { interval_minutes, cron_expression, time_of_day } = schedule;
  const problems: [keyof Schedule, string][] = [];
  const isInterval = schedule.type === 'interval';
  const isCron = schedule.type === 'cron';
  if (isInterval !== (interval_minutes !== null)) {
    problems.push(['interval_minutes', isInterval ? 'Needed for an interval' : 'Only for an interval']);
  }
  if (isCron !== (cron_expression !== null)) {
    problems.push(['cron_expression', isCron ? 'Needed for cron' : 'Only for cron']);
  }
  if (time_of_day !== null && interval_minutes !== DAY_MINUTES) {
    problems.push(['time_of_day', `Only with interval_minutes ${DAY_MINUTES}`]);
  }
  return problems;
}
