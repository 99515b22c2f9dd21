import { and, eq, inArray, sql } from 'drizzle-orm';
import { accountConnectors, type TaskRow, tasks } from '../../db/schema/index.ts';
import { ConnectorError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type Actor, emit, SYSTEM_ACTOR } from '../events/emit.ts';
import { refreshCatalog } from '../catalog/discover.ts';
import { exportMetadata } from '../exports/export-metadata.ts';
import { summaryText } from '../pipeline/schema-summary.ts';

/** Handler of the job `execute_task`. A task delivered twice does its work twice, which changes nothing. */
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
    const actor: Actor = task.created_by ? { type: 'user', id: task.created_by, name: null } : SYSTEM_ACTOR;
    await emit(tx, {
      account_id: task.account_id,
      event: 'catalog_refreshed',
      actor,
      resource: { type: 'account_connector', id: row.id, name: row.name },
      summary: `The catalog of ${row.name} was refreshed${summaryText(diff)}`,
      account_connector_id: row.id,
      connection_id: task.connection_id ?? undefined,
      payload: {
        account_connector_id: row.id,
        account_connector_name: row.name,
        connector_type: row.connector_type,
        connector_name: row.connector_name,
        task_id: task.id,
        ...diff,
        breaking,
      },
    });
  });
}
