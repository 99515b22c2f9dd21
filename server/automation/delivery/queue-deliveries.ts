import { and, asc, eq, gt, inArray, ne, sql } from 'drizzle-orm';
import {
  type ACTION_TYPES,
  deliveries,
  type DeliveryRow,
  type DELIVERY_REASONS,
  type EventRow,
  type TriggerRow,
} from '../../../db/schema/index.ts';
import { findsAny, type Question } from '../../../db/ask-together.ts';
import type { Db } from '../../../db/types.ts';
import type { Queue } from '../../queue/boss.ts';
import { deliverAction } from '../../queue/jobs.ts';
import { isNotification } from '../triggers/action-schema.ts';

/** Why an action runs: what happened to the case, or `fired` without one. */
export type DeliveryReason = (typeof DELIVERY_REASONS)[number];

export interface Deliveries {
  trigger: TriggerRow;
  event: EventRow;
  case_id: string | null;
  reason: DeliveryReason;
  /** Whether the case is suppressed, so that notifications are not sent. */
  suppressed: boolean;
  now: string;
}

/** States of deliveries that are not finished. */
export const WAITING: DeliveryRow['status'][] = ['pending', 'retrying'];

/** After this many messages about a case within ten minutes, further ones are combined into a summary. */
const MESSAGES_BEFORE_SUMMARY = 5;
const SUMMARY_SECONDS = 600;

/**
 * Creates one delivery for each action, with a job for those that are due. Notifications are sent when a case opens,
 * reopens, becomes more severe or ends. Actions on pipelines happen at every firing.
 */
export async function queueDeliveries(db: Db, queue: Queue, input: Deliveries): Promise<void> {
  const { trigger, event, case_id, now } = input;
  const rows: (typeof deliveries.$inferInsert)[] = [];
  for (const [action_index, action] of trigger.actions.entries()) {
    const type = action.type as (typeof ACTION_TYPES)[number];
    const plan = isNotification(type) ? await planNotification(db, input, { action_index, type }) : planChange(input);
    if (!plan) continue;
    rows.push({
      account_id: trigger.account_id,
      event_id: event.id,
      trigger_id: trigger.id,
      case_id,
      action_index,
      type,
      ...plan,
      next_attempt_at: plan.status === 'pending' ? (plan.next_attempt_at ?? now) : null,
    });
  }
  if (rows.length === 0) return;
  // An event that is evaluated again must not be delivered again.
  const created = await db.insert(deliveries).values(rows).onConflictDoNothing().returning();
  for (const row of created) {
    if (row.status === 'pending') await sendDelivery(db, queue, { id: row.id, at: row.next_attempt_at ?? now, now });
  }
}

/** Queues the job of a delivery, to run now or at `at`. */
export async function sendDelivery(db: Db, queue: Queue, send: { id: string; at: string; now: string }): Promise<void> {
  const options = send.at > send.now ? { start_after: new Date(send.at) } : {};
  await queue.send(db, deliverAction, { delivery_id: send.id }, options);
}

interface DeliveryPlan {
  status: 'pending' | 'suppressed';
  reason: DeliveryReason;
  next_attempt_at?: string;
}

const planChange = ({ reason }: Deliveries): DeliveryPlan | null =>
  reason === 'resolved' ? null : { status: 'pending', reason };

async function planNotification(
  db: Db,
  { case_id, reason, suppressed, now }: Deliveries,
  { action_index, type }: { action_index: number; type: string },
): Promise<DeliveryPlan> {
  if (suppressed || reason === 'joined') return { status: 'suppressed', reason };
  if (reason !== 'repeated' || type !== 'send_chat_message' || case_id === null) return { status: 'pending', reason };
  const since = new Date(Date.parse(now) - SUMMARY_SECONDS * 1000).toISOString();
  const recent = await db
    .select({ reason: deliveries.reason, status: deliveries.status, created_at: deliveries.created_at })
    .from(deliveries)
    .where(
      and(
        eq(deliveries.case_id, case_id),
        eq(deliveries.action_index, action_index),
        ne(deliveries.status, 'suppressed'),
        gt(deliveries.created_at, since),
      ),
    )
    .orderBy(asc(deliveries.created_at));
  if (recent.length < MESSAGES_BEFORE_SUMMARY) return { status: 'pending', reason };
  const summed = recent.some((one) => one.reason === 'summary' && WAITING.includes(one.status));
  if (summed) return { status: 'suppressed', reason };
  const next_attempt_at = new Date(Date.parse(recent[0]!.created_at) + SUMMARY_SECONDS * 1000).toISOString();
  return { status: 'pending', reason: 'summary', next_attempt_at };
}

const LOST_SECONDS = 120;
const isOverdue = and(
  inArray(deliveries.status, WAITING),
  sql`${deliveries.next_attempt_at} < now() - make_interval(secs => ${LOST_SECONDS})`,
);

const ANY_OVERDUE: Question = {
  name: 'overdue deliveries',
  query: (db) => db.select({ id: deliveries.id }).from(deliveries).where(isOverdue).limit(1),
};

/** Queues jobs for deliveries that are long overdue, because their job was lost. Returns their number. */
export async function resendLostDeliveries(db: Db, queue: Queue): Promise<number> {
  if (!(await findsAny(db, ANY_OVERDUE))) return 0;
  return db.transaction(async (tx) => {
    const overdue = tx
      .select({ id: deliveries.id })
      .from(deliveries)
      .where(isOverdue)
      .orderBy(asc(deliveries.next_attempt_at))
      .limit(100)
      .for('no key update', { skipLocked: true });
    const lost = await tx
      .update(deliveries)
      .set({ next_attempt_at: sql`now()` })
      .where(inArray(deliveries.id, overdue))
      .returning({ id: deliveries.id });
    for (const { id } of lost) await queue.send(tx, deliverAction, { delivery_id: id });
    return lost.length;
  });
}
