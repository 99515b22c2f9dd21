import { eq } from 'drizzle-orm';
import { connectionRuns, type RunRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';

/** Locks a run and reads it. All changes of a run and its streams happen under this lock. */
export async function lockRun(db: Db, connection_run_id: string): Promise<RunRow | undefined> {
  const [run] = await db
    .select()
    .from(connectionRuns)
    .where(eq(connectionRuns.id, connection_run_id))
    .for('no key update');
  return run;
}
