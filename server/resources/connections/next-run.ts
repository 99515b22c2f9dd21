import type { ConnectionRow } from '../../../db/schema/index.ts';
import { nextRunAt } from '../../pipeline/schedule.ts';

/** Columns of a connection whose ticks begin anew: data is not late for those that it missed before. */
export const tickingFrom = (
  now: Date,
  { status, schedule }: Pick<ConnectionRow, 'status' | 'schedule'>,
): Pick<ConnectionRow, 'next_run_at' | 'ticking_since'> => ({
  next_run_at: status === 'active' ? nextRunAt(schedule, { anchor: now, after: now }) : null,
  ticking_since: now.toISOString(),
});
