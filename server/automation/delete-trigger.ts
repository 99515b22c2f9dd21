import { and, eq, inArray, sql } from 'drizzle-orm';
import { cases, deliveries, triggerGroups, type TriggerRow, triggers } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { LIVE_CASE, report } from './cases/cases.ts';
import type { Actor } from '../events/emit.ts';

/** Marks the trigger as deleted, resolves its live cases and cancels its unfinished deliveries. */
export async function deleteTriggerRow(db: Db, trigger: TriggerRow, actor: Actor): Promise<void> {
  await db.update(triggers).set({ deleted_at: sql`now()`, enabled: false }).where(eq(triggers.id, trigger.id));
  await forgetGroups(db, trigger.id);
  await db
    .update(deliveries)
    .set({ status: 'cancelled', next_attempt_at: null })
    .where(and(eq(deliveries.trigger_id, trigger.id), inArray(deliveries.status, ['pending', 'retrying'])));
  const resolved = await db
    .update(cases)
    .set({
      status: 'resolved',
      resolution: 'trigger_deleted',
      resolved_at: sql`clock_timestamp()`,
      resolved_by: actor.id,
    })
    .where(and(eq(cases.trigger_id, trigger.id), inArray(cases.status, LIVE_CASE)))
    .returning();
  for (const row of resolved) {
    await report(db, 'case_resolved', { row, trigger, actor, event: null, note: 'The trigger was deleted' });
  }
}

/** Discards counts and waits, which are meaningless under a new rule. */
export async function forgetGroups(db: Db, trigger_id: string): Promise<void> {
  await db.delete(triggerGroups).where(eq(triggerGroups.trigger_id, trigger_id));
}
