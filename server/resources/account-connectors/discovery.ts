import { and, desc, eq } from 'drizzle-orm';
import { z } from 'zod';
import { tasks } from '../../../db/schema/index.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { discoverCatalogTask } from '../access/discovery-task.ts';
import { requireReadyConnectors } from '../../connector-runtime/require-ready.ts';
import { instant, isId } from '../../api/wire-types.ts';
import { findAccountConnector } from './query.ts';

/** The last discovery of a source and the streams known since. */
export const Discovery = z.object({
  catalog_status: z.enum(['never', 'pending', 'ready', 'failed']),
  catalog_refreshed_at: instant().nullable(),
  task: z
    .object({
      id: z.string(),
      status: z.enum(['queued', 'running', 'succeeded', 'failed']),
      created_at: instant(),
      finished_at: instant().nullable(),
      error: z.object({ code: z.string(), message: z.string() }).nullable(),
    })
    .nullable()
    .meta({ description: 'Null if no discovery was requested.' }),
});

export async function readDiscovery(
  ctx: Ctx,
  input: { account_connector_id: string },
): Promise<z.infer<typeof Discovery>> {
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  const [task] = await ctx.db
    .select({
      id: tasks.id,
      status: tasks.status,
      created_at: tasks.created_at,
      finished_at: tasks.finished_at,
      error: tasks.error,
    })
    .from(tasks)
    .where(and(eq(tasks.account_connector_id, row.id), eq(tasks.kind, 'discover_catalog')))
    .orderBy(desc(tasks.created_at), desc(tasks.id))
    .limit(1);
  const { catalog_status, catalog_refreshed_at } = row;
  return { catalog_status, catalog_refreshed_at, task: task ?? null };
}

/**
 * Requests a discovery of a source's streams in the background. Returns the id of the task, or of one that is queued
 * already.
 * @throws ApiError 400 `discovery_not_supported` for a destination, `account_connector_not_ready`.
 */
export async function orderCatalog(ctx: Ctx, input: { account_connector_id: string }): Promise<string> {
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  requirePermission(ctx, `${row.connector_type}s.update`);
  if (row.connector_type !== 'source') throw badRequest('discovery_not_supported', 'Only sources have streams');
  await requireReadyConnectors(ctx.db, [row.id]);
  return discoverCatalogTask(ctx, { account_connector_id: row.id, connection_id: null });
}

export const TaskSchema = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    kind: z.enum(tasks.kind.enumValues),
    status: z.enum(tasks.status.enumValues),
    account_connector_id: z.string().meta({ format: 'uuid' }),
    connection_id: z.string().nullable(),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    created_at: instant(),
    finished_at: instant().nullable(),
  })
  .meta({ id: 'TaskSchema' });

/** A task of the account, without its result, which may need a permission. @throws ApiError 404 */
export async function readTask(ctx: Ctx, { task_id }: { task_id: string }): Promise<z.infer<typeof TaskSchema>> {
  const mine = eq(tasks.account_id, ctx.principal.account_id);
  const { id, kind, status, account_connector_id, connection_id, error, created_at, finished_at } = tasks;
  const shown = { id, kind, status, account_connector_id, connection_id, error, created_at, finished_at };
  const [task] = isId(task_id)
    ? await ctx.db
        .select(shown)
        .from(tasks)
        .where(and(mine, eq(tasks.id, task_id)))
    : [];
  if (!task) throw notFound('Task');
  return task;
}
