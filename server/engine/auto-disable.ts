import { and, eq, type SQL, sql } from 'drizzle-orm';
import { connections } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emit, SYSTEM_ACTOR } from '../events/emit.ts';
import { connectionFacts } from './run-events.ts';

/** Both must be reached: the count alone would end a 5-minute schedule in hours, the days alone a weekly one at once. */
const FAILED_RUNS = 30;
const FAILED_DAYS = 7;

type ConnectionRow = typeof connections.$inferSelect;

/** After a failed run: takes a connection that has only failed for long off its schedule, and says so. */
export const disableIfHopeless = (db: Db, connection_id: string): Promise<void> =>
  disableConnection(
    db,
    and(
      eq(connections.id, connection_id),
      sql`${connections.consecutive_failures} >= ${FAILED_RUNS}`,
      sql`coalesce(${connections.last_succeeded_at}, ${connections.created_at})
        < now() - make_interval(days => ${FAILED_DAYS})`,
    ),
    {
      status_reason: 'too_many_failures',
      because: ({ consecutive_failures }) => `${consecutive_failures} runs in a row failed`,
    },
  );

/** Takes the connection off its schedule if it is active and fits, and says so in an event. */
export async function disableConnection(
  db: Db,
  fitting: SQL | undefined,
  reason: { status_reason: string; because(connection: ConnectionRow): string },
): Promise<void> {
  const [disabled] = await db
    .update(connections)
    .set({ status: 'auto_disabled', status_reason: reason.status_reason, next_run_at: null })
    .where(and(eq(connections.status, 'active'), fitting))
    .returning();
  if (!disabled) return;
  await emit(db, {
    account_id: disabled.account_id,
    event: 'connection_auto_disabled',
    actor: SYSTEM_ACTOR,
    resource: { type: 'connection', id: disabled.id, name: disabled.name },
    summary: `${disabled.name} was disabled because ${reason.because(disabled)}`,
    connection_id: disabled.id,
    payload: { ...(await connectionFacts(db, disabled.id)), changed_fields: ['status'] },
  });
}
