import { inArray, type SQL, sql } from 'drizzle-orm';
import { connectionStreams, type RunRow } from '../../../db/schema/index.ts';
import { lockInOrder } from '../../../db/lock-in-order.ts';
import type { Db } from '../../../db/types.ts';

/**
 * Columns of a stream whose run has ended: its table has what the source had when the run began to read. A custom run
 * loads a part.
 */
export function freshSince(run: Pick<RunRow, 'custom_run_plan_id'>, began_at: string | null): { fresh_at?: SQL } {
  if (run.custom_run_plan_id !== null || began_at === null) return {};
  return { fresh_at: laterOf(sql`${began_at}::timestamptz`) };
}

/** Records that streams which follow a log have everything that was committed before `as_of`. */
export async function recordFreshness(db: Db, stream_ids: string[], as_of: Date): Promise<void> {
  await db
    .update(connectionStreams)
    .set({ fresh_at: laterOf(sql`${as_of.toISOString()}::timestamptz`) })
    .where(inArray(connectionStreams.id, sql`(${lockInOrder('connection_streams', stream_ids)})`));
}

const laterOf = (moment: SQL): SQL => sql`greatest(${connectionStreams.fresh_at}, ${moment})`;
