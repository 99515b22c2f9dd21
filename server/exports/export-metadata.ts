import { and, eq, inArray, isNull, lt, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  catalogStreams,
  type TaskRow,
  tasks,
} from '../../db/schema/index.ts';
import { ConnectorError } from '../connectors/contract/errors.ts';
import type { Db } from '../../db/types.ts';
import type { SecretUse } from '../connector-runtime/secret-uses.ts';
import type { Deps } from '../deps.ts';
import { emitExportEvent, taskActor } from '../events/account-connector-events.ts';
import { refreshCatalog } from '../catalog/discover.ts';
import { catalogOrder, discoveredStream } from '../catalog/store.ts';
import { describeStream, type ExportDocument } from './document.ts';
import { EXPORT_TYPES, type ExportFormat, formatExport } from './formats.ts';
import { EXPORT_HOURS } from './link.ts';
import { addSamples } from './samples.ts';
import { writeExport } from './tables.ts';
import { readUsage } from './usage.ts';
import { applyOverrides } from '../pipeline/overrides.ts';

/** The request of an export, stored as the task's parameters. */
export interface ExportRequest extends Record<string, unknown> {
  format: ExportFormat;
  stream_names: string[] | null;
  include_fields: boolean;
  include_samples: boolean;
  include_usage: boolean;
  destination_id: string | null;
}

/** Writes the export to the object store and emits its success. @throws ConnectorError */
export async function exportMetadata(deps: Deps, task: TaskRow): Promise<void> {
  const request = task.parameters as ExportRequest;
  const row = await connectorOf(deps, task.account_connector_id);
  if (!row || row.deleted_at) throw new ConnectorError('account_connector_gone', 'The source was deleted');
  const actor = taskActor(task);
  if (row.catalog_status !== 'ready') await refreshCatalog(deps, row, { actor });
  const use = { purpose: 'metadata_export' as const, actor };
  const document = await buildDocument(deps, row, { request, use });
  const { ending } = EXPORT_TYPES[request.format];
  const bytes = new TextEncoder().encode(formatExport(document, request.format, datasetNamespace(row)));
  const object_key = `exports/${task.account_id}/${task.id}.${ending}`;
  const table = await copyInto(deps, request, { task_id: task.id, document, use });
  await deps.objects.put(object_key, bytes);
  const streams_count = document.streams.length;
  await finish(deps, { task, row, result: { object_key, bytes: bytes.length, streams_count, table } });
}

async function connectorOf(deps: Pick<Deps, 'db'>, id: string): Promise<AccountConnectorRow | undefined> {
  const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
  return row;
}

async function buildDocument(
  deps: Deps,
  row: AccountConnectorRow,
  { request, use }: { request: ExportRequest; use: SecretUse },
): Promise<ExportDocument> {
  const found = await deps.db
    .select()
    .from(catalogStreams)
    .where(and(eq(catalogStreams.account_connector_id, row.id), isNull(catalogStreams.removed_at)))
    .orderBy(...catalogOrder());
  const selected = found.filter((one) => isNamed(one, request.stream_names));
  const usage = request.include_usage ? await readUsage(deps, row.id) : null;
  const streams = [];
  for (const { definition, overrides, discovered_at, namespace, name } of selected) {
    const discovered = discoveredStream({ definition });
    const { include_fields } = request;
    const schema = applyOverrides(discovered, overrides);
    const exported = describeStream(schema, { discovered_at, overrides, include_fields });
    if (request.include_samples && include_fields)
      await addSamples(deps, row, { discovered, overrides, exported, use });
    if (usage) exported.usage = usage.get(JSON.stringify([namespace, name])) ?? UNUSED;
    streams.push(exported);
  }
  return {
    exported_at: deps.now().toISOString(),
    account_connector: { id: row.id, name: row.name, connector_name: row.connector_name },
    catalog_refreshed_at: (await connectorOf(deps, row.id))?.catalog_refreshed_at ?? null,
    streams,
  };
}

const UNUSED = { connections: 0, rows_loaded: 0, last_succeeded_at: null };

/** Matches the name or `namespace.name`. Null matches every stream. */
export const isNamed = (stream: { namespace: string | null; name: string }, names: string[] | null): boolean =>
  names === null || names.includes(stream.name) || names.includes(`${stream.namespace}.${stream.name}`);

/** OpenLineage's convention for dataset namespaces: scheme and server, or the source's id when there is no server. */
function datasetNamespace({ connector_name, parameters, id }: AccountConnectorRow): string {
  const { host, port } = parameters;
  return typeof host === 'string'
    ? `${connector_name}://${host}${port ? `:${Number(port)}` : ''}`
    : `${connector_name}://${id}`;
}

async function copyInto(
  deps: Deps,
  { destination_id }: ExportRequest,
  input: { task_id: string; document: ExportDocument; use: SecretUse },
): Promise<string | null> {
  if (destination_id === null) return null;
  const destination = await connectorOf(deps, destination_id);
  if (!destination || destination.deleted_at)
    throw new ConnectorError('account_connector_gone', 'The destination was deleted');
  return writeExport(deps, destination, input);
}

async function finish(
  deps: Deps,
  { task, row, result }: { task: TaskRow; row: AccountConnectorRow; result: Record<string, unknown> },
): Promise<void> {
  const url_expires_at = new Date(deps.now().getTime() + EXPORT_HOURS * 3_600_000).toISOString();
  const { bytes, streams_count, table } = result;
  await deps.db.transaction(async (tx) => {
    await tx
      .update(tasks)
      .set({ status: 'succeeded', result, finished_at: sql`clock_timestamp()` })
      .where(eq(tasks.id, task.id));
    const facts = { url_expires_at, bytes, streams_count, table };
    await emitExportEvent(tx, 'metadata_export_succeeded', { task, row, facts });
  });
}

/** Emits the failure of an export, in the transaction that ends its task. */
export async function reportFailedExport(
  db: Db,
  task: TaskRow,
  { code, message }: { code: string; message: string },
): Promise<void> {
  const row = await connectorOf({ db }, task.account_connector_id);
  const facts = { url_expires_at: null, error_code: code, error_message: message };
  await emitExportEvent(db, 'metadata_export_failed', { task, row, facts });
}

/** Deletes the files of expired links. */
export async function deleteOldExports(deps: Deps): Promise<void> {
  const expired = await deps.db
    .select({ id: tasks.id, object_key: sql<string>`${tasks.result} ->> 'object_key'` })
    .from(tasks)
    .where(
      and(
        eq(tasks.kind, 'export_metadata'),
        eq(tasks.status, 'succeeded'),
        lt(tasks.finished_at, new Date(deps.now().getTime() - EXPORT_HOURS * 3_600_000).toISOString()),
        sql`${tasks.result} ? 'object_key'`,
      ),
    )
    .limit(1000);
  for (const { object_key } of expired) await deps.objects.delete(object_key);
  if (expired.length === 0) return;
  await deps.db
    .update(tasks)
    .set({ result: sql`${tasks.result} - 'object_key'` })
    .where(
      inArray(
        tasks.id,
        expired.map(({ id }) => id),
      ),
    );
}
