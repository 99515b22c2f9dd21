import { and, eq, inArray, sql } from 'drizzle-orm';
import { accountConnectors, type TaskRow, tasks } from '../../db/schema/index.ts';
import { ConnectorError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { emitCatalogRefreshed } from '../events/catalog-events.ts';
import { refreshCatalog } from '../catalog/discover.ts';
import { exportMetadata } from '../exports/export-metadata.ts';

/** Handler of the job `execute_task`. The work is idempotent: a task that is delivered twice runs twice. */
export async function executeTaskJob(deps: Deps, task_id: string): Promise<void> {
  const [task] = await deps.db
    .update(tasks)
    .set({ status: 'running' })
    .where(and(eq(tasks.id, task_id), inArray(tasks.status, ['queued', 'running'])))
    .returning();
  if (!task) return;
  if (task.kind === 'export_metadata') return exportMetadata(deps, task);
  try {
    await discoverCatalog(deps, task);
  } catch (error) {
    if (!(error instanceof ConnectorError)) throw error;
    await deps.db
      .update(tasks)
      .set({
        status: 'failed',
        error: { code: error.code, message: error.message },
        finished_at: sql`clock_timestamp()`,
      })
      .where(eq(tasks.id, task.id));
  }
}

async function discoverCatalog(deps: Deps, task: TaskRow): Promise<void> {
  const [row] = await deps.db
    .select()
    .from(accountConnectors)
    .where(eq(accountConnectors.id, task.account_connector_id));
  if (!row || row.deleted_at) throw new ConnectorError('account_connector_gone', 'The source was deleted');
  await refreshCatalog(deps, row, async (tx, { breaking, ...diff }) => {
    const finished_at = sql`clock_timestamp()`;
    await tx
      .update(tasks)
      .set({ status: 'succeeded', result: { ...diff, breaking }, finished_at })
      .where(eq(tasks.id, task.id));
    await emitCatalogRefreshed(tx, { task, source: row, changes: diff, breaking });
  });
}
