import { z } from 'zod';
import { checkSchedule, describeSchedule, nextTicks } from '../../pipeline/schedule.ts';
import type { Ctx } from '../../api/procedure.ts';
import { ConnectionSchedule, ConnectionScheduleRequest } from './schedule-schema.ts';

export const SchedulePreviewRequest = z
  .strictObject({ schedule: ConnectionScheduleRequest })
  .meta({ id: 'SchedulePreviewRequest', examples: [{ schedule: { type: 'interval', interval_minutes: 60 } }] });
export const SchedulePreview = ConnectionSchedule.pick({ description: true, next_runs: true });

const TICKS = 5;

/** Describes a schedule and lists its next runs without storing it. @throws ApiError 400 `invalid_cron`. */
export function previewSchedule(
  ctx: Ctx,
  { schedule }: z.infer<typeof SchedulePreviewRequest>,
): z.infer<typeof SchedulePreview> {
  const now = ctx.deps.now();
  checkSchedule(schedule, now);
  const ticks = nextTicks(schedule, { anchor: now, after: now }, TICKS);
  return { description: describeSchedule(schedule), next_runs: ticks.map((tick) => tick.toISOString()) };
}
