import { and, eq, type SQL } from 'drizzle-orm';
import { type ConnectionRow, connections } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emit, SYSTEM_ACTOR } from '../events/emit.ts';
import { connectionFacts } from '../events/run-events.ts';

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
