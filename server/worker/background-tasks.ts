import { and, eq, inArray, sql } from 'drizzle-orm';
import { findsAny, type Question } from '../../db/ask-together.ts';
import { accountConnectors, type TaskRow, tasks } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { refreshCatalog } from '../catalog/discover.ts';
import type { CatalogDiff } from '../catalog/store.ts';
import { ConnectorError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { taskActor } from '../events/account-connector-events.ts';
import { emitCatalogRefreshed } from '../events/catalog-events.ts';
import { exportMetadata, reportFailedExport } from '../exports/export-metadata.ts';
import { periodic } from '../platform/periodic.ts';
import { executeTask } from '../queue/jobs.ts';

const HEARTBEAT_MS = 2_000;
/** The queue redelivers a dead worker's job after about 10 s. After this time the job is lost and is sent again. */
const LOST_SECONDS = 30;
const MAX_ATTEMPTS = 3;

/** Handler of the job `execute_task`. The work is idempotent: a task that is delivered twice runs twice. */
export async function executeTaskJob(deps: Deps, task_id: string): Promise<void> {
  const [task] = await deps.db
    .update(tasks)
    .set({ status: 'running', attempts: sql`${tasks.attempts} + 1`, heartbeat_at: sql`clock_timestamp()` })
    .where(and(eq(tasks.id, task_id), inArray(tasks.status, ['queued', 'running'])))
    .returning();
  if (!task) return;
  if (task.attempts > MAX_ATTEMPTS) return failTask(deps, task, workerKilled());
  const options = { every_ms: HEARTBEAT_MS, onError: () => {} };
  const heartbeat = periodic(() => touch(deps, task.id), options);
  try {
    await (task.kind === 'export_metadata' ? exportMetadata(deps, task) : discoverCatalog(deps, task));
  } catch (error) {
    if (!(error instanceof ConnectorError) && task.attempts < MAX_ATTEMPTS) throw error;
    await failTask(deps, task, error);
  } finally {
    await heartbeat.stop();
  }
}

const touch = (deps: Deps, id: string) =>
  deps.db.update(tasks).set({ heartbeat_at: sql`clock_timestamp()` }).where(eq(tasks.id, id));

const isStuck = and(
  eq(tasks.status, 'running'),
  sql`coalesce(${tasks.heartbeat_at}, ${tasks.updated_at}) < now() - make_interval(secs => ${LOST_SECONDS})`,
);

const ANY_STUCK: Question = {
  name: 'stuck tasks',
  query: (db) => db.select({ id: tasks.id }).from(tasks).where(isStuck).limit(1),
};

/** Recovers tasks whose worker died: another attempt, or the end after three. Any number of workers may call it at once. */
export async function recoverStuckTasks(deps: Deps): Promise<void> {
  if (!(await findsAny(deps.db, ANY_STUCK))) return;
  const stuck = await deps.db
    .update(tasks)
    // The heartbeat of this call, so that the job is not sent again before it had time to start.
    .set({ heartbeat_at: sql`clock_timestamp()` })
    .where(isStuck)
    .returning();
  for (const task of stuck) {
    deps.log.warn({ task_id: task.id, attempts: task.attempts }, 'the worker of a background task died');
    if (task.attempts >= MAX_ATTEMPTS) await failTask(deps, task, workerKilled());
    else await deps.queue.send(deps.db, executeTask, { task_id: task.id }, { account_id: task.account_id });
  }
}

const workerKilled = () =>
  new ConnectorError(
    'worker_killed',
    `The worker process ended in each of ${MAX_ATTEMPTS} attempts. Check the settings of the connector and try again`,
  );

const NAMES: Record<TaskRow['kind'], string> = { discover_catalog: 'discovery', export_metadata: 'export' };

async function failTask(deps: Deps, task: TaskRow, thrown: unknown): Promise<void> {
  const error = describe(deps, task, thrown);
  await deps.db.transaction(async (tx) => {
    const failed = await tx
      .update(tasks)
      .set({ status: 'failed', error, finished_at: sql`clock_timestamp()` })
      .where(and(eq(tasks.id, task.id), inArray(tasks.status, ['queued', 'running'])))
      .returning({ id: tasks.id });
    if (failed.length === 0) return;
    if (task.kind === 'export_metadata') return reportFailedExport(tx, task, error);
    await tx
      .update(accountConnectors)
      .set({ catalog_status: 'failed' })
      .where(and(eq(accountConnectors.id, task.account_connector_id), eq(accountConnectors.catalog_status, 'pending')));
  });
}

function describe(deps: Deps, { id, kind }: TaskRow, thrown: unknown): { code: string; message: string } {
  if (thrown instanceof ConnectorError) return { code: thrown.code, message: thrown.message };
  deps.log.error({ err: thrown, task_id: id }, 'background task failed unexpectedly');
  return { code: 'internal_error', message: `The ${NAMES[kind]} failed because of an internal error. Try again` };
}

async function discoverCatalog(deps: Deps, task: TaskRow): Promise<void> {
  const [row] = await deps.db
    .select()
    .from(accountConnectors)
    .where(eq(accountConnectors.id, task.account_connector_id));
  if (!row || row.deleted_at) throw new ConnectorError('account_connector_gone', 'The source was deleted');
  const report = async (tx: Db, { breaking, ...diff }: CatalogDiff) => {
    const finished_at = sql`clock_timestamp()`;
    await tx
      .update(tasks)
      .set({ status: 'succeeded', result: { ...diff, breaking }, finished_at })
      .where(eq(tasks.id, task.id));
    await emitCatalogRefreshed(tx, { task, source: row, changes: diff, breaking });
  };
  await refreshCatalog(deps, row, { actor: taskActor(task), report });
}
