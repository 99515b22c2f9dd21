import { eq, sql } from 'drizzle-orm';
import { type ConnectionRow, connections } from '../../../db/schema/index.ts';
import { checkSchedule, isContinuous } from '../../pipeline/schedule.ts';
import { reviewText } from '../../pipeline/schema-summary.ts';
import { ApiError, badRequest, RequestShapeError } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { changedColumns, pick } from '../../api/changed-columns.ts';
import { refuseDuplicateName } from '../../api/duplicate-name.ts';
import { readChanges } from '../../catalog/apply-schema-changes.ts';
import { connectionLocked, requireActivation, requireSchedule } from '../../billing/limits.ts';
import { requireReadyConnectors } from '../../connector-runtime/require-ready.ts';
import { accountPlan } from '../access/account-plan.ts';
import { findConnection, lockConnection, stopRunsOf } from '../access/connection.ts';
import { readCatalog } from './catalog.ts';
import { emitConnectionEvent } from './events.ts';
import { refuseUnkeptRejects } from './rejected-rows.ts';
import { requireContinuous } from './require-continuous.ts';
import type { ConnectionSchema, UpdateConnectionRequest } from './schema.ts';
import { getConnection } from './service.ts';
import { tickingFrom } from './next-run.ts';
import { verificationColumns } from './verification-schedule.ts';
import { lockTables } from '../../catalog/written-tables.ts';
import { connectorPair, updateStreams } from './streams/update.ts';

/** Columns that take the value of the request unchanged. */
const PLAIN = [
  'name',
  'description',
  'backfill_days',
  'start_date',
  'destination_schema',
  'table_prefix',
  'schema_change_policy',
  'consistency',
  'inexact_values',
  'rejected_rows_policy',
  'max_rejected_rows',
  'max_parallel_streams',
  'notify_on_failure',
  'tags',
  'folder',
  'owner',
] as const;

type Changes = Partial<typeof connections.$inferInsert>;
/** Columns derived from others. Events do not list them as changed. */
const DERIVED = ['next_run_at', 'ticking_since', 'next_verification_at', 'consecutive_failures'];

/** Updates a connection. A request that changes nothing creates no revision, timestamp or event. */
export async function updateConnection(
  ctx: Ctx,
  input: UpdateConnectionRequest & { connection_id: string },
): Promise<ConnectionSchema> {
  const { id } = await findConnection(ctx, input.connection_id);
  if (input.stop_active_run) await stopRunsOf(ctx, id, 'connection_paused');
  const connection = await lockConnection(ctx, id);
  // Before the locks of the account's plan, which a create acquires after this one.
  if (input.streams || input.table_prefix !== undefined || input.destination_schema !== undefined)
    await lockTables(ctx.db, ctx.principal.account_id);
  refuseStaleOrImmutable(ctx, connection, input);
  if (input.rejected_rows_policy === 'keep') {
    refuseUnkeptRejects(input, (await connectorPair(ctx, connection)).destination_connector);
  }
  const changes: Changes = {
    ...changedColumns(connection, pick(input, PLAIN)),
    ...(await statusChanges(ctx, connection, input)),
    ...verificationChanges(ctx, connection, input),
  };
  Object.assign(changes, scheduleChanges(ctx, { ...connection, ...changes }, input));
  for (const schedule of [changes.schedule, changes.verification_schedule]) {
    if (schedule) requireSchedule(await accountPlan(ctx), schedule, ctx.deps.now());
  }
  if (changes.schedule) {
    const catalog = await readCatalog(ctx, connection.source_id);
    requireContinuous(changes.schedule, { ...(await connectorPair(ctx, connection)), catalog });
  }
  const changed_fields = Object.keys(changes).filter((key) => !DERIVED.includes(key));
  changed_fields.push(...(await updateStreams(ctx, connection, input)));
  if (changed_fields.length === 0) return getConnection(ctx, { connection_id: id });
  const { schedule, status } = { ...connection, ...changes };
  // After failures the next run may be 20 minutes away, which the change may solve.
  if (isContinuous(schedule) && status === 'active') changes.next_run_at ??= ctx.deps.now().toISOString();
  await store(ctx, connection, { changes, changed_fields });
  return getConnection(ctx, { connection_id: id });
}

function refuseStaleOrImmutable({ if_match }: Ctx, connection: ConnectionRow, input: UpdateConnectionRequest): void {
  if (if_match && !if_match.includes(String(connection.revision))) {
    throw new ApiError(
      412,
      'precondition_failed',
      'The connection has changed since it was read. Reload it and try again',
      {
        revision: connection.revision,
      },
    );
  }
  if (input.revision !== undefined && input.revision !== connection.revision) {
    throw badRequest('stale_revision', 'The connection has changed since this revision. Reload it and try again', {
      revision: connection.revision,
    });
  }
  for (const field of ['source_id', 'destination_id'] as const) {
    if (input[field] === undefined || input[field] === connection[field]) continue;
    throw badRequest('immutable_field', `${field} cannot be changed`, { field });
  }
}

async function statusChanges(ctx: Ctx, connection: ConnectionRow, input: UpdateConnectionRequest): Promise<Changes> {
  const { status } = input;
  if (status === undefined || status === connection.status) return {};
  if (connection.status === 'locked') throw await connectionLocked(ctx.db, await accountPlan(ctx), connection);
  if (status === 'paused') return { status, status_reason: null };
  if (status !== 'active') {
    throw new RequestShapeError([{ loc: ['body', 'status'], msg: 'Input should be active, paused', type: 'enum' }]);
  }
  await requireReadyConnectors(ctx.db, [connection.source_id, connection.destination_id]);
  if (connection.schema_change_status === 'breaking') {
    const breaking = (await readChanges(ctx.db, connection.id)).filter((change) => change.breaking);
    throw badRequest('breaking_change_unreviewed', `The connection cannot run because ${reviewText(breaking)}`);
  }
  const activated = { connection_id: connection.id, now: ctx.deps.now() };
  await requireActivation(ctx.db, await accountPlan(ctx), activated);
  return { status, status_reason: null, consecutive_failures: 0 };
}

/** `connection` has the changes applied. Ticks restart when the schedule or the status changes. */
function scheduleChanges(ctx: Ctx, connection: ConnectionRow, input: UpdateConnectionRequest): Changes {
  const now = ctx.deps.now();
  const schedule = input.schedule ?? connection.schedule;
  if (input.schedule) checkSchedule(input.schedule, now);
  const next = () => tickingFrom(now, { status: connection.status, schedule });
  if (!Bun.deepEquals(schedule, connection.schedule)) return { schedule, ...next() };
  const on = connection.next_run_at !== null;
  const shouldBeOn = connection.status === 'active' && schedule.type !== 'manual';
  return on === shouldBeOn ? {} : next();
}

function verificationChanges(
  ctx: Ctx,
  connection: ConnectionRow,
  { verification_schedule }: UpdateConnectionRequest,
): Changes {
  if (verification_schedule === undefined) return {};
  if (Bun.deepEquals(verification_schedule, connection.verification_schedule)) return {};
  return verificationColumns(verification_schedule, ctx.deps.now());
}

async function store(
  ctx: Ctx,
  connection: ConnectionRow,
  { changes, changed_fields }: { changes: Changes; changed_fields: string[] },
): Promise<void> {
  const storing = ctx.db
    .update(connections)
    .set({ ...changes, revision: sql`${connections.revision} + 1`, updated_by: ctx.principal.user_id })
    .where(eq(connections.id, connection.id))
    .returning();
  const [changed] = await refuseDuplicateName('connection', storing);
  if (!changed) throw new Error(`connection ${connection.id} does not exist`);
  const before = Object.fromEntries(changed_fields.map((key) => [key, connection[key as keyof ConnectionRow] ?? null]));
  const after = Object.fromEntries(changed_fields.map((key) => [key, changed[key as keyof ConnectionRow] ?? null]));
  const change = { connection: changed, changed_fields, before, after };
  if (changed.status !== connection.status) {
    await emitConnectionEvent(ctx, changed.status === 'active' ? 'connection_resumed' : 'connection_paused', change);
  }
  await emitConnectionEvent(ctx, 'connection_updated', change);
}
