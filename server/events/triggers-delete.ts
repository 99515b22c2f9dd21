import { and, eq, inArray, sql } from 'drizzle-orm';
import { caseTimeline, cases, deliveries, triggerGroups, triggers } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, emit } from './emit.ts';
import type { TriggerRow } from './triggers.ts';

/** Leaves a tombstone: what the trigger opened is resolved, what it had still to send is not sent. */
export async function deleteTriggerRow(db: Db, trigger: TriggerRow, actor: Actor): Promise<void> {
  await db.update(triggers).set({ deleted_at: sql`now()`, enabled: false }).where(eq(triggers.id, trigger.id));
  await db.delete(triggerGroups).where(eq(triggerGroups.trigger_id, trigger.id));
  await db
    .update(deliveries)
    .set({ status: 'cancelled', next_attempt_at: null })
    .where(and(eq(deliveries.trigger_id, trigger.id), inArray(deliveries.status, ['pending', 'retrying'])));
  const resolved = await db
    .update(cases)
    .set({ status: 'resolved', resolution: 'trigger_deleted', resolved_at: sql`clock_timestamp()`, resolved_by: actor.id })
    .where(and(eq(cases.trigger_id, trigger.id), inArray(cases.status, ['open', 'acknowledged', 'suppressed'])))
    .returning();
  for (const one of resolved) {
    await db
      .insert(caseTimeline)
      .values({ case_id: one.id, type: 'resolved', actor: { ...actor }, note: 'The trigger was deleted' });
    await emit(db, {
      account_id: one.account_id,
      event: 'case_resolved',
      actor,
      resource: { type: 'case', id: one.id, name: one.title },
      connection_id: one.connection_id ?? undefined,
      summary: `Case ${one.number} was resolved: its trigger was deleted`,
      payload: { case_id: one.id, case_number: one.number, trigger_id: trigger.id, trigger_name: trigger.name },
    });
  }
}

/** What was counted or waited for under another rule is void. */
export async function forgetGroups(db: Db, trigger_id: string): Promise<void> {
  await db.delete(triggerGroups).where(eq(triggerGroups.trigger_id, trigger_id));
}
