import { and, eq, gt, inArray } from 'drizzle-orm';
import {
  accounts,
  type CaseRow,
  cases,
  deliveries,
  type DeliveryRow,
  notificationSettings,
  triggers,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { heldUntil } from '../../pipeline/quiet-hours.ts';
import type { Queue } from '../../queue/boss.ts';
import type { TriggerAction } from '../triggers/action-schema.ts';
import { sendDelivery, WAITING } from './queue-deliveries.ts';
import { recipientsNow } from './recipients.ts';

const TO_PEOPLE: readonly DeliveryRow['type'][] = ['send_chat_message', 'send_email'];

/**
 * Holds a message to people, unless it is urgent, until the end of the quiet hours of the account, or an email until those
 * of the first of its recipients end. @returns whether it waits
 */
export async function holdForQuietHours(deps: Deps, delivery: DeliveryRow): Promise<boolean> {
  if (!TO_PEOPLE.includes(delivery.type)) return false;
  const [row] = await deps.db
    .select({ settings: notificationSettings, timezone: accounts.timezone, trigger: triggers, case: cases.severity })
    .from(deliveries)
    .innerJoin(accounts, eq(accounts.id, deliveries.account_id))
    .innerJoin(triggers, eq(triggers.id, deliveries.trigger_id))
    .leftJoin(notificationSettings, eq(notificationSettings.account_id, deliveries.account_id))
    .leftJoin(cases, eq(cases.id, deliveries.case_id))
    .where(eq(deliveries.id, delivery.id));
  if (!row) return false;
  const { settings, trigger } = row;
  const severity = row.case ?? trigger.severity;
  const timezone = settings?.timezone ?? row.timezone;
  const until =
    (settings && heldUntil(settings, { severity, timezone, now: deps.now() })) ??
    (await everyoneQuiet(deps, { delivery, severity, action: trigger.actions[delivery.action_index] }));
  if (!until) return false;
  await hold(deps, delivery, { until });
  return true;
}

/** When the quiet hours of the first recipient end, if all of them have quiet hours now. */
async function everyoneQuiet(
  deps: Deps,
  about: { delivery: DeliveryRow; severity: CaseRow['severity']; action: unknown },
): Promise<Date | null> {
  const action = about.action as TriggerAction | undefined;
  if (action?.type !== 'send_email') return null;
  const { due, until } = await recipientsNow(deps, { ...about, recipients: action.recipients });
  return due.length === 0 ? until : null;
}

/** Holds an email that some recipients have received for the others. The attempt does not count: nothing failed. */
export async function holdForOthers(
  deps: Deps,
  delivery: DeliveryRow,
  { sent, until, remark }: { sent: string[]; until: Date; remark: string | null },
): Promise<void> {
  const delivered_to = [...delivery.delivered_to, ...sent];
  const attempts = delivery.attempts - 1;
  const progress = { status: 'pending', attempts, unfinished_attempts: 0, delivered_to, error: remark } as const;
  await hold(deps, delivery, { until, progress });
}

async function hold(
  deps: Deps,
  { id }: DeliveryRow,
  { until, progress = {} }: { until: Date; progress?: Partial<DeliveryRow> },
): Promise<void> {
  const at = until.toISOString();
  await deps.db.transaction(async (tx) => {
    const held = await tx
      .update(deliveries)
      .set({ ...progress, next_attempt_at: at, held_until: at })
      .where(and(eq(deliveries.id, id), inArray(deliveries.status, WAITING)))
      .returning({ id: deliveries.id });
    if (held.length > 0) await sendDelivery(tx, deps.queue, { id, at, now: deps.now().toISOString() });
  });
}

/** Lets the deliveries that quiet hours hold be looked at again, for settings that have changed. */
export async function releaseHeld(
  db: Db,
  queue: Queue,
  { account_id, now }: { account_id: string; now: string },
): Promise<void> {
  const held = await db
    .update(deliveries)
    .set({ held_until: null, next_attempt_at: now })
    .where(
      and(eq(deliveries.account_id, account_id), inArray(deliveries.status, WAITING), gt(deliveries.held_until, now)),
    )
    .returning({ id: deliveries.id });
  for (const { id } of held) await sendDelivery(db, queue, { id, at: now, now });
}
