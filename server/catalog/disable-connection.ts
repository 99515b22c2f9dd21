import { and, eq, type SQL, sql } from 'drizzle-orm';
import { type ConnectionRow, connections } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emitConnectionChange } from '../events/connection-events.ts';

/** Pauses the connection if it is active, and emits the event. Its run ends by itself where it is continuous. */
export async function pauseConnection(
  db: Db,
  connection_id: string,
  reason: { status_reason: string; because: string },
): Promise<void> {
  const [paused] = await db
    .update(connections)
    .set({
      status: 'paused',
      status_reason: reason.status_reason,
      next_run_at: null,
      revision: sql`${connections.revision} + 1`,
    })
    .where(and(eq(connections.id, connection_id), eq(connections.status, 'active')))
    .returning();
  if (!paused) return;
  await emitConnectionChange(db, {
    event: 'connection_paused',
    connection: paused,
    sentence: `was paused because ${reason.because}`,
    changed_fields: ['status'],
  });
}

/** Disables the connection if it is active and matches, and emits the event. */
export async function disableConnection(
  db: Db,
  matching: SQL | undefined,
  reason: { status_reason: string; because(connection: ConnectionRow): string },
): Promise<void> {
  const [disabled] = await db
    .update(connections)
    .set({ status: 'auto_disabled', status_reason: reason.status_reason, next_run_at: null })
    .where(and(eq(connections.status, 'active'), matching))
    .returning();
  if (!disabled) return;
  await emitConnectionChange(db, {
    event: 'connection_auto_disabled',
    connection: disabled,
    sentence: `was disabled because ${reason.because(disabled)}`,
    changed_fields: ['status'],
  });
}
