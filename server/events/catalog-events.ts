import type { AccountConnectorRow, ConnectionRow, TaskRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type ChangeSummary, summarize, summaryText } from '../pipeline/schema-summary.ts';
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
    /** Streams that were added, and left out since other streams are written to their tables. */
    unselected: readonly string[];
    /** Whether the newest run has failed because of it, which has an event of its own. */
    found_by_run: boolean;
    /** Appended to the summary: the values that are not loaded without a further step. */
    notice: string;
  },
): Promise<void> {
  const { connection, source, changes, breaking, unselected, found_by_run, notice } = changed;
  const payload = {
    ...(await connectionFacts(db, connection.id)),
    ...connectorFacts(source),
    ...changes,
    ...unselectedFacts(unselected),
    breaking,
    found_by_run,
  };
  const report = (event: 'schema_changed' | 'schema_change_breaking', what: string) => ({
    account_id: connection.account_id,
    event,
    actor: SYSTEM_ACTOR,
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `The source of ${connection.name} ${what}${summaryText(changes)}${notice}${unselectedText(unselected)}`,
    connection_id: connection.id,
    account_connector_id: source.id,
    payload,
  });
  await emit(db, report('schema_changed', 'has changed'));
  if (breaking) await emit(db, report('schema_change_breaking', 'has changed in a way that breaks the connection'));
}

/** Emits that the first catalog of a source has streams that its connection does not load. */
export async function emitStreamsUnselected(
  db: Db,
  added: { connection: ConnectionRow; source: AccountConnectorRow; unselected: readonly string[] },
): Promise<void> {
  const { connection, source, unselected } = added;
  await emit(db, {
    account_id: connection.account_id,
    event: 'schema_changed',
    actor: SYSTEM_ACTOR,
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `The streams of ${connection.name} were added${unselectedText(unselected)}`,
    connection_id: connection.id,
    account_connector_id: source.id,
    payload: {
      ...(await connectionFacts(db, connection.id)),
      ...connectorFacts(source),
      ...summarize([]),
      ...unselectedFacts(unselected),
      breaking: false,
    },
  });
}

/** As many as a summary of changes lists. */
const LISTED = 100;
const NAMED = 10;

const unselectedFacts = (unselected: readonly string[]) =>
  unselected.length === 0
    ? { streams_unselected: [] }
    : { streams_unselected: unselected.slice(0, LISTED), error_code: 'duplicate_destination_table' };

function unselectedText(unselected: readonly string[]): string {
  if (unselected.length === 0) return '';
  const more = unselected.length > NAMED ? ` and ${unselected.length - NAMED} more` : '';
  return (
    `. Not selected, because other streams are written to the same tables: ${unselected.slice(0, NAMED).join(', ')}${more}. ` +
    'Set another destination_table for each, then select it'
  );
}
