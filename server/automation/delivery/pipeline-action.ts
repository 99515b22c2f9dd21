import { and, eq, inArray, isNotNull, isNull, ne, sql } from 'drizzle-orm';
import {
  accountConnectors,
  catalogStreams,
  type ConnectionRow,
  connectionRuns,
  connections,
  connectionStreams,
  streamRuns,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import type { TriggerAction } from '../triggers/action-schema.ts';
import { automationActor } from '../cases/cases.ts';
import { emit } from '../../events/emit.ts';
import { ApiError } from '../../platform/errors.ts';
import { movementRefusal } from '../../billing/credits.ts';
import { type StartRun, startRun } from '../../runs/lifecycle.ts';
import { connectionFacts } from '../../events/run-events.ts';
import { isLiveRun } from '../../pipeline/run-states.ts';
import { DeliveryError, permanent, temporary } from './delivery-error.ts';
import type { DeliveryJob } from './template-values.ts';

type Change = Extract<TriggerAction, { type: 'pause_connection' | 'run_connection' | 'rerun_run' }>;

/**
 * Performs an action on a pipeline, in the transaction that marks its delivery as delivered. It happens exactly once,
 * however often the job runs.
 * @throws DeliveryError
 */
export async function changePipeline(db: Db, deps: Deps, change: { job: DeliveryJob; action: Change }): Promise<void> {
  const { job, action } = change;
  if (action.type === 'pause_connection') return pause(db, job, await lockConnection(db, job, null));
  if (action.type === 'rerun_run') return rerun(db, deps, { job, max_reruns: action.max_reruns });
  const connection = await lockConnection(db, job, action.connection_id);
  const streams = await db
    .select()
    .from(connectionStreams)
    .where(and(eq(connectionStreams.connection_id, connection.id), eq(connectionStreams.selected, true)))
    .orderBy(sql`coalesce(${connectionStreams.namespace}, '')`, connectionStreams.name);
  await start(db, deps, { job, run: { connection, streams, trigger_type: 'automation' } });
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
    .for('update');
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
  await emit(db, {
    account_id: connection.account_id,
    event: 'connection_paused',
    actor: automationActor(trigger),
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `Connection "${connection.name}" was paused by the trigger "${trigger.name}"`,
    connection_id: connection.id,
    payload: { ...(await connectionFacts(db, connection.id)), changed_fields: ['status'] },
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
  if (isLiveRun(run.status)) throw temporary('run_not_terminal', 'The run has not ended');
  const streams = await streamsOf(db, connection, run.id);
  await start(db, deps, { job, run: { connection, streams, trigger_type: 'rerun', rerun_of_run_id: run.id } });
}

/** Number of reruns that led to this run, manual ones included. */
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

async function streamsOf(db: Db, connection: ConnectionRow, run_id: string) {
  const moved = db
    .select({ id: streamRuns.stream_id })
    .from(streamRuns)
    .where(eq(streamRuns.connection_run_id, run_id));
  const streams = await db
    .select()
    .from(connectionStreams)
    .where(inArray(connectionStreams.id, moved))
    .orderBy(sql`coalesce(${connectionStreams.namespace}, '')`, connectionStreams.name);
  const gone = await db
    .select({ namespace: catalogStreams.namespace, name: catalogStreams.name })
    .from(catalogStreams)
    .where(and(eq(catalogStreams.account_connector_id, connection.source_id), isNotNull(catalogStreams.removed_at)));
  const isGone = (stream: { namespace: string | null; name: string }) =>
    gone.some((one) => one.namespace === stream.namespace && one.name === stream.name);
  const removed = streams.find((stream) => !stream.selected || isGone(stream));
  if (removed) throw permanent('stream_removed', `Stream ${removed.name} of that run no longer exists`);
  return streams;
}

type Run = Pick<StartRun, 'connection' | 'streams' | 'trigger_type' | 'rerun_of_run_id'>;

async function start(db: Db, deps: Deps, { job, run }: { job: DeliveryJob; run: Run }): Promise<void> {
  const { connection, streams } = run;
  if (connection.status !== 'active') {
    throw permanent('connection_not_active', `The connection is ${connection.status}`);
  }
  if (streams.length === 0) throw permanent('no_streams_selected', 'No stream of the connection is selected');
  await requireReady(db, connection);
  const refusal = await movementRefusal(db, connection.account_id, deps.now());
  // Credits held by other runs may be released.
  if (refusal?.code === 'credits_exhausted' && refusal.held > 0) {
    throw temporary('plan_limit', 'The remaining credits are held by active runs');
  }
  if (refusal) {
    throw permanent(
      'plan_limit',
      'The billing plan does not allow the run: credits are used up or a payment is overdue',
    );
  }
  try {
    await startRun(db, deps.queue, {
      ...run,
      run_type: 'plain',
      actor: automationActor(job.trigger),
      causation_depth: job.event.causation_depth + 1,
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // The active run may have started before the data that this action is about: try again once it has ended.
    throw temporary(error.code, error.message);
  }
}

async function requireReady(db: Db, { source_id, destination_id }: ConnectionRow): Promise<void> {
  const [unready] = await db
    .select({ name: accountConnectors.name })
    .from(accountConnectors)
    .where(and(inArray(accountConnectors.id, [source_id, destination_id]), ne(accountConnectors.status, 'active')))
    .limit(1);
  if (unready) throw temporary('account_connector_not_ready', `"${unready.name}" is not ready`);
}
