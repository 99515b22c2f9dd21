import { and, eq, isNull, sql } from 'drizzle-orm';
import { pipelined } from '../../../db/pipelined.ts';
import { type AccountConnectorRow, connections } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import { kindOf } from '../../pipeline/connection-kind.ts';
import { checkSchedule, MANUAL, nextRunAt } from '../../pipeline/schedule.ts';
import { type ActCtx, actorOf, type Ctx, requirePermission } from '../../api/procedure.ts';
import { duplicateName, refuseDuplicateName } from '../../api/duplicate-name.ts';
import type { AccountPlan } from '../../billing/account-plan.ts';
import { requireFeature, requireSchedule } from '../../billing/limits.ts';
import { requireReadyConnectors } from '../../connector-runtime/require-ready.ts';
import { startRun } from '../../runs/start.ts';
import { accountPlan, checkLimit } from '../access/account-plan.ts';
import { discoverCatalogTask } from '../access/discovery-task.ts';
import { checkUsageRange, type UsageInput } from '../../api/usage-range.ts';
import { ensureCatalog, readCatalog } from './catalog.ts';
import { withCopiedFields } from './copy-field-mapping.ts';
import { refuseUnkeptRejects } from './rejected-rows.ts';
import { requireContinuous } from './require-continuous.ts';
import { emitConnectionEvent } from './events.ts';
import { resolveSides, type Sides } from './streams/references.ts';
import type { ConnectionSchema, CreateConnectionRequest } from './schema.ts';
import { getConnection } from './service.ts';
import { storeStreams } from './streams/store.ts';
import { checkedPlan, refuseFindings } from './streams/check.ts';
import { lockTables } from '../../catalog/written-tables.ts';
import type { CatalogStream, PlannedStream } from './streams/selection.ts';
import type { StreamFinding } from './streams/finding.ts';
import { verificationColumns } from './verification-schedule.ts';

/**
 * Creates a connection. A source without a catalog is discovered before the transaction begins. If it takes its time, a
 * task goes on with the discovery: a connection without named streams exists at once and gets its streams from the task.
 */
export async function createConnection(
  ctx: ActCtx,
  input: CreateConnectionRequest & UsageInput,
): Promise<ConnectionSchema> {
  if (input.run_immediately) requirePermission(ctx, 'connections.run');
  checkUsageRange(input.usage);
  if (input.schedule) checkSchedule(input.schedule, ctx.deps.now());
  const { source } = await resolveSides(ctx, input, { lock: null });
  const needsCatalog =
    input.streams !== undefined || input.run_immediately || Boolean(input.copy_field_mapping_from_connection_id);
  const { all_ms, named_ms } = ctx.deps.discovery_waits;
  const discovered = await ensureCatalog(ctx, source, needsCatalog ? named_ms : all_ms);
  if (!discovered && needsCatalog) await refuseUndiscovered(ctx, source);
  const id = await ctx.change(async (db) => {
    const connection_id = await insertConnection({ ...ctx, db }, input, discovered ? 'share' : 'no key update');
    if (!discovered) await discoverCatalogTask({ ...ctx, db }, { account_connector_id: source.id, connection_id });
    return connection_id;
  });
  // By the statement of the pool, which is built once: that of `ctx.db` would be built for this call.
  return getConnection({ ...ctx, db: ctx.deps.db }, { connection_id: id });
}

async function refuseUndiscovered(ctx: Ctx, source: AccountConnectorRow): Promise<never> {
  const task_id = await ctx.db.transaction((db) =>
    discoverCatalogTask({ ...ctx, db }, { account_connector_id: source.id, connection_id: null }),
  );
  throw badRequest(
    'catalog_not_ready',
    `The streams of "${source.name}" are still being discovered. Wait for the task, or create the connection without streams`,
    { field: 'source_id', account_connector_id: source.id, task_id },
  );
}

async function insertConnection(
  ctx: Ctx,
  input: CreateConnectionRequest & UsageInput,
  lock: 'share' | 'no key update',
): Promise<string> {
  const [sides, catalog, account] = await pipelined(
    () => resolveSides(ctx, input, { lock }),
    () => readCatalog(ctx, input.source_id),
    () => accountPlan(ctx),
  );
  refuseUnkeptRejects(input, sides.destination_connector);
  if (input.schedule) requireContinuous(input.schedule, { ...sides, catalog });
  const [, , { planned, findings }] = await pipelined(
    () => lockTables(ctx.db, ctx.principal.account_id),
    () => refuseTakenName(ctx, input.name),
    () => planNewStreams(ctx, input, { ...sides, catalog }),
  );
  refuseFindings(findings);
  if (input.run_immediately) await requireReadyConnectors(ctx.db, [sides.source.id, sides.destination.id]);
  await checkPlan(ctx, account, { input, sides });
  const inserting = ctx.db
    .insert(connections)
    .values(valuesOf(ctx, input, sides))
    .returning();
  const [connection] = await refuseDuplicateName('connection', inserting);
  if (!connection) throw new Error('the insert returned no row');
  const ends = [sides.source, sides.destination];
  await pipelined(
    () => emitConnectionEvent(ctx, 'connection_created', { connection, changed_fields: [], ends }),
    () => storeStreams(ctx, connection, { before: [], planned }),
  );
  if (input.run_immediately) {
    await startRun(ctx.db, ctx.deps, { connection, account, trigger_type: 'api', actor: actorOf(ctx.principal) });
  }
  return connection.id;
}

/** Before the check of the streams: a repeated request would find its own tables taken. */
async function refuseTakenName(ctx: Ctx, name: string): Promise<void> {
  const isTaken = and(
    eq(connections.account_id, ctx.principal.account_id),
    isNull(connections.deleted_at),
    sql`lower(${connections.name}) = lower(${name})`,
  );
  const [taken] = await ctx.db.select({ id: connections.id }).from(connections).where(isTaken);
  if (taken) throw duplicateName('connection');
}

async function checkPlan(
  ctx: Ctx,
  account: AccountPlan,
  { input, sides }: { input: CreateConnectionRequest & UsageInput; sides: Sides },
): Promise<void> {
  if (kindOf(sides) === 'reverse_etl') requireFeature(account, 'reverse_etl');
  for (const schedule of [input.schedule, input.verification_schedule]) {
    if (schedule) requireSchedule(account, schedule, ctx.deps.now());
  }
  await checkLimit(ctx, account, { limit: 'max_connections', range: input.usage });
}

/** What the request consists of, for a connection that may not have a name yet. */
export type NewStreams = Pick<
  CreateConnectionRequest,
  'streams' | 'destination_schema' | 'table_prefix' | 'copy_field_mapping_from_connection_id'
>;

/** The streams of a new connection, and what is wrong with them. */
export async function planNewStreams(
  ctx: Ctx,
  input: NewStreams,
  sides: Sides & { catalog: CatalogStream[] },
): Promise<{ planned: PlannedStream[]; findings: StreamFinding[] }> {
  const { catalog, source, source_connector, destination_connector, destination } = sides;
  const from = input.copy_field_mapping_from_connection_id;
  const asked = input.streams ?? null;
  const requests = from ? await withCopiedFields(ctx, { from, sides, catalog, requests: asked }) : asked;
  const selection = {
    catalog,
    source_connector,
    destination_connector,
    reverse_etl: kindOf(sides) === 'reverse_etl',
    table_prefix: input.table_prefix ?? '',
    requests,
    current: new Map(),
    unnamed: 'keep' as const,
  };
  const destination_schema = input.destination_schema ?? null;
  return checkedPlan(ctx, selection, { connection_id: null, source, destination, destination_schema });
}

/** Nobody can correct an event that was sent, so it must not hold up those after it. */
const defaultRejectedRowsPolicy = ({ source_connector, destination_connector }: Sides) =>
  source_connector.receiver && destination_connector.keeps_rejects ? 'keep' : 'fail';

function valuesOf(ctx: Ctx, input: CreateConnectionRequest, sides: Sides): typeof connections.$inferInsert {
  const schedule = input.schedule ?? MANUAL;
  const status = input.status ?? 'active';
  const now = ctx.deps.now();
  const { name, description, backfill_days, start_date, destination_schema, table_prefix } = input;
  const { schema_change_policy, consistency, inexact_values, max_rejected_rows } = input;
  const rejected_rows_policy = input.rejected_rows_policy ?? defaultRejectedRowsPolicy(sides);
  const { max_parallel_streams, notify_on_failure, tags, folder, owner } = input;
  return {
    account_id: ctx.principal.account_id,
    source_id: sides.source.id,
    destination_id: sides.destination.id,
    kind: kindOf(sides),
    name,
    description,
    status,
    schedule,
    next_run_at: status === 'active' ? nextRunAt(schedule, { anchor: now, after: now }) : null,
    ...verificationColumns(input.verification_schedule ?? null, now),
    backfill_days,
    start_date,
    destination_schema,
    table_prefix,
    schema_change_policy,
    consistency,
    inexact_values,
    rejected_rows_policy,
    max_rejected_rows,
    max_parallel_streams,
    notify_on_failure,
    tags,
    folder,
    owner,
    catalog_refreshed_at: sides.source.catalog_refreshed_at,
    created_by: ctx.principal.user_id,
    updated_by: ctx.principal.user_id,
  };
}
