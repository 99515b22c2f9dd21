import type { ConnectionRow } from '../../../db/schema/index.ts';
import { nextRunAt } from '../../pipeline/schedule.ts';

/** Columns that restart a connection's schedule: ticks missed before do not count as delay. */
export const tickingFrom = (
  now: Date,
  { status, schedule }: Pick<ConnectionRow, 'status' | 'schedule'>,
): Pick<ConnectionRow, 'next_run_at' | 'ticking_since'> => ({
  next_run_at: status === 'active' ? nextRunAt(schedule, { anchor: now, after: now }) : null,
  ticking_since: now.toISOString(),
});
