import { and, eq, sql } from 'drizzle-orm';
import { connections } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emit, SYSTEM_ACTOR } from '../events/emit.ts';

/** Both must be reached: the count alone would end a 5-minute schedule in hours, the days alone a weekly one at once. */
const FAILED_RUNS = 30;
const FAILED_DAYS = 7;

/** After a failed run: takes a connection that has only failed for long off its schedule, and says so. */
export async function disableIfHopeless(db: Db, connection_id: string): Promise<void> {
  const [disabled] = await db
    .update(connections)
    .set({ status: 'auto_disabled', status_reason: 'too_many_failures', next_run_at: null })
    .where(
      and(
        eq(connections.id, connection_id),
        eq(connections.status, 'active'),
        sql`${connections.consecutive_failures} >= ${FAILED_RUNS}`,
        sql`coalesce(${connections.last_succeeded_at}, ${connections.created_at})
          < now() - make_interval(days => ${FAILED_DAYS})`,
      ),
    )
    .returning();
  if (!disabled) return;
  await emit(db, {
    account_id: disabled.account_id,
    event: 'connection_auto_disabled',
    actor: SYSTEM_ACTOR,
    resource: { type: 'connection', id: disabled.id, name: disabled.name },
    summary: `${disabled.name} was disabled after ${disabled.consecutive_failures} failed runs in a row`,
    connection_id: disabled.id,
    payload: {
      connection_id: disabled.id,
      connection_name: disabled.name,
      kind: disabled.kind,
      status: disabled.status,
      status_reason: disabled.status_reason,
      source_id: disabled.source_id,
      destination_id: disabled.destination_id,
      tags: disabled.tags,
    },
  });
}
