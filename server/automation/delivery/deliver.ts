import { and, eq, gt, inArray, isNull, lt, lte, ne, or, sql } from 'drizzle-orm';
import { cases, deliveries, type DeliveryRow, events, triggers } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import type { ActionOf, TriggerAction } from '../triggers/action-schema.ts';
import { sendDelivery, WAITING } from './queue-deliveries.ts';
import { callWebhook } from './call-webhook.ts';
import { changePipeline } from './pipeline-action.ts';
import { rememberThread, sendChatMessage } from './send-chat-message.ts';
import { sendEmail } from './send-email.ts';
import type { DeliveryJob } from './template-values.ts';
import { permanent } from './delivery-error.ts';
import { holdForOthers, holdForQuietHours } from './quiet-hours.ts';
import { recipientsNow } from './recipients.ts';
import { recordFailure } from './record-failure.ts';

/** An attempt that has not ended by then has lost its worker. */
const ATTEMPT_SECONDS = 60;
/** A delivery that ended so many workers in a row fails. */
const MAX_UNFINISHED = 3;
/** A message that waits for the one before it in its thread checks again at least this often. */
const MAX_TURN_SECONDS = 30;

/**
 * Handler of the job `deliver_action`: one attempt at one delivery. Temporary failures are retried with growing pauses. A
 * job that runs twice finds the delivery finished, or repeats it under the same delivery id.
 */
export async function deliverActionJob(deps: Deps, delivery_id: string, signal: AbortSignal): Promise<void> {
  const [own] = await deps.db.select().from(deliveries).where(eq(deliveries.id, delivery_id));
  if (!own || !WAITING.includes(own.status) || (await mustWait(deps, own))) return;
  const work = () => deliver(deps, delivery_id, signal);
  await (own.unfinished_attempts > 0 ? inTurn(work) : work());
  const [after] = await deps.db.select().from(deliveries).where(eq(deliveries.id, delivery_id));
  if (after) deps.metrics.deliveryAttempt({ kind: after.type, outcome: after.status });
}

const mustWait = async (deps: Deps, own: DeliveryRow): Promise<boolean> =>
  (await holdForQuietHours(deps, own)) || waitsForEarlier(deps, own);

/** The turn of the last delivery whose worker died. */
let turn: Promise<unknown> = Promise.resolve();

/** One at a time, so that the others with which a delivery ended a worker do not end with it again. */
function inTurn(work: () => Promise<void>): Promise<void> {
  const own = turn.then(work);
  turn = own.catch(() => {});
  return own;
}

async function deliver(deps: Deps, delivery_id: string, signal: AbortSignal): Promise<void> {
  const job = await beginAttempt(deps, delivery_id);
  if (!job) return;
  try {
    if (job.delivery.unfinished_attempts > MAX_UNFINISHED) throw workersDied();
    await attempt(deps, job, signal);
  } catch (error) {
    if (signal.aborted) await leaveToAnother(deps.db, job.delivery);
    signal.throwIfAborted();
    await recordFailure(deps, job, error);
  }
}

const workersDied = () =>
  permanent('worker_killed', `The worker process ended in each of ${MAX_UNFINISHED} attempts. Check the action`);

/** The worker is stopping: the queue gives the job to another one. */
const leaveToAnother = (db: Db, { id }: DeliveryRow) =>
  db
    .update(deliveries)
    .set({ unfinished_attempts: sql`greatest(${deliveries.unfinished_attempts} - 1, 0)` })
    .where(eq(deliveries.id, id));

async function attempt(deps: Deps, job: DeliveryJob, signal: AbortSignal): Promise<void> {
  const action = job.trigger.actions[job.delivery.action_index] as TriggerAction;
  if (action.type === 'call_webhook') {
    await callWebhook(deps, { job, action, signal });
    await markDelivered(deps.db, job.delivery, null);
  } else if (action.type === 'send_email') {
    await deliverEmail(deps, job, action);
  } else if (action.type === 'send_chat_message') {
    const begun = await sendChatMessage(deps, { job, action, signal });
    await deps.db.transaction(async (tx) => {
      await markDelivered(tx, job.delivery, null);
      if (!begun || !job.case) return;
      const { where, set } = rememberThread(job.case.id, begun);
      await tx.update(cases).set(set).where(where);
    });
  } else {
    await deps.db.transaction(async (tx) => {
      // Marked first, and only while unfinished: a job that runs twice must not start a second run.
      if (await markDelivered(tx, job.delivery, null)) await changePipeline(tx, deps, { job, action });
    });
  }
}

/** To the recipients whose quiet hours allow it. It waits for the others. */
async function deliverEmail(deps: Deps, job: DeliveryJob, action: ActionOf<'send_email'>): Promise<void> {
  const { delivery, trigger } = job;
  const severity = job.case?.severity ?? trigger.severity;
  const { due, until } = await recipientsNow(deps, { delivery, severity, recipients: action.recipients });
  const isNobodys = due.length === 0 && (until !== null || delivery.delivered_to.length > 0);
  const sent = isNobodys ? null : await sendEmail(deps, { job, action, to: due });
  // The error of a delivery that is not retried is a remark about those who have received it.
  const remark = sent ?? (delivery.status === 'pending' ? delivery.error : null);
  if (until) await holdForOthers(deps, delivery, { sent: due, until, remark });
  else await markDelivered(deps.db, delivery, remark);
}

async function markDelivered(db: Db, { id }: DeliveryRow, remark: string | null): Promise<boolean> {
  const marked = await db
    .update(deliveries)
    .set({ status: 'delivered', delivered_at: sql`clock_timestamp()`, next_attempt_at: null, error: remark })
    .where(and(eq(deliveries.id, id), inArray(deliveries.status, WAITING)))
    .returning({ id: deliveries.id });
  return marked.length > 0;
}

/** Messages of one thread keep their order: the second joins the thread that the first begins. */
async function waitsForEarlier(deps: Deps, own: DeliveryRow): Promise<boolean> {
  const { id } = own;
  if (own.type !== 'send_chat_message' || own.case_id === null) return false;
  const [earlier] = await deps.db
    .select()
    .from(deliveries)
    .where(
      and(
        eq(deliveries.case_id, own.case_id),
        eq(deliveries.action_index, own.action_index),
        lt(deliveries.id, own.id),
        ne(deliveries.reason, 'summary'),
        // An urgent message does not wait for one that quiet hours hold.
        or(isNull(deliveries.held_until), lte(deliveries.held_until, deps.now().toISOString())),
        inArray(deliveries.status, WAITING),
      ),
    )
    .orderBy(deliveries.id)
    .limit(1);
  if (!earlier) return false;
  const now = deps.now().getTime();
  const planned = earlier.status === 'retrying' ? Date.parse(earlier.next_attempt_at ?? '') : now;
  const at = new Date(Math.min(Math.max(planned, now) + 1000, now + MAX_TURN_SECONDS * 1000)).toISOString();
  await deps.db.transaction(async (tx) => {
    await tx.update(deliveries).set({ next_attempt_at: at }).where(eq(deliveries.id, id));
    await sendDelivery(tx, deps.queue, { id, at, now: new Date(now).toISOString() });
  });
  return true;
}

/** Null: there is nothing left to do. */
async function beginAttempt(deps: Deps, id: string): Promise<DeliveryJob | null> {
  const [delivery] = await deps.db
    .update(deliveries)
    .set({
      attempts: sql`${deliveries.attempts} + 1`,
      unfinished_attempts: sql`${deliveries.unfinished_attempts} + 1`,
      last_attempt_at: sql`clock_timestamp()`,
      next_attempt_at: sql`clock_timestamp() + make_interval(secs => ${ATTEMPT_SECONDS})`,
    })
    .where(and(eq(deliveries.id, id), inArray(deliveries.status, WAITING)))
    .returning();
  if (!delivery) return null;
  const [about] = await deps.db
    .select({ trigger: triggers, event: events, case: cases })
    .from(deliveries)
    .innerJoin(triggers, eq(triggers.id, deliveries.trigger_id))
    .innerJoin(events, eq(events.id, deliveries.event_id))
    .leftJoin(cases, eq(cases.id, deliveries.case_id))
    .where(eq(deliveries.id, id));
  const action = about?.trigger.actions[delivery.action_index];
  if (!about || about.trigger.deleted_at !== null || action?.type !== delivery.type) {
    await cancel(deps.db, id, 'The trigger or this action was deleted');
    return null;
  }
  const more_events = delivery.reason === 'summary' ? await countSummarized(deps.db, delivery) : 0;
  return { delivery, more_events, ...about };
}

const cancel = (db: Db, id: string, error: string) =>
  db
    .update(deliveries)
    .set({ status: 'cancelled', next_attempt_at: null, error })
    .where(and(eq(deliveries.id, id), inArray(deliveries.status, WAITING)));

/** The event that began the summary, and those suppressed since. */
async function countSummarized(db: Db, { id, case_id, action_index }: DeliveryRow): Promise<number> {
  const rows = await db
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(
      and(
        eq(deliveries.case_id, case_id ?? ''),
        eq(deliveries.action_index, action_index),
        eq(deliveries.status, 'suppressed'),
        gt(deliveries.id, id),
      ),
    );
  return rows.length + 1;
}
