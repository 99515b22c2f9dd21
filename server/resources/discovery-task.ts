import { and, eq, inArray } from 'drizzle-orm';
import { accountConnectors, tasks } from '../../db/schema/index.ts';
import type { Ctx } from '../procedure.ts';
import { executeTask } from '../queue/jobs.ts';

/**
 * Orders the discovery of a source in the caller's transaction; answers with the id of the task. One that waits or
 * runs already is enough: its id is the answer then.
 */
export async function discoverCatalogTask(
  ctx: Ctx,
  target: { account_connector_id: string; connection_id: string | null },
): Promise<string> {
  const { account_connector_id } = target;
  // Locks the row, so that two orders at once see one another.
  await ctx.db
    .update(accountConnectors)
    .set({ catalog_status: 'pending' })
    .where(eq(accountConnectors.id, account_connector_id));
  const [live] = await ctx.db
    .select({ id: tasks.id })
    .from(tasks)
    .where(
      and(
        eq(tasks.account_connector_id, account_connector_id),
        eq(tasks.kind, 'discover_catalog'),
        inArray(tasks.status, ['queued', 'running']),
      ),
    )
    .limit(1);
  if (live) return live.id;
  const [task] = await ctx.db
    .insert(tasks)
    .values({
      account_id: ctx.principal.account_id,
      kind: 'discover_catalog',
      created_by: ctx.principal.user_id,
      ...target,
    })
    .returning({ id: tasks.id });
  if (!task) throw new Error('an insert gave no row');
  await ctx.deps.queue.send(ctx.db, executeTask, { task_id: task.id });
  return task.id;
}
