import { and, eq, isNull } from 'drizzle-orm';
import { connectionRuns, type CustomRunPlanRow } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { decisionOf } from './custom-plan.ts';
import type { CustomRunPlanLaunchResponse, CustomRunPlannerDecision } from './custom-schema.ts';

type PlannedChunk = CustomRunPlannerDecision['chunks'][number];

/** What a launch does with the chunks of its plan. */
export interface LaunchChunks {
  run: PlannedChunk[];
  skipped: CustomRunPlanLaunchResponse['skipped'];
  /** The runs of requested chunks that were launched before. */
  earlier_run_ids: string[];
}

/**
 * The requested chunks, null for all, that no launch has started yet.
 * @throws ApiError 400 `unknown_chunk`.
 */
export async function chunksToLaunch(ctx: Ctx, plan: CustomRunPlanRow, asked: number[] | null): Promise<LaunchChunks> {
  const { chunks } = decisionOf(plan);
  const unknown = asked?.filter((index) => index >= chunks.length) ?? [];
  if (unknown.length > 0) throw badRequest('unknown_chunk', `The plan has no chunk ${unknown.join(', ')}`);
  const isRequested = (index: number) => asked === null || asked.includes(index);
  const launched = await launchedRuns(ctx, plan);
  const isLaunched = (index: number) => launched.some(({ chunk_index }) => chunk_index === index);
  const run = chunks.filter(({ index, action }) => action === 'run' && isRequested(index) && !isLaunched(index));
  const reasonOf = ({ index, skip_reason }: PlannedChunk) =>
    skip_reason ?? (isLaunched(index) ? 'already_launched' : 'not_requested');
  const skipped = chunks.filter((chunk) => !run.includes(chunk));
  return {
    run,
    skipped: skipped.map((chunk) => ({ index: chunk.index, reason: reasonOf(chunk) })),
    earlier_run_ids: launched.filter(({ chunk_index }) => isRequested(chunk_index ?? 0)).map(({ id }) => id),
  };
}

const launchedRuns = (ctx: Ctx, plan: CustomRunPlanRow) =>
  ctx.db
    .select({ id: connectionRuns.id, chunk_index: connectionRuns.chunk_index })
    .from(connectionRuns)
    .where(
      and(
        // Allows an index scan.
        eq(connectionRuns.connection_id, plan.connection_id),
        eq(connectionRuns.custom_run_plan_id, plan.id),
        isNull(connectionRuns.rerun_of_run_id),
      ),
    );

/** The response of the launch that started most of the requested chunks, the newest of several. */
export function earlierLaunch(plan: CustomRunPlanRow, { earlier_run_ids }: LaunchChunks): CustomRunPlanLaunchResponse {
  const responses = (plan.launch_response ?? []) as unknown as CustomRunPlanLaunchResponse[];
  const started = (response: CustomRunPlanLaunchResponse) =>
    response.connection_run_ids.filter((id) => earlier_run_ids.includes(id)).length;
  return responses.reduce((best, one) => (started(one) >= started(best) ? one : best));
}
