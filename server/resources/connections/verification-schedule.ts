import type { ConnectionRow } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import { checkSchedule, isContinuous, nextRunAt, type Schedule } from '../../pipeline/schedule.ts';

/**
 * The columns of a schedule of verifications. Null: none.
 * @throws ApiError 400 `invalid_schedule`, `invalid_cron` with `field`
 */
export function verificationColumns(
  schedule: Schedule | null,
  now: Date,
): Pick<ConnectionRow, 'verification_schedule' | 'next_verification_at'> {
  if (schedule && isContinuous(schedule)) {
    throw badRequest('invalid_schedule', 'A verification compares one moment. Choose an interval or cron', {
      field: 'verification_schedule.type',
    });
  }
  if (schedule) checkSchedule(schedule, now, 'verification_schedule');
  return {
    verification_schedule: schedule,
    next_verification_at: schedule && nextRunAt(schedule, { anchor: now, after: now }),
  };
}
