import { and, asc, eq, inArray, ne, sql } from 'drizzle-orm';
import { accountConnectors, type ConnectionRow, connectionStreams, type StreamRow } from '../../../db/schema/index.ts';
import { type StartRun, startRun } from '../../runs/lifecycle.ts';
import { countOf } from '../../billing/usage-counts.ts';
import { type AccountPlan, creditsUsed, readAccountPlan } from '../../billing/credits.ts';
import { type ApiError, badRequest, paymentRequired } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { checkMovement } from './plan-limits.ts';

/**
 * Starts a run with the selected streams, or with `streams`. The connection must be locked.
 * @throws ApiError 400 `account_connector_not_ready`, `no_streams_selected`, `run_already_active`; 402
 * `connection_locked`.
 */
export async function startRunOf(
  ctx: Ctx,
  connection: ConnectionRow,
  options: Pick<StartRun, 'trigger_type' | 'rerun_of_run_id'> & { streams?: StreamRow[] },
): Promise<string> {
  const { streams: chosen, ...how } = options;
  await requireRunnable(ctx, connection);
  const streams = chosen ?? (await selectedStreams(ctx, connection.id));
  if (streams.length === 0) throw badRequest('no_streams_selected', 'No stream of this connection is selected');
  await checkMovement(ctx);
  const run = { connection, streams, run_type: 'plain' as const, actor: actorOf(ctx.principal) };
  return startRun(ctx.db, ctx.deps.queue, { ...run, ...how });
}

/** @throws ApiError 400 `account_connector_not_ready`; 402 `connection_locked`. */
export async function requireRunnable(ctx: Ctx, connection: ConnectionRow): Promise<void> {
  if (connection.status === 'locked') throw await connectionLocked(ctx, connection);
  await requireReadyConnectors(ctx, [connection.source_id, connection.destination_id]);
}

/** @throws ApiError 400 `account_connector_not_ready` with `account_connector_id` and `status`. */
export async function requireReadyConnectors(ctx: Ctx, ids: string[]): Promise<void> {
  const [unready] = await ctx.db
    .select()
    .from(accountConnectors)
    .where(and(inArray(accountConnectors.id, ids), ne(accountConnectors.status, 'active')))
    .limit(1);
  if (!unready) return;
  throw badRequest('account_connector_not_ready', `The ${unready.connector_type} "${unready.name}" is not ready`, {
    account_connector_id: unready.id,
    status: unready.status,
    status_message: unready.status_message,
  });
}

/** 402 with the limit that locked it: only the billing that locked a connection can unlock it. */
export async function connectionLocked(ctx: Ctx, { status_reason }: ConnectionRow): Promise<ApiError> {
  const known = await readAccountPlan(ctx.db, ctx.principal.account_id, { now: ctx.deps.now() });
  return paymentRequired('connection_locked', 'The connection is locked by the limits of the plan', {
    status_reason,
    ...(await lockingLimit(ctx, known, status_reason)),
    plan: known.plan.id,
  });
}

async function lockingLimit({ db }: Ctx, known: AccountPlan, reason: string | null) {
  const { account, plan, period } = known;
  if (reason === 'payment_overdue') return { limit: 'payment', limit_value: null, current_value: null };
  if (reason === 'credits_exhausted') {
    const current_value = await creditsUsed(db, account.id, period);
    return { limit: 'credits_included', limit_value: plan.credits_included, current_value };
  }
  const current_value = await countOf(db, account.id, 'max_connections');
  return { limit: 'max_connections', limit_value: plan.limits.max_connections, current_value };
}

/** By namespace and name. */
export const selectedStreams = (ctx: Ctx, connection_id: string): Promise<StreamRow[]> =>
  ctx.db
    .select()
    .from(connectionStreams)
    .where(and(eq(connectionStreams.connection_id, connection_id), eq(connectionStreams.selected, true)))
    .orderBy(sql`coalesce(${connectionStreams.namespace}, '')`, asc(connectionStreams.name));
