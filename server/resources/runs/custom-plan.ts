import { type ConnectionRow, type CustomRunPlanRow, customRunPlans } from '../../../db/schema/index.ts';
import type { AccountPlan } from '../../billing/account-plan.ts';
import { creditsRemaining } from '../../billing/credits.ts';
import {
  isWindowed,
  planCustomRun,
  type PlannedChunk,
  type RunParameters,
  withBlockers,
} from '../../pipeline/custom-run/plan.ts';
import { startBlockers } from '../../runs/start.ts';
import { paceOf } from '../../pipeline/custom-run/estimates.ts';
import { completeParameters, planHash } from '../../pipeline/custom-run/parameters.ts';
import { dayIn } from '../../pipeline/custom-run/windows.ts';
import { CREDIT_RATES } from '../../pipeline/billing-plans.ts';
import type { Ctx } from '../../api/procedure.ts';
import { pastChunks, pastRuns } from './custom-history.ts';
import type { CustomRunParameters, CustomRunPlannerDecision } from './custom-schema.ts';
import { resolveStreams } from './custom-streams.ts';

export const PLAN_TTL_MINUTES = 60;

/**
 * Plans a custom run and stores the plan for its launch.
 * @throws ApiError 400 `invalid_window`, `future_window`, `range_too_long`, `unknown_stream`.
 */
export async function storePlan(
  ctx: Ctx,
  connection: ConnectionRow,
  input: { parameters: CustomRunParameters; account: AccountPlan },
): Promise<CustomRunPlanRow> {
  const now = ctx.deps.now();
  const today = dayIn(connection.schedule.timezone, now);
  const parameters = completeParameters(input.parameters, { today, earliest: connection.start_date });
  const { plan, streams, credits_remaining } = await planFor(ctx, connection, {
    parameters,
    today,
    account: input.account,
  });
  const id = Bun.randomUUIDv7();
  const expires_at = new Date(now.getTime() + PLAN_TTL_MINUTES * 60_000).toISOString();
  const { principal } = ctx;
  const decision: CustomRunPlannerDecision = {
    plan_id: id,
    plan_hash: planHash(parameters, connection),
    expires_at,
    parameters,
    ...plan,
    streams: streams.map(({ stream, supports_date_window, reason }) => {
      return { stream_id: stream.id, stream_name: stream.name, supports_date_window, reason };
    }),
    credits_remaining,
    created_at: now.toISOString(),
    created_by: { id: principal.user_id, name: principal.name, email: principal.email },
  };
  const [row] = await ctx.db
    .insert(customRunPlans)
    .values({
      id,
      account_id: connection.account_id,
      connection_id: connection.id,
      connection_revision: connection.revision,
      plan_hash: decision.plan_hash,
      parameters: { ...parameters },
      decision: { ...decision },
      created_by: principal.user_id,
      created_at: decision.created_at,
      expires_at,
    })
    .returning();
  if (!row) throw new Error('the plan was not stored');
  return row;
}

export const decisionOf = (row: CustomRunPlanRow) => row.decision as unknown as CustomRunPlannerDecision;

async function planFor(
  ctx: Ctx,
  connection: ConnectionRow,
  asked: { parameters: RunParameters; today: string; account: AccountPlan },
) {
  const { parameters, today, account } = asked;
  const { streams, blockers } = await resolveStreams(ctx, connection, parameters);
  const scope = { connection_id: connection.id, stream_ids: streams.map(({ stream }) => stream.id) };
  const [history, past, credits_remaining] = await Promise.all([
    pastChunks(ctx.db, { ...parameters, ...scope }),
    pastRuns(ctx.db, scope),
    creditsRemaining(ctx.db, account),
  ]);
  const plan = planCustomRun({
    parameters,
    streams,
    history,
    pace: paceOf(past),
    credits_per_row: CREDIT_RATES[connection.kind],
    credits_remaining: account.plan.overage_allowed ? null : credits_remaining,
    today,
    max_chunks: account.plan.limits.max_custom_run_chunks,
    blockers,
  });
  const moved = isWindowed(parameters) ? streams.filter((one) => one.supports_date_window) : streams;
  const refusals = await startBlockers(ctx.db, {
    connection,
    account,
    streams: moved.map(({ stream }) => stream),
    windows: plan.chunks.filter(({ action }) => action === 'run').map(windowOf),
  });
  return { plan: withBlockers(plan, refusals), streams, credits_remaining };
}

const windowOf = ({ start_date, end_date }: PlannedChunk) => ({ start: start_date, end: end_date });
