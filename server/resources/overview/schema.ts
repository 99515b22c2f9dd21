import { z } from 'zod';
import { connectionRuns, RUN_STATUSES } from '../../../db/schema/index.ts';
import { count, day, instant, whole } from '../../api/wire-types.ts';

export const ActivityRequest = z.strictObject({ days: z.int().min(1).max(92).default(14) });

/** One UTC day of the account. */
export const ActivityDay = z.object({
  day: day(),
  rows_loaded: count(),
  runs_succeeded: count(),
  /** Failed or partially succeeded. */
  runs_failed: count(),
  /** Stopped, skipped or in progress. */
  runs_other: count(),
});
export type ActivityDay = z.infer<typeof ActivityDay>;

export const RecentRequest = z.strictObject({ limit: z.int().min(1).max(100).default(12) });

/** Summary of a run. */
export const RecentRun = z.object({
  id: z.string(),
  connection_id: z.string(),
  connection_name: z.string(),
  number: whole(),
  status: z.enum(RUN_STATUSES),
  trigger_type: z.enum(connectionRuns.trigger_type.enumValues),
  created_at: instant(),
  started_at: instant().nullable(),
  finished_at: instant().nullable(),
  rows_loaded: count(),
  error_message: z.string().nullable(),
});
export type RecentRun = z.infer<typeof RecentRun>;
