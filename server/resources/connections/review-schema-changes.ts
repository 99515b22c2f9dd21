import { eq, inArray, sql } from 'drizzle-orm';
import {
  type ConnectionRow,
  connections,
  connectionStreams,
  schemaChanges,
  type StreamRow,
} from '../../../db/schema/index.ts';
import type { StreamSchema } from '../../connectors/contract/connector.ts';
import { changeName, type SchemaChange } from '../../pipeline/schema-diff.ts';
import { readChanges } from '../../catalog/apply-schema-changes.ts';
import { isCursor } from '../../pipeline/schema-policy.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findConnection, lockConnection } from '../access/connection.ts';
import { requireActivation } from '../../billing/limits.ts';
import { stateSetTo } from '../../runs/set-state.ts';
import { accountPlan } from '../access/account-plan.ts';
import { requireReadyConnectors } from '../../connector-runtime/require-ready.ts';
import { readCatalog } from './catalog.ts';
import { emitConnectionEvent } from './events.ts';
import { type Decision, reviewedSettings } from './streams/reviewed-settings.ts';
import type { ConnectionSchema } from './schema.ts';
import { getConnection } from './service.ts';
import { readStreams, storeStreams } from './streams/store.ts';
import { checkedPlan, refuseFindings } from './streams/check.ts';
import { lockTables } from '../../catalog/written-tables.ts';
import { streamKey } from './streams/selection.ts';
import { settingsOf } from '../../pipeline/stream-check/settings.ts';
import { tickingFrom } from './next-run.ts';
import { connectorPair, refuseUnlessRollsOver } from './streams/update.ts';

type WaitingChange = SchemaChange & { breaking: boolean };

/**
 * Ends the review of schema changes: `accept` applies them where possible, `ignore` leaves out new streams and fields
 * and keeps key and cursor. Removed streams and fields are dropped in both cases. A connection that the changes
 * disabled resumes.
 * @throws ApiError 400 `run_active`, `account_connector_not_ready`, and the code of a finding where the settings do not
 * work with the source as it is now (a filter on a field that is gone): change them first. 402.
 */
export async function reviewSchemaChanges(
  ctx: Ctx,
  input: { connection_id: string; decision: Decision },
): Promise<ConnectionSchema> {
  const { id } = await findConnection(ctx, input.connection_id);
  const connection = await lockConnection(ctx, id);
  const changes = await readChanges(ctx.db, id);
  // Changes that were taken back at the source wait for no review, but the connection that they disabled does.
  if (changes.length === 0 && !isDisabledByChanges(connection)) return getConnection(ctx, { connection_id: id });
  await refuseUnlessRollsOver(ctx, connection);
  await adaptStreams(ctx, connection, { changes, decision: input.decision });
  await ctx.db.delete(schemaChanges).where(eq(schemaChanges.connection_id, id));
  await storeReview(ctx, connection);
  return getConnection(ctx, { connection_id: id });
}

async function adaptStreams(
  ctx: Ctx,
  connection: ConnectionRow,
  { changes, decision }: { changes: WaitingChange[]; decision: Decision },
): Promise<void> {
  await lockTables(ctx.db, ctx.principal.account_id);
  const before = await readStreams(ctx, connection.id);
  const catalog = await readCatalog(ctx, connection.source_id);
  const schemas = new Map(catalog.map((stream) => [streamKey(stream), stream]));
  const current = new Map(before.map((row) => [streamKey(row), settingsOf(row)]));
  const concerned = Map.groupBy(changes, (one) => streamKey({ name: one.stream_name, namespace: one.namespace }));
  for (const [key, some] of concerned) {
    const settings = current.get(key);
    if (settings) current.set(key, reviewedSettings(settings, { changes: some, decision, schema: schemas.get(key) }));
  }
  const ends = await connectorPair(ctx, connection);
  const { table_prefix, destination_schema } = connection;
  const selection = {
    ...ends,
    catalog,
    reverse_etl: connection.kind === 'reverse_etl',
    table_prefix,
    requests: catalog.filter((stream) => concerned.has(streamKey(stream))).map((stream) => request(stream)),
    current,
    unnamed: 'keep' as const,
  };
  const where = { ...ends, connection_id: connection.id, destination_schema };
  const { planned, findings } = await checkedPlan(ctx, selection, where);
  refuseFindings(findings);
  const gone = before.filter((row) => !schemas.has(streamKey(row)));
  const left = gone.map((row) => ({ ...row, settings: current.get(streamKey(row)) ?? settingsOf(row) }));
  await storeStreams(ctx, connection, { before, planned: [...planned, ...left] });
  if (decision === 'accept') await restartCursors(ctx, before, changes);

  function request(stream: StreamSchema) {
    const added = concerned.get(streamKey(stream))?.some((change) => changeName(change) === 'stream_added');
    return { name: stream.name, namespace: stream.namespace, ...(added && { selected: decision === 'accept' }) };
  }
}

/** A cursor is meaningless after the order of its field changed. */
async function restartCursors(ctx: Ctx, rows: StreamRow[], changes: WaitingChange[]): Promise<void> {
  const reordered = rows.filter((row) =>
    changes.some(
      (change) =>
        change.breaking &&
        change.stream_name === row.name &&
        change.namespace === row.namespace &&
        (change.subject === 'cursor' || isCursor(row, change.field_path ?? [])),
    ),
  );
  if (reordered.length === 0) return;
  await ctx.db
    .update(connectionStreams)
    .set({
      ...stateSetTo(null),
      cursor_updated_at: ctx.deps.now().toISOString(),
    })
    .where(
      inArray(
        connectionStreams.id,
        reordered.map(({ id }) => id),
      ),
    );
}

const BY_CHANGES = ['breaking_schema_change', 'schema_change_policy'];
const isDisabledByChanges = ({ status, status_reason }: ConnectionRow) =>
  status === 'auto_disabled' && BY_CHANGES.includes(status_reason ?? '');

async function storeReview(ctx: Ctx, connection: ConnectionRow): Promise<void> {
  const resumes = isDisabledByChanges(connection);
  if (resumes) {
    await requireReadyConnectors(ctx.db, [connection.source_id, connection.destination_id]);
    await requireActivation(ctx.db, await accountPlan(ctx), { connection_id: connection.id, now: ctx.deps.now() });
  }
  const { schedule } = connection;
  const [changed] = await ctx.db
    .update(connections)
    .set({
      schema_change_status: 'no_change',
      revision: sql`${connections.revision} + 1`,
      updated_by: ctx.principal.user_id,
      ...(resumes && {
        status: 'active',
        status_reason: null,
        consecutive_failures: 0,
        ...tickingFrom(ctx.deps.now(), { status: 'active', schedule }),
      }),
    })
    .where(eq(connections.id, connection.id))
    .returning();
  if (!changed) throw new Error(`connection ${connection.id} is gone`);
  const change = {
    connection: changed,
    changed_fields: ['schema_change_status', 'streams', ...(resumes ? ['status', 'status_reason'] : [])],
    before: { schema_change_status: connection.schema_change_status, status: connection.status },
    after: { schema_change_status: changed.schema_change_status, status: changed.status },
  };
  if (resumes) await emitConnectionEvent(ctx, 'connection_resumed', change);
  await emitConnectionEvent(ctx, 'connection_updated', change);
}
