import { and, eq, inArray } from 'drizzle-orm';
import {
  type ConnectionRow,
  connectionRuns,
  type CustomRunPlanRow,
  customRunPlans,
  type RunRow,
  streamRuns,
} from '../../../db/schema/index.ts';
import type { AccountPlan } from '../../billing/account-plan.ts';
import { requireChunks, requireFeature } from '../../billing/limits.ts';
import { type ChunkStart, MOMENTARY, startChunks } from '../../runs/start.ts';
import { emitPlanEvent } from '../../events/custom-run-events.ts';
import { storedParameters } from '../../pipeline/custom-run/parameters.ts';
import type { RunParameters } from '../../pipeline/custom-run/plan.ts';
import type { PlanNotice } from '../../pipeline/custom-run/streams.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { lockConnection } from '../access/connection.ts';
import { accountPlan } from '../access/account-plan.ts';
import { chunksToLaunch, earlierLaunch, type LaunchChunks } from './launch-chunks.ts';
import { decisionOf, storePlan } from './custom-plan.ts';
import type { CustomRunParameters, CustomRunPlanLaunchRequest, CustomRunPlanLaunchResponse } from './custom-schema.ts';
import { resolveStreams } from './custom-streams.ts';

/**
 * Starts the runs of a stored plan. Each chunk is launched once: a further launch starts those that are left, and returns
 * the earlier response if there are none.
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
    throw badRequest('plan_of_other_connection', 'This plan belongs to a different connection');
  }
  if (input.plan_hash != null && input.plan_hash !== plan.plan_hash) {
    throw badRequest('plan_hash_mismatch', 'plan_hash does not match this plan');
  }
  const chunks = await chunksToLaunch(ctx, plan, input.chunk_indexes ?? null);
  if (plan.launch_response && chunks.run.length === 0) return earlierLaunch(plan, chunks);
  refuseUnfit(plan, { revision: connection.revision, now: ctx.deps.now(), confirm: input.confirm });
  // The account may have moved to a smaller plan since the preview.
  const account = await accountPlan(ctx);
  requireFeature(account, 'custom_runs');
  requireChunks(account, decisionOf(plan).total_chunks);
  return launch(ctx, { connection, account, plan, chunks });
}

/**
 * Plans and launches in one request. Returns the id of the first run, or null if every chunk is skipped.
 * @throws ApiError 400 as preview and launch, and with the code of a blocker; 402.
 */
export async function runCustom(
  ctx: Ctx,
  connection: ConnectionRow,
  parameters: CustomRunParameters,
): Promise<string | null> {
  const account = await accountPlan(ctx);
  const plan = await storePlan(ctx, connection, { parameters, account });
  const { blockers, total_chunks } = decisionOf(plan);
  const blocker = lasting(blockers).find(({ code }) => code !== 'max_custom_run_chunks');
  if (blocker) throw badRequest(blocker.code, blocker.message);
  if (storedParameters(plan.parameters).clear_destination)
    throw needsConfirmation('To clear the destination, preview the run and launch its plan with confirm');
  requireFeature(account, 'custom_runs');
  requireChunks(account, total_chunks);
  const chunks = await chunksToLaunch(ctx, plan, null);
  return (await launch(ctx, { connection, account, plan, chunks })).first_connection_run_id;
}

/**
 * Starts a chunk of a custom run again with the same parameters. Returns the id of the new run.
 * @throws ApiError 400 `run_already_active`, `account_connector_not_ready`; 402.
 */
export async function rerunChunk(
  ctx: Ctx,
  connection: ConnectionRow,
  { run, streams }: { run: RunRow; streams: { id: string }[] },
): Promise<string> {
  const parameters = storedParameters(run.custom_run_parameters!);
  const stream_ids = streams.map(({ id }) => id);
  const [id] = await launchChunks(ctx, {
    connection,
    account: await accountPlan(ctx),
    parameters: { ...parameters, stream_ids, stream_names: null },
    plan: { id: run.custom_run_plan_id!, parameters, total_chunks: run.chunk_count ?? 1 },
    chunks: [{ index: run.chunk_index ?? 0, start_date: run.window_start, end_date: run.window_end }],
    rerun_of_run_id: run.id,
  });
  return id!;
}

async function findPlan(ctx: Ctx, id: string): Promise<CustomRunPlanRow> {
  const [plan] = await ctx.db
    .select()
    .from(customRunPlans)
    .where(and(eq(customRunPlans.id, id), eq(customRunPlans.account_id, ctx.principal.account_id)));
  if (!plan) throw notFound('Plan');
  return plan;
}

/** Without those that the start itself checks again, which has their status and details. */
const lasting = (blockers: readonly PlanNotice[]) => blockers.filter(({ code }) => !MOMENTARY.includes(code));

const refuseBlocked = (blockers: readonly PlanNotice[]) => {
  if (blockers.length > 0) throw badRequest('plan_blocked', blockers[0]!.message, { blockers });
};

const needsConfirmation = (message: string) => badRequest('confirmation_required', message);

function refuseUnfit(plan: CustomRunPlanRow, now: { revision: number; now: Date; confirm: boolean }): void {
  const { requires_confirmation, ...decision } = decisionOf(plan);
  const blockers = lasting(decision.blockers);
  if (Date.parse(plan.expires_at) <= now.now.getTime()) {
    throw badRequest('plan_expired', 'The plan has expired. Preview the run again', { expires_at: plan.expires_at });
  }
  if (plan.connection_revision !== now.revision) {
    throw badRequest('plan_stale', 'The connection has changed since the plan was created. Preview the run again');
  }
  refuseBlocked(blockers);
  if (requires_confirmation && !now.confirm)
    throw needsConfirmation('This plan needs confirmation: set confirm to true');
}

interface Launch {
  connection: ConnectionRow;
  account: AccountPlan;
  plan: CustomRunPlanRow;
  chunks: LaunchChunks;
}

async function launch(
  ctx: Ctx,
  { connection, account, plan, chunks: { run: launched, skipped } }: Launch,
): Promise<CustomRunPlanLaunchResponse> {
  const { total_chunks } = decisionOf(plan);
  const parameters = storedParameters(plan.parameters);
  const started = { id: plan.id, parameters, total_chunks };
  const ids =
    launched.length === 0
      ? []
      : await launchChunks(ctx, { connection, account, parameters, plan: started, chunks: launched });
  const queued = await countWaiting(ctx, ids);
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
    .set({
      launched_at: response.launched_at,
      launch_response: [...(plan.launch_response ?? []), { ...response }],
      ...(ids.length > 0 && { completed_at: null }),
    })
    .where(eq(customRunPlans.id, plan.id));
  if (ids.length > 0)
    await emitPlanEvent(ctx.db, { event: 'custom_run_launched', plan, actor: actorOf(ctx.principal) });
  return response;
}

type Chunks = Pick<ChunkStart, 'connection' | 'account' | 'plan' | 'chunks' | 'rerun_of_run_id'> & {
  /** Selects the streams. */
  parameters: RunParameters;
};

async function launchChunks(ctx: Ctx, { parameters, ...start }: Chunks): Promise<string[]> {
  const { streams, blockers } = await resolveStreams(ctx, start.connection, parameters);
  // The catalog of the source may have changed since the preview.
  refuseBlocked(blockers);
  return startChunks(ctx.db, ctx.deps, { ...start, streams, actor: actorOf(ctx.principal) });
}

/** The number of runs without a dispatched stream. */
async function countWaiting(ctx: Ctx, ids: string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const rows = await ctx.db
    .select({ id: connectionRuns.id, dispatched_at: streamRuns.dispatched_at })
    .from(connectionRuns)
    .innerJoin(streamRuns, eq(streamRuns.connection_run_id, connectionRuns.id))
    .where(inArray(connectionRuns.id, ids));
  return ids.length - new Set(rows.filter((row) => row.dispatched_at !== null).map((row) => row.id)).size;
}
