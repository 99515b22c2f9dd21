import { and, eq, inArray, sql } from 'drizzle-orm';
import { deliveries } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { note } from '../cases/cases.ts';
import { sendDelivery, WAITING } from './queue-deliveries.ts';
import { automationActor, emitActionFailed } from '../../events/trigger-events.ts';
import { DeliveryError, temporary } from './delivery-error.ts';
import type { DeliveryJob } from './template-values.ts';

/** Pauses are in units of DELIVERY_BACKOFF_SECONDS: from 1 minute to 12 hours when that is a minute. */
const MAX_ATTEMPTS = 8;
const PAUSES = [1, 5, 15, 60, 180, 360, 720];
/** Waits requested by the receiver do not count as attempts, but end after this time. */
const MAX_WAIT_MS = 24 * 3_600_000;
const MAX_ERROR_LENGTH = 1000;

/** Schedules the next attempt, or ends the delivery and reports its failure. */
export async function recordFailure(deps: Deps, job: DeliveryJob, thrown: unknown): Promise<void> {
  const error = describe(deps, job, thrown);
  const { delivery } = job;
  const now = deps.now();
  const asked = error.options.until && now.getTime() - Date.parse(delivery.created_at) < MAX_WAIT_MS;
  await deps.db.transaction(async (tx) => {
    if (error.options.obsolete) await end(tx, job, { status: 'suppressed', error });
    else if (asked) await retry(tx, deps, { job, error, at: error.options.until!, attempts: delivery.attempts - 1 });
    else if (error.options.retryable && delivery.attempts < MAX_ATTEMPTS) {
      const pause = (PAUSES[delivery.attempts - 1] ?? PAUSES.at(-1)!) * deps.config.DELIVERY_BACKOFF_SECONDS;
      const at = new Date(now.getTime() + pause * 1000);
      await retry(tx, deps, { job, error, at, attempts: delivery.attempts });
    } else if (await end(tx, job, { status: 'failed', error })) await reportFailure(tx, job, error);
  });
}

function describe(deps: Deps, { delivery }: DeliveryJob, thrown: unknown): DeliveryError {
  if (thrown instanceof DeliveryError) return thrown;
  deps.log.error({ err: thrown, delivery_id: delivery.id }, 'action failed unexpectedly');
  return temporary('unexpected_error', 'The action failed unexpectedly');
}

const stillWaiting = ({ delivery }: DeliveryJob) =>
  and(eq(deliveries.id, delivery.id), inArray(deliveries.status, WAITING));
const textOf = (error: DeliveryError) => `${error.code}: ${error.message}`.slice(0, MAX_ERROR_LENGTH);

async function retry(
  db: Db,
  deps: Deps,
  next: { job: DeliveryJob; error: DeliveryError; at: Date; attempts: number },
): Promise<void> {
  const { job, error, attempts } = next;
  const at = next.at.toISOString();
  const planned = await db
    .update(deliveries)
    .set({ status: 'retrying', next_attempt_at: at, attempts, unfinished_attempts: 0, error: textOf(error) })
    .where(stillWaiting(job))
    .returning({ id: deliveries.id });
  if (planned.length === 0) return;
  await sendDelivery(db, deps.queue, { id: job.delivery.id, at, now: deps.now().toISOString() });
}

async function end(
  db: Db,
  job: DeliveryJob,
  { status, error }: { status: 'failed' | 'suppressed'; error: DeliveryError },
): Promise<boolean> {
  const ended = await db
    .update(deliveries)
    .set({ status, next_attempt_at: null, error: textOf(error), last_attempt_at: sql`clock_timestamp()` })
    .where(stillWaiting(job))
    .returning({ id: deliveries.id });
  return ended.length > 0;
}

async function reportFailure(db: Db, job: DeliveryJob, error: DeliveryError): Promise<void> {
  const { delivery, trigger, event } = job;
  const actor = automationActor(trigger);
  if (job.case)
    await note(db, job.case.id, { type: 'action_failed', actor, note: `${delivery.type}: ${textOf(error)}` });
  await emitActionFailed(db, {
    trigger,
    event,
    message: error.message,
    payload: {
      action_type: delivery.type,
      error_message: textOf(error),
      case_id: job.case?.id ?? null,
      delivery_id: delivery.id,
    },
  });
}
