import { and, eq, isNull, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  type ConnectionRow,
  connectionRuns,
  connections,
  connectionStreams,
  schemaChanges,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { findConnector } from '../connectors/registry.ts';
import { emitSchemaChanged } from '../events/catalog-events.ts';
import { disableConnection } from './disable-connection.ts';
import { lockTables, streamsOfTakenTables } from './written-tables.ts';
import { type Adaptation, planAdaptation, type StreamDrift } from '../pipeline/schema-adaptation.ts';
import type { SchemaChange } from '../pipeline/schema-diff.ts';
import { qualifiedName, reviewText, streamOf, summarize } from '../pipeline/schema-summary.ts';
import { defaultSettings } from '../pipeline/stream-defaults.ts';

/**
 * Applies changes of a source to each of its connections, in the transaction that stores the catalog: the policy of the
 * connection accepts some changes, the others wait for a review. @returns whether a connection breaks.
 */
export async function applyDrift(db: Db, source: AccountConnectorRow, drifts: StreamDrift[]): Promise<boolean> {
  if (drifts.length === 0) return false;
  const rows = await db
    .select()
    .from(connections)
    .where(and(eq(connections.source_id, source.id), isNull(connections.deleted_at)))
    .orderBy(connections.id)
    .for('no key update');
  // Before the locks that events take, as requests do.
  if (drifts.some(({ changes }) => changes.some(({ subject }) => subject === 'stream'))) {
    await lockTables(db, source.account_id);
  }
  let breaking = false;
  for (const connection of rows) {
    const plan = await planFor(db, connection, drifts);
    if (plan.news.length === 0) continue;
    const unselected = await store(db, connection, plan);
    await emitSchemaChanged(db, {
      connection,
      source,
      changes: summarize(plan.news),
      breaking: plan.breaking,
      unselected,
      found_by_run: plan.breaking && (await failedBy(db, connection, plan.pending)),
      notice: missingText(connection, plan),
    });
    await disableBy(db, connection, plan);
    breaking ||= plan.breaking;
  }
  return breaking;
}

/** Whether one of the streams that break has failed in the newest run because its source has changed. */
async function failedBy(db: Db, { id }: ConnectionRow, changes: Adaptation['pending']): Promise<boolean> {
  const broken = changes.filter(({ breaking }) => breaking).map(streamOf);
  const failed = await db
    .select({ namespace: streamRuns.namespace, stream_name: streamRuns.stream_name })
    .from(streamRuns)
    .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id))
    .innerJoin(connections, eq(connections.id, connectionRuns.connection_id))
    .where(
      and(
        eq(connections.id, id),
        eq(connectionRuns.number, connections.run_counter),
        sql`${streamRuns.error} ->> 'type' = 'schema_changed' and ${streamRuns.error} ->> 'origin' = 'source'`,
      ),
    );
  return failed.some((stream) => broken.includes(streamOf(stream)));
}

async function planFor(db: Db, connection: ConnectionRow, drifts: StreamDrift[]): Promise<Adaptation> {
  const rows = await db.select().from(connectionStreams).where(eq(connectionStreams.connection_id, connection.id));
  const waiting = await readChanges(db, connection.id);
  return planAdaptation({ connection, rows, waiting, drifts });
}

/** The changes that wait for a review, by stream and field. */
export async function readChanges(db: Db, connection_id: string) {
  const rows = await db
    .select()
    .from(schemaChanges)
    .where(eq(schemaChanges.connection_id, connection_id))
    .orderBy(
      sql`coalesce(${schemaChanges.namespace}, '') collate "C"`,
      sql`${schemaChanges.stream_name} collate "C"`,
      schemaChanges.id,
    );
  return rows.map(({ namespace, stream_name, subject, field_path, before, after, breaking }) => {
    const change = { namespace, stream_name, subject, field_path, before, after } as SchemaChange;
    return { ...change, breaking };
  });
}

/** @returns the names of the streams that were added unselected */
async function store(db: Db, connection: ConnectionRow, plan: Adaptation): Promise<string[]> {
  const { id, account_id } = connection;
  await db.delete(schemaChanges).where(eq(schemaChanges.connection_id, id));
  for (let start = 0; start < plan.pending.length; start += ROWS_AT_ONCE) {
    const some = plan.pending.slice(start, start + ROWS_AT_ONCE);
    await db.insert(schemaChanges).values(some.map((change) => ({ ...change, connection_id: id, account_id })));
  }
  for (const [stream_id, fields] of plan.fields) {
    await db.update(connectionStreams).set({ fields }).where(eq(connectionStreams.id, stream_id));
  }
  const unselected = await addStreams(db, connection, plan.new_streams);
  const edited = plan.fields.size + plan.new_streams.length > 0;
  const breaking = plan.pending.some((change) => change.breaking);
  await db
    .update(connections)
    .set({
      schema_change_status: breaking ? 'breaking' : plan.pending.length > 0 ? 'non_breaking' : 'no_change',
      ...(edited && { revision: sql`${connections.revision} + 1` }),
    })
    .where(eq(connections.id, id));
  return unselected;
}

/** PostgreSQL allows 65,535 parameters per statement. */
const ROWS_AT_ONCE = 2000;

async function addStreams(db: Db, connection: ConnectionRow, streams: Adaptation['new_streams']): Promise<string[]> {
  if (streams.length === 0) return [];
  const [row] = await db.select().from(accountConnectors).where(eq(accountConnectors.id, connection.destination_id));
  const destination = findConnector('destination', row?.connector_name ?? '');
  if (!row || !destination) return [];
  const { id: connection_id, account_id } = connection;
  const added = streams.map((stream) => ({
    ...defaultSettings(stream, destination),
    account_id,
    connection_id,
    namespace: stream.namespace,
    name: stream.name,
  }));
  const taken = await streamsOfTakenTables(db, { connection, destination: row }, added);
  const rows = added.map((stream, at) => ({ ...stream, selected: !taken.has(at) }));
  for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) {
    await db.insert(connectionStreams).values(rows.slice(start, start + ROWS_AT_ONCE));
  }
  return rows.filter(({ selected }) => !selected).map(qualifiedName);
}

/** The values of new fields that are not loaded without a further step. */
function missingText({ schema_change_policy }: ConnectionRow, { missing }: Adaptation): string {
  const taken = '. Rows loaded earlier have no value in new fields until they change or are read again';
  // A disabled connection loads no rows without the field.
  const left = schema_change_policy === 'disable_connection' ? '' : LEFT_OUT;
  return `${missing.taken ? taken : ''}${missing.left_out ? left : ''}`;
}

const LEFT_OUT =
  '. Fields that wait for a review are not loaded. Rows loaded until then get their values only when read again';

async function disableBy(db: Db, { id, schema_change_policy }: ConnectionRow, plan: Adaptation): Promise<void> {
  const by_policy = schema_change_policy === 'disable_connection' && plan.pending.length > 0;
  const disable = (status_reason: string, cause: string) =>
    disableConnection(db, eq(connections.id, id), { status_reason, because: () => cause });
  if (plan.breaking) {
    const breaking = plan.pending.filter((change) => change.breaking);
    return disable('breaking_schema_change', reviewText(breaking));
  }
  const policy = 'its schema change policy requires a review';
  if (by_policy) await disable('schema_change_policy', `${policy}: ${reviewText(plan.pending)}`);
}
