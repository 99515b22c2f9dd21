import { eq } from 'drizzle-orm';
import { connectionRuns, type RunRow, type StoredWarning, streamRuns } from '../../db/schema/index.ts';
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

/** The same for the run of a stream run. */
export async function lockRunOf(db: Db, stream_run_id: string): Promise<RunRow | undefined> {
  const named = db
    .select({ id: streamRuns.connection_run_id })
    .from(streamRuns)
    .where(eq(streamRuns.id, stream_run_id));
  const [run] = await db.select().from(connectionRuns).where(eq(connectionRuns.id, named)).for('no key update');
  return run;
}

/** Of the run itself, beside those of its streams. The run must be locked. */
export async function warnOfRun(db: Db, run: RunRow, warnings: readonly StoredWarning[]): Promise<void> {
  if (warnings.length === 0) return;
  await db
    .update(connectionRuns)
    .set({ warnings: [...run.warnings, ...warnings] })
    .where(eq(connectionRuns.id, run.id));
}
