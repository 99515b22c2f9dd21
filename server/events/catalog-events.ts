import type { AccountConnectorRow, ConnectionRow, TaskRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type ChangeSummary, summaryText } from '../pipeline/schema-summary.ts';
import { connectorFacts, taskActor } from './account-connector-events.ts';
import { emit, SYSTEM_ACTOR } from './emit.ts';
import { connectionFacts } from './run-events.ts';

/** Emits that a task has refreshed the catalog of a source. */
export async function emitCatalogRefreshed(
  db: Db,
  refreshed: { task: TaskRow; source: AccountConnectorRow; changes: ChangeSummary; breaking: boolean },
): Promise<void> {
  const { task, source, changes, breaking } = refreshed;
  await emit(db, {
    account_id: task.account_id,
    event: 'catalog_refreshed',
    actor: taskActor(task),
    resource: { type: 'account_connector', id: source.id, name: source.name },
    summary: `Catalog of ${source.name} refreshed${summaryText(changes)}`,
    account_connector_id: source.id,
    connection_id: task.connection_id ?? undefined,
    payload: { ...connectorFacts(source), task_id: task.id, ...changes, breaking },
  });
}

/** Emits that the source of a connection has changed, and a second event if that breaks the connection. */
export async function emitSchemaChanged(
  db: Db,
  changed: {
    connection: ConnectionRow;
    source: AccountConnectorRow;
    changes: ChangeSummary;
    breaking: boolean;
    /** Appended to the summary: the values that are not loaded without a further step. */
    notice: string;
  },
): Promise<void> {
  const { connection, source, changes, breaking, notice } = changed;
  const payload = {
    ...(await connectionFacts(db, connection.id)),
    ...connectorFacts(source),
    ...changes,
    breaking,
  };
  const report = (event: 'schema_changed' | 'schema_change_breaking', what: string) => ({
    account_id: connection.account_id,
    event,
    actor: SYSTEM_ACTOR,
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `The source of ${connection.name} ${what}${summaryText(changes)}${notice}`,
    connection_id: connection.id,
    account_connector_id: source.id,
    payload,
  });
  await emit(db, report('schema_changed', 'has changed'));
  if (breaking) await emit(db, report('schema_change_breaking', 'has changed in a way that breaks the connection'));
}
