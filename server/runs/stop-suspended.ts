import { and, desc, eq, inArray, isNotNull, ne } from 'drizzle-orm';
import { accounts, connectionRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { SYSTEM_ACTOR } from '../events/emit.ts';
import { LIVE_RUN } from '../pipeline/run-states.ts';
import type { Queue } from '../queue/boss.ts';
import { requestStop } from './stop.ts';

/**
 * Stops the live runs of suspended accounts. Also called periodically: a start that began before the suspension can commit
 * after it.
 */
export async function stopSuspended(db: Db, queue: Queue): Promise<void> {
  const live = await db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .innerJoin(accounts, eq(accounts.id, connectionRuns.account_id))
    .where(
      and(
        isNotNull(accounts.suspended_at),
        inArray(connectionRuns.status, LIVE_RUN),
        ne(connectionRuns.status, 'stopping'),
      ),
    )
    // The last chunks first, so that none starts.
    .orderBy(desc(connectionRuns.number));
  for (const { id } of live) {
    const stop = { connection_run_id: id, actor: SYSTEM_ACTOR, reason: 'account_suspended' };
    await db.transaction((tx) => requestStop(tx, queue, stop));
  }
}
