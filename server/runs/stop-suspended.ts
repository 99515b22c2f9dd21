import { and, eq, inArray, isNotNull, ne } from 'drizzle-orm';
import { accounts, connectionRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { SYSTEM_ACTOR } from '../events/emit.ts';
import { LIVE_RUN } from '../pipeline/run-states.ts';
import type { Queue } from '../queue/boss.ts';
import { stopLiveRuns } from './stop.ts';

/**
 * Stops the live runs of suspended accounts. Also called periodically: a start that began before the suspension can commit
 * after it.
 */
export async function stopSuspended(db: Db, queue: Queue): Promise<void> {
  const running = await db
    .selectDistinct({ id: connectionRuns.connection_id })
    .from(connectionRuns)
    .innerJoin(accounts, eq(accounts.id, connectionRuns.account_id))
    .where(
      and(
        isNotNull(accounts.suspended_at),
        inArray(connectionRuns.status, LIVE_RUN),
        ne(connectionRuns.status, 'stopping'),
      ),
    );
  for (const { id: connection_id } of running) {
    const stop = { connection_id, actor: SYSTEM_ACTOR, reason: 'account_suspended' };
    await db.transaction((tx) => stopLiveRuns(tx, queue, stop));
  }
}
