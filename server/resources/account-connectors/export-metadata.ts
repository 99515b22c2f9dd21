import { and, eq, isNull } from 'drizzle-orm';
import { z } from 'zod';
import { type AccountConnectorRow, accountConnectors, catalogStreams, tasks } from '../../../db/schema/index.ts';
import { findConnector } from '../../connectors/registry.ts';
import { type ExportRequest, isNamed } from '../../exports/export-metadata.ts';
import { signedExportUrl } from '../../exports/link.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { executeTask } from '../../queue/jobs.ts';
import { requireFeature } from '../../billing/limits.ts';
import { accountPlan } from '../access/account-plan.ts';
import { idInBody, instant, isId, text } from '../../api/wire-types.ts';
import { findAccountConnector } from './query.ts';

export const ExportSourceMetadataRequest = z
  .strictObject({
    format: z.enum(['json', 'csv', 'openlineage']).default('json'),
    stream_names: z
      .array(text(1, 511))
      .min(1)
      .max(10_000)
      .nullish()
      .meta({ description: 'Names, or namespace and name joined by a dot. Default: all streams.' }),
    include_fields: z.boolean().default(true),
    include_samples: z
      .boolean()
      .default(false)
      .meta({ description: 'Values of the first five rows, masked as configured in the catalog. Not in openlineage.' }),
    include_usage: z
      .boolean()
      .default(false)
      .meta({ description: 'Usage of each stream by connections in the last 30 days. Not in openlineage.' }),
    destination_id: idInBody()
      .nullish()
      .meta({ description: 'Also writes a table to the schema `_metadata` of this destination.' }),
  })
  .meta({
    id: 'ExportSourceMetadataRequest',
    examples: [{ format: 'csv', stream_names: ['users'] }, { include_usage: true }],
  });
export type ExportSourceMetadataRequest = z.infer<typeof ExportSourceMetadataRequest>;

/**
 * Starts an export in the background. Returns the task's id. When it finishes, an event reports it; `exportLink` returns
 * the link to the file.
 * @throws ApiError 400 `not_a_source`, `export_not_supported`, `account_connector_not_ready`, `invalid_reference`,
 * `destination_not_writable`, `unknown_stream`; 402 `feature_not_in_plan`.
 */
export async function orderExport(
  ctx: Ctx,
  input: { account_connector_id: string; request: ExportSourceMetadataRequest | null },
): Promise<string> {
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  if (row.connector_type !== 'source') throw badRequest('not_a_source', `"${row.name}" is a destination`);
  if (!findConnector('source', row.connector_name)) {
    throw badRequest('export_not_supported', `Connector "${row.connector_name}" is no longer available`);
  }
  refuseUnready(row);
  const request = input.request ?? ExportSourceMetadataRequest.parse({});
  if (request.destination_id) await refuseDestination(ctx, request.destination_id);
  if (request.stream_names) await refuseUnknownStreams(ctx, row, request.stream_names);
  requireFeature(await accountPlan(ctx), 'metadata_export');
  const { stream_names = null, destination_id = null } = request;
  const parameters: ExportRequest = { ...request, stream_names, destination_id };
  const [task] = await ctx.db
    .insert(tasks)
    .values({
      account_id: row.account_id,
      kind: 'export_metadata',
      account_connector_id: row.id,
      parameters,
      created_by: ctx.principal.user_id,
    })
    .returning({ id: tasks.id });
  if (!task) throw new Error('the insert returned no row');
  await ctx.deps.queue.send(ctx.db, executeTask, { task_id: task.id });
  return task.id;
}

export const ExportLink = z.object({ url: z.string(), expires_at: instant() });

/** A link to the file of a finished export, for ten minutes. @throws ApiError 404 */
export async function exportLink(ctx: Ctx, { task_id }: { task_id: string }): Promise<z.infer<typeof ExportLink>> {
  if (!isId(task_id)) throw notFound('Export');
  const [task] = await ctx.db
    .select({ result: tasks.result })
    .from(tasks)
    .where(
      and(
        eq(tasks.id, task_id),
        eq(tasks.account_id, ctx.principal.account_id),
        eq(tasks.kind, 'export_metadata'),
        eq(tasks.status, 'succeeded'),
      ),
    );
  // The key is removed with the file.
  if (typeof task?.result?.object_key !== 'string') throw notFound('Export');
  return signedExportUrl(ctx.deps, task_id);
}

function refuseUnready(row: AccountConnectorRow): void {
  if (row.status === 'active') return;
  throw badRequest('account_connector_not_ready', `"${row.name}" is ${row.status}`, {
    account_connector_id: row.id,
    status: row.status,
  });
}

async function refuseDestination(ctx: Ctx, id: string): Promise<void> {
  const [destination] = await ctx.db
    .select()
    .from(accountConnectors)
    .where(
      and(
        eq(accountConnectors.id, id),
        eq(accountConnectors.account_id, ctx.principal.account_id),
        eq(accountConnectors.connector_type, 'destination'),
        isNull(accountConnectors.deleted_at),
      ),
    );
  const field = 'destination_id';
  if (!destination)
    throw badRequest('invalid_reference', 'destination_id is not a destination of this account', { field });
  refuseUnready(destination);
  const modes = findConnector('destination', destination.connector_name)?.supported_destination_sync_modes ?? [];
  if (modes.includes('overwrite')) return;
  throw badRequest('destination_not_writable', `"${destination.name}" does not support overwrite`, {
    field,
  });
}

/** Without a catalog, no name can be checked; the task then exports only the streams that it finds. */
async function refuseUnknownStreams(ctx: Ctx, row: AccountConnectorRow, names: string[]): Promise<void> {
  const known = await ctx.db
    .select({ namespace: catalogStreams.namespace, name: catalogStreams.name })
    .from(catalogStreams)
    .where(and(eq(catalogStreams.account_connector_id, row.id), isNull(catalogStreams.removed_at)));
  if (known.length === 0) return;
  const unknown = names.filter((name) => !known.some((stream) => isNamed(stream, [name])));
  if (unknown.length === 0) return;
  throw badRequest('unknown_stream', `The source has no stream ${unknown.join(', ')}`, {
    field: 'stream_names',
    stream_names: unknown,
  });
}
