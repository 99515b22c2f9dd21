import { and, eq, inArray } from 'drizzle-orm';
import {
  type ConnectionRow,
  connectionRuns,
  type CustomRunPlanRow,
  customRunPlans,
  type RunRow,
  streamRuns,
} from '../../../db/schema/index.ts';
import { type Launch, launchChunks } from '../../runs/custom/start-chunks.ts';
import { emitPlanEvent } from '../../events/custom-run-events.ts';
import type { RunParameters } from '../../pipeline/custom-run/plan.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { lockConnection } from '../access/connection.ts';
import { checkChunks, checkFeature, checkMovement } from '../access/plan-limits.ts';
import { requireRunnable } from '../access/start-run.ts';
import { decisionOf, parametersOf, storePlan } from './custom-plan.ts';
import type { CustomRunParameters, CustomRunPlanLaunchRequest, CustomRunPlanLaunchResponse } from './custom-schema.ts';
import { chooseStreams } from './custom-streams.ts';

/**
 * Starts the runs of a stored plan, once: who launches it again hears the same answer.
 * @throws ApiError 400 `plan_of_other_connection`, `plan_hash_mismatch`, `plan_expired`, `plan_stale`, `plan_blocked`,
 * `confirmation_required`, `unknown_chunk`, `run_already_active`, `account_connector_not_ready`; 402; 404.
 */
export async function launchPlan(
  ctx: Ctx,
  input: { connection_id: string } & CustomRunPlanLaunchRequest,
): Promise<CustomRunPlanLaunchResponse> {
  const connection = await lockConnection(ctx, input.connection_id);
  const plan = await findPlan(ctx, input.plan_id);
  if (plan.connection_id !== connection.id) {
    throw badRequest('plan_of_other_connection', 'The plan is one of another connection');
  }
  if (input.plan_hash != null && input.plan_hash !== plan.plan_hash) {
    throw badRequest('plan_hash_mismatch', 'plan_hash is not the one of this plan');
  }
  if (plan.launch_response) return plan.launch_response as unknown as CustomRunPlanLaunchResponse;
  refuseUnfit(plan, { revision: connection.revision, now: ctx.deps.now(), confirm: input.confirm });
  // The account may have come to a smaller plan since the preview.
  await checkFeature(ctx, 'custom_runs');
  await checkChunks(ctx, decisionOf(plan).total_chunks);
  return launch(ctx, { connection, plan, chunk_indexes: input.chunk_indexes ?? null });
}

/**
 * Plans and launches in one go. Answers with the id of the first run, or null when every chunk is skipped.
 * @throws ApiError 400 as preview and launch, and a blocker's own code; 402.
 */
export async function runCustom(
  ctx: Ctx,
  connection: ConnectionRow,
  given: CustomRunParameters,
): Promise<string | null> {
  const plan = await storePlan(ctx, connection, given);
  const { blockers, total_chunks } = decisionOf(plan);
  const blocker = blockers.find(({ code }) => code !== 'max_custom_run_chunks');
  if (blocker) throw badRequest(blocker.code, blocker.message);
  if (parametersOf(plan).clear_destination)
    throw needsConfirmation('Clearing the destination needs a plan and its confirmation');
  await checkFeature(ctx, 'custom_runs');
  await checkChunks(ctx, total_chunks);
  return (await launch(ctx, { connection, plan, chunk_indexes: null })).first_connection_run_id;
}

/**
 * Starts one chunk of a custom run anew, as it was. Answers with the new run's id.
 * @throws ApiError 400 `run_already_active`, `account_connector_not_ready`; 402.
 */
export async function rerunChunk(
  ctx: Ctx,
  connection: ConnectionRow,
  { run, streams }: { run: RunRow; streams: { id: string }[] },
): Promise<string> {
  const parameters = run.custom_run_parameters as unknown as RunParameters;
  const stream_ids = streams.map(({ id }) => id);
  const made = await launchChosen(ctx, {
    connection,
    parameters: { ...parameters, stream_ids, stream_names: null },
    plan: { id: run.custom_run_plan_id!, parameters, total_chunks: run.chunk_count ?? 1 },
    chunks: [{ index: run.chunk_index ?? 0, start_date: run.window_start, end_date: run.window_end }],
    rerun_of_run_id: run.id,
  });
  return made[0]!;
}

async function findPlan(ctx: Ctx, id: string): Promise<CustomRunPlanRow> {
  const [plan] = await ctx.db
    .select()
    .from(customRunPlans)
    .where(and(eq(customRunPlans.id, id), eq(customRunPlans.account_id, ctx.principal.account_id)));
  if (!plan) throw notFound('Plan');
  return plan;
}

const needsConfirmation = (message: string) => badRequest('confirmation_required', message);

function refuseUnfit(plan: CustomRunPlanRow, now: { revision: number; now: Date; confirm: boolean }): void {
  const { blockers, requires_confirmation } = decisionOf(plan);
  if (Date.parse(plan.expires_at) <= now.now.getTime()) {
    throw badRequest('plan_expired', 'The plan has expired', { expires_at: plan.expires_at });
  }
  if (plan.connection_revision !== now.revision) {
    throw badRequest('plan_stale', 'The connection has been changed since it was planned');
  }
  if (blockers.length > 0) throw badRequest('plan_blocked', blockers[0]!.message, { blockers });
  if (requires_confirmation && !now.confirm) throw needsConfirmation('This plan needs to be confirmed');
}

async function launch(
  ctx: Ctx,
  {
    connection,
    plan,
    chunk_indexes,
  }: { connection: ConnectionRow; plan: CustomRunPlanRow; chunk_indexes: number[] | null },
): Promise<CustomRunPlanLaunchResponse> {
  const { chunks, total_chunks } = decisionOf(plan);
  const strangers = chunk_indexes?.filter((index) => index >= chunks.length) ?? [];
  if (strangers.length > 0) throw badRequest('unknown_chunk', `The plan has no chunk ${strangers.join(', ')}`);
  const wanted = (index: number) => chunk_indexes === null || chunk_indexes.includes(index);
  const chosen = chunks.filter((chunk) => chunk.action === 'run' && wanted(chunk.index));
  const skipped = chunks
    .filter((chunk) => !chosen.includes(chunk))
    .map(({ index, skip_reason }) => ({ index, reason: skip_reason ?? 'not_requested' }));
  const parameters = parametersOf(plan);
  const made = { connection, parameters, plan: { id: plan.id, parameters, total_chunks }, chunks: chosen };
  const ids = chosen.length === 0 ? [] : await launchChosen(ctx, made);
  const queued = await waiting(ctx, ids);
  const response: CustomRunPlanLaunchResponse = {
    plan_id: plan.id,
    status:
      ids.length === 0
        ? 'nothing_to_do'
        : skipped.some(({ reason }) => reason === 'not_requested')
          ? 'partially_launched'
          : 'launched',
    connection_run_ids: ids,
    first_connection_run_id: ids[0] ?? null,
    launched_count: ids.length,
    queued_count: queued,
    skipped_count: skipped.length,
    skipped,
    launched_at: ctx.deps.now().toISOString(),
  };
  await ctx.db
    .update(customRunPlans)
    .set({ launched_at: response.launched_at, launch_response: { ...response } })
    .where(eq(customRunPlans.id, plan.id));
  if (ids.length > 0)
    await emitPlanEvent(ctx.db, { event: 'custom_run_launched', plan, actor: actorOf(ctx.principal) });
  return response;
}

type Chosen = Pick<Launch, 'plan' | 'chunks' | 'rerun_of_run_id'> & {
  connection: ConnectionRow;
  /** Names the streams. */
  parameters: RunParameters;
};

async function launchChosen(ctx: Ctx, { parameters, ...chosen }: Chosen): Promise<string[]> {
  const { connection, rerun_of_run_id } = chosen;
  const { streams } = await chooseStreams(ctx, connection, parameters);
  await requireRunnable(ctx, connection);
  await checkMovement(ctx);
  return launchChunks(ctx.db, ctx.deps.queue, {
    ...chosen,
    streams,
    trigger_type: rerun_of_run_id === undefined ? 'custom_plan' : 'rerun',
    actor: actorOf(ctx.principal),
  });
}

/** Runs of which no stream has been handed to the workers yet. */
async function waiting(ctx: Ctx, ids: string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const rows = await ctx.db
    .select({ id: connectionRuns.id, dispatched_at: streamRuns.dispatched_at })
    .from(connectionRuns)
    .innerJoin(streamRuns, eq(streamRuns.connection_run_id, connectionRuns.id))
    .where(inArray(connectionRuns.id, ids));
  return ids.length - new Set(rows.filter((row) => row.dispatched_at !== null).map((row) => row.id)).size;
}
