import { sql } from 'drizzle-orm';
import type { Deps } from '../../deps.ts';
import { EVENTS_CHANNEL } from '../../events/emit.ts';
import { periodic } from '../../platform/periodic.ts';
import { evaluateBatch } from './evaluate-batch.ts';
import { fireOverdue, settleStates } from './timers.ts';

const EVERY_MS = 1000;
const SETTLE_EVERY_MS = 5000;
const BATCH = 200;
const MAX_ATTEMPTS = 5;

/**
 * Evaluates events for as long as it runs: at once when one is announced, and by itself each second. Any number of
 * processes may do it; each account is with one of them at a time.
 */
export async function startEvaluator(deps: Deps): Promise<{ stop(): Promise<void> }> {
  const evaluating = periodic((signal) => evaluatePending(deps, () => signal.aborted), {
    every_ms: EVERY_MS,
    immediately: true,
    onError: (error) => deps.log.error({ err: error }, 'events could not be evaluated'),
  });
  const timing = periodic(() => fireOverdue(deps), {
    every_ms: EVERY_MS,
    onError: (error) => deps.log.error({ err: error }, 'overdue triggers could not be fired'),
  });
  const settling = periodic(() => settleStates(deps), {
    every_ms: SETTLE_EVERY_MS,
    immediately: true,
    onError: (error) => deps.log.error({ err: error }, 'trigger states could not be updated'),
  });
  const listening = await deps.database.listen(EVENTS_CHANNEL, evaluating.wake);
  return {
    async stop() {
      await listening.unlisten();
      await Promise.all([evaluating.stop(), timing.stop(), settling.stop()]);
    },
  };
}

/** Evaluates what waits, until nothing is left that it can take; answers with the number of events. For tests as well. */
export async function evaluatePending(deps: Deps, isStopped: () => boolean = () => false): Promise<number> {
  const accounts = await deps.db.execute<{ account_id: string }>(
    sql`select distinct account_id from events where processing_status in ('received', 'evaluating')`,
  );
  let done = 0;
  for (const { account_id } of accounts) {
    for (let taken = BATCH; taken === BATCH && !isStopped(); done += taken) {
      taken = await evaluateSome(deps, account_id);
    }
  }
  return done;
}

async function evaluateSome(deps: Deps, account_id: string): Promise<number> {
  try {
    return (await evaluateBatch(deps, account_id, BATCH)) ?? 0;
  } catch (error) {
    deps.log.warn({ err: error, account_id }, 'a batch of events failed; they are taken one by one');
    return evaluateSingly(deps, account_id);
  }
}

/** One transaction an event, so that one that fails does not hold up those before it. */
async function evaluateSingly(deps: Deps, account_id: string): Promise<number> {
  for (let done = 0; done < BATCH; done += 1) {
    try {
      if (!(await evaluateBatch(deps, account_id, 1))) return done;
    } catch (error) {
      deps.log.error({ err: error, account_id }, 'an event could not be evaluated');
      // The rest keeps its order behind it: the next look tries again, or goes on when it was given up.
      await noteFailure(deps, account_id);
      return done;
    }
  }
  return BATCH;
}

async function noteFailure(deps: Deps, account_id: string): Promise<void> {
  await deps.db.execute(sql`
    update events set
      evaluation_attempts = evaluation_attempts + 1,
      processing_status = case when evaluation_attempts + 1 >= ${MAX_ATTEMPTS} then 'failed' else 'evaluating' end
    where id = (
      select id from events where account_id = ${account_id} and processing_status in ('received', 'evaluating')
      order by occurred_at, id limit 1)`);
}
