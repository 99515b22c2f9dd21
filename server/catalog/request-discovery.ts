import { and, eq, inArray, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  type ConnectionRow,
  type StoredRunError,
  tasks,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import type { Queue } from '../queue/boss.ts';
import { executeTask } from '../queue/jobs.ts';

/** A scheduled run requests a discovery if the catalog is older than this. */
const AGED_HOURS = 24;

/**
 * Requests the discovery of a source in the caller's transaction and returns the id of its task. A queued task is
 * reused. A running one is not: it may have read the source before the change that this request is about.
 */
export async function requestDiscovery(
  db: Db,
  queue: Queue,
  request: {
    account_id: string;
    account_connector_id: string;
    connection_id: string | null;
    created_by: string | null;
  },
): Promise<string> {
  const { account_connector_id } = request;
  // Locks the row, so that concurrent requests see one another.
  await db
    .update(accountConnectors)
    .set({ catalog_status: 'pending' })
    .where(eq(accountConnectors.id, account_connector_id));
  const [queued] = await db
    .select({ id: tasks.id })
    .from(tasks)
    .where(
      and(
        eq(tasks.account_connector_id, account_connector_id),
        eq(tasks.kind, 'discover_catalog'),
        eq(tasks.status, 'queued'),
      ),
    )
    .limit(1);
  if (queued) return queued.id;
  const [task] = await db
    .insert(tasks)
    .values({ kind: 'discover_catalog', ...request })
    .returning({ id: tasks.id });
  if (!task) throw new Error('the task was not stored');
  await queue.send(db, executeTask, { task_id: task.id }, { account_id: request.account_id });
  return task.id;
}

/** After a stream failed because its source has changed: requests a discovery, which updates the catalog. */
export async function rediscoverChanged(
  db: Db,
  queue: Queue,
  { claim, error }: { claim: { source: AccountConnectorRow; connection: ConnectionRow }; error: StoredRunError },
): Promise<void> {
  if (error.type !== 'schema_changed' || error.origin !== 'source') return;
  const { source, connection } = claim;
  await requestDiscovery(db, queue, {
    account_id: connection.account_id,
    account_connector_id: source.id,
    connection_id: connection.id,
    created_by: null,
  });
}

/** Beside scheduled runs: only a discovery finds new streams. */
export async function rediscoverAged(
  { db, queue }: Pick<Deps, 'db' | 'queue'>,
  connections: readonly Pick<ConnectionRow, 'id' | 'account_id' | 'source_id' | 'status'>[],
): Promise<void> {
  const active = connections.filter(({ status }) => status === 'active');
  if (active.length === 0) return;
  const aged = await db
    .select({ id: accountConnectors.id })
    .from(accountConnectors)
    .where(
      and(
        inArray(accountConnectors.id, [...new Set(active.map(({ source_id }) => source_id))]),
        eq(accountConnectors.status, 'active'),
        eq(accountConnectors.catalog_status, 'ready'),
        sql`${accountConnectors.catalog_refreshed_at} < now() - make_interval(hours => ${AGED_HOURS})`,
      ),
    );
  for (const { id: account_connector_id } of aged) {
    const { account_id, id: connection_id } = active.find(({ source_id }) => source_id === account_connector_id)!;
    // Each in its own transaction: storing a catalog locks the source first and its connections afterwards.
    await db.transaction((tx) =>
      requestDiscovery(tx, queue, { account_id, connection_id, account_connector_id, created_by: null }),
    );
  }
}
