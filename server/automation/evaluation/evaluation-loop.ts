import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { askTogether, type Question } from '../../../db/ask-together.ts';
import type { Deps } from '../../deps.ts';
import type { EventRow } from '../../../db/schema/index.ts';
import { EVENTS_CHANNEL } from '../../events/emit.ts';
import { reportEvents } from '../../events/report-events.ts';
import { periodic } from '../../platform/periodic.ts';
import { evaluateBatch } from './evaluate-batch.ts';
import { fireOverdue, refreshTriggerStates } from './overdue-triggers.ts';

const EVERY_MS = 1000;
/**
 * Events that follow one another this closely, such as those of one run, are evaluated together. While events keep coming
 * the rest grows: a turn has a dozen statements, however many events it evaluates.
 */
const REST_MS = { first: 50, last: 400 };
const REFRESH_EVERY_MS = 5000;
const BATCH_SIZE = 200;
const MAX_ATTEMPTS = 5;

/**
 * Evaluates events until it is stopped: when an event is announced, and every second. Any number of processes
 * may run it; an account is evaluated by one of them at a time.
 */
export async function startEvaluator(deps: Deps): Promise<{ stop(): Promise<void> }> {
  const evaluating = periodic(evaluateAndRest(deps), {
    every_ms: EVERY_MS,
    immediately: true,
    onError: (error) => deps.log.error({ err: error }, 'events could not be evaluated'),
  });
  const firing = periodic(() => fireOverdue(deps), {
    every_ms: EVERY_MS,
    onError: (error) => deps.log.error({ err: error }, 'overdue triggers could not be fired'),
  });
  const refreshing = periodic(() => refreshTriggerStates(deps), {
    every_ms: REFRESH_EVERY_MS,
    immediately: true,
    onError: (error) => deps.log.error({ err: error }, 'trigger states could not be updated'),
  });
  const listening = await deps.database.listen(EVENTS_CHANNEL, evaluating.wake);
  return {
    async stop() {
      await listening.unlisten();
      await Promise.all([evaluating.stop(), firing.stop(), refreshing.stop()]);
    },
  };
}

/** Calls during the rest start one more turn, which serves all of them. */
function evaluateAndRest(deps: Deps): (signal: AbortSignal) => Promise<void> {
  let rest = REST_MS.first;
  let rested = -Infinity;
  return async (signal) => {
    const isQuiet = performance.now() - rested > REST_MS.last;
    const done = await evaluatePending(deps, () => signal.aborted);
    rest = isQuiet || done === 0 ? REST_MS.first : Math.min(2 * rest, REST_MS.last);
    if (done > 0) await sleep(rest, undefined, { signal }).catch(() => {});
    rested = performance.now();
  };
}

const WITH_EVENTS: Question = {
  name: 'accounts with events',
  query: () => sql`select distinct account_id from events where processing_status in ('received', 'evaluating')`,
};

/** Evaluates all waiting events that no other process has taken. Returns their number. Exported for tests. */
export async function evaluatePending(deps: Deps, isStopped: () => boolean = () => false): Promise<number> {
  let done = 0;
  for (const account_id of await askTogether<string>(deps.db, WITH_EVENTS)) {
    for (let taken = BATCH_SIZE; taken === BATCH_SIZE && !isStopped(); done += taken) {
      taken = await evaluateSome(deps, account_id);
    }
  }
  return done;
}

async function evaluateSome(deps: Deps, account_id: string): Promise<number> {
  try {
    return (await evaluateBatch(deps, account_id, BATCH_SIZE)) ?? 0;
  } catch (error) {
    deps.log.warn({ err: error, account_id }, 'a batch of events failed; retrying one by one');
    return evaluateSingly(deps, account_id);
  }
}

/** One transaction per event, so that a failing event does not hold up those before it. */
async function evaluateSingly(deps: Deps, account_id: string): Promise<number> {
  for (let done = 0; done < BATCH_SIZE; done += 1) {
    try {
      if (!(await evaluateBatch(deps, account_id, 1))) return done;
    } catch (error) {
      deps.log.error({ err: error, account_id }, 'an event could not be evaluated');
      // Later events keep their place behind it: the next turn retries it, or skips it after the last attempt.
      await recordFailure(deps, account_id);
      return done;
    }
  }
  return BATCH_SIZE;
}

async function recordFailure(deps: Deps, account_id: string): Promise<void> {
  const failed = await deps.db.execute<EventRow>(sql`
    update events set
      evaluation_attempts = evaluation_attempts + 1,
      processing_status = case when evaluation_attempts + 1 >= ${MAX_ATTEMPTS} then 'failed' else 'evaluating' end
    where id = (
      select id from events where account_id = ${account_id} and processing_status in ('received', 'evaluating')
      order by occurred_at, id limit 1)
    returning *`);
  reportEvents(
    deps,
    failed.filter(({ processing_status }) => processing_status === 'failed'),
  );
}
