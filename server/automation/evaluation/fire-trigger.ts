import type { EventRow, TriggerRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { type CaseChange, takeIntoCase } from '../cases/cases.ts';
import { resolveByEvent } from '../cases/transitions.ts';
import { queueDeliveries } from '../delivery/queue-deliveries.ts';
import { emitTriggerFired } from '../../events/trigger-events.ts';
import { caseSettings } from '../triggers/trigger-index.ts';

export interface Firing {
  trigger: TriggerRow;
  event: EventRow;
  group: Record<string, unknown>;
  /** `resolved`: the event ends the problem that the trigger fired for. */
  kind: 'fired' | 'resolved';
}

/**
 * Fires a trigger, or resolves what it fired for: writes the case, its timeline, the events about both, and a delivery
 * with a job for each action, all in the caller's transaction.
 */
export async function fireTrigger(db: Db, deps: Deps, firing: Firing): Promise<{ case_id: string | null }> {
  const { trigger, event } = firing;
  const now = deps.now().toISOString();
  if (firing.kind === 'resolved') return resolve(db, deps, { ...firing, now });
  const taken = caseSettings(trigger).open ? await takeIntoCase(db, { ...firing, now }) : null;
  // In parallel: on one connection this is a single round trip.
  await Promise.all([
    taken?.change === 'joined' ? null : reportFired(db, firing, taken),
    queueDeliveries(db, deps.queue, {
      trigger,
      event,
      case_id: taken?.row.id ?? null,
      reason: taken ? reasonOf(trigger, taken) : 'fired',
      suppressed: taken?.row.status === 'suppressed',
      now,
    }),
  ]);
  return { case_id: taken?.row.id ?? null };
}

/** An event that joins an open case notifies only at each n-th event, if the trigger says so. */
function reasonOf(trigger: TriggerRow, { row, change }: CaseChange) {
  if (change !== 'joined') return change;
  const { notify_every } = caseSettings(trigger);
  return notify_every !== null && row.event_count % notify_every === 0 ? 'repeated' : 'joined';
}

async function resolve(db: Db, deps: Deps, recovery: Firing & { now: string }): Promise<{ case_id: string | null }> {
  const { trigger, event, now } = recovery;
  const resolved = await resolveByEvent(db, recovery);
  if (!resolved) return { case_id: null };
  if (caseSettings(trigger).notify_on_resolve) {
    const suppressed = resolved.before === 'suppressed';
    const case_id = resolved.row.id;
    await queueDeliveries(db, deps.queue, { trigger, event, case_id, reason: 'resolved', suppressed, now });
  }
  return { case_id: resolved.row.id };
}

/** Once for each case that opens or changes, not for each event in it. */
async function reportFired(db: Db, { trigger, event }: Firing, taken: CaseChange | null): Promise<void> {
  const { id = null, number = null } = taken?.row ?? {};
  await emitTriggerFired(db, { trigger, event, case_id: id, case_number: number });
}
