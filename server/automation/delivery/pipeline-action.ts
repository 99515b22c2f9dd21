import { and, eq, isNull, sql } from 'drizzle-orm';
import { type ConnectionRow, connectionRuns, connections, type StreamRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import type { TriggerAction } from '../triggers/action-schema.ts';
import { automationActor } from '../../events/trigger-events.ts';
import { emitConnectionChange } from '../../events/connection-events.ts';
import { ApiError } from '../../platform/errors.ts';
import { readAccountPlan } from '../../billing/account-plan.ts';
import { type RunStart, StartRefused, startRun } from '../../runs/start.ts';
import { streamsToRerun } from '../../runs/streams.ts';
import { DeliveryError, permanent, temporary } from './delivery-error.ts';
import type { DeliveryJob } from './template-values.ts';

type Change = Extract<TriggerAction, { type: 'pause_connection' | 'run_connection' | 'rerun_run' }>;

/**
 * Carries out an action on a pipeline, in the transaction that marks its delivery as made: once and no more, however
 * often the job runs.
 * @throws DeliveryError
 */
export async function changePipeline(db: Db, deps: Deps, change: { job: DeliveryJob; action: Change }): Promise<void> {
  const { job, action } = change;
  if (action.type === 'pause_connection') return pause(db, job, await lockConnection(db, job, null));
  if (action.type === 'rerun_run') return rerun(db, deps, { job, max_reruns: action.max_reruns });
  const connection = await lockConnection(db, job, action.connection_id);
  await start(db, deps, { job, connection, trigger_type: 'automation' });
}

async function lockConnection(db: Db, { trigger, event }: DeliveryJob, id: string | null): Promise<ConnectionRow> {
  const wanted = id ?? event.connection_id;
  if (wanted === null) throw permanent('no_connection', 'The event does not refer to a connection');
  const [row] = await db
    .select()
    .from(connections)
    .where(
      and(eq(connections.id, wanted), eq(connections.account_id, trigger.account_id), isNull(connections.deleted_at)),
    )
    .for('no key update');
  if (!row) throw permanent('connection_gone', 'The connection was deleted');
  return row;
}

async function pause(db: Db, { trigger, event }: DeliveryJob, connection: ConnectionRow): Promise<void> {
  if (connection.status !== 'active') return;
  await db
    .update(connections)
    .set({
      status: 'paused',
      status_reason: 'paused_by_trigger',
      next_run_at: null,
      revision: sql`${connections.revision} + 1`,
    })
    .where(eq(connections.id, connection.id));
  await emitConnectionChange(db, {
    event: 'connection_paused',
    connection,
    sentence: `was paused by the trigger "${trigger.name}"`,
    changed_fields: ['status'],
    actor: automationActor(trigger),
    causation_depth: event.causation_depth + 1,
  });
}

async function rerun(db: Db, deps: Deps, { job, max_reruns }: { job: DeliveryJob; max_reruns: number }): Promise<void> {
  const run_id = job.event.connection_run_id;
  const [run] = run_id ? await db.select().from(connectionRuns).where(eq(connectionRuns.id, run_id)) : [];
  if (!run) throw permanent('no_run', 'The event does not refer to a run');
  if (run.custom_run_plan_id !== null)
    throw permanent('custom_run', 'Chunks of a custom run cannot be rerun by a trigger');
  if ((await rerunsBefore(db, run.id)) >= max_reruns) {
    const message = `The run was already rerun ${max_reruns} times`;
    throw new DeliveryError('max_reruns', message, { retryable: false, obsolete: true });
  }
  const connection = await lockConnection(db, job, run.connection_id);
  await start(db, deps, {
    job,
    connection,
    trigger_type: 'rerun',
    rerun_of_run_id: run.id,
    findStreams: () => streamsToRerun(db, { connection, run }),
  });
}

/** The number of reruns that precede this run, manual ones included. */
async function rerunsBefore(db: Db, run_id: string): Promise<number> {
  const [row] = await db.execute<{ reruns: number }>(sql`
    with recursive chain as (
      select id, rerun_of_run_id, 0 as reruns from connection_runs where id = ${run_id}
      union all
      select r.id, r.rerun_of_run_id, chain.reruns + 1
      from connection_runs r join chain on r.id = chain.rerun_of_run_id where chain.reruns < 100
    ) select max(reruns) as reruns from chain`);
  return row?.reruns ?? 0;
}

type Start = Pick<RunStart, 'connection' | 'trigger_type' | 'rerun_of_run_id'> & {
  job: DeliveryJob;
  findStreams?: () => Promise<StreamRow[]>;
};

async function start(db: Db, deps: Deps, { job, findStreams, ...run }: Start): Promise<void> {
  const { connection } = run;
  if (connection.status !== 'active') {
    throw permanent('connection_not_active', `The connection is ${connection.status}`);
  }
  const account = await readAccountPlan(db, connection.account_id, { now: deps.now() });
  try {
    await startRun(db, deps, {
      ...run,
      account,
      streams: await findStreams?.(),
      actor: automationActor(job.trigger),
      causation_depth: job.event.causation_depth + 1,
    });
  } catch (error) {
    if (error instanceof ApiError) throw deliveryError(error);
    throw error;
  }
}

/** An active run may have started before the data that the action is about: the action waits for its end. */
function deliveryError(error: ApiError): DeliveryError {
  const mayPass = error instanceof StartRefused ? error.temporary : error.code === 'run_not_terminal';
  const code = error.status === 402 ? 'plan_limit' : error.code;
  return mayPass ? temporary(code, error.message) : permanent(code, error.message);
}
