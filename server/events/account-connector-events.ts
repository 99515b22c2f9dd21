import type { AccountConnectorRow, TaskRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, emit, SYSTEM_ACTOR } from './emit.ts';
import type { EventKind } from './kinds.ts';

/** What events show of a source or destination. */
export type ReportedConnector = Pick<
  AccountConnectorRow,
  'id' | 'account_id' | 'name' | 'connector_type' | 'connector_name' | 'status' | 'status_reason'
>;

interface ConnectorReport {
  row: ReportedConnector;
  event: EventKind;
  /** Without a name in it, it follows the one of the source or destination: `was created`. */
  sentence: string | ((named: string) => string);
  actor?: Actor;
  extra?: Record<string, unknown>;
}

/** Emits an event about a source or destination, with the variables that rules may use. */
export async function emitConnectorEvent(db: Db, report: ConnectorReport): Promise<void> {
  const { row, event, sentence, actor = SYSTEM_ACTOR, extra } = report;
  const named = `${row.connector_type} "${row.name}"`;
  await emit(db, {
    account_id: row.account_id,
    event,
    actor,
    resource: { type: 'account_connector', id: row.id, name: row.name },
    summary: typeof sentence === 'string' ? `${capitalized(named)} ${sentence}` : sentence(named),
    account_connector_id: row.id,
    payload: { ...connectorFacts(row), status: row.status, status_reason: row.status_reason, ...extra },
  });
}

const capitalized = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);

/** The variables of an event's source or destination. */
export const connectorFacts = (row: Omit<ReportedConnector, 'account_id' | 'status' | 'status_reason'>) => ({
  account_connector_id: row.id,
  account_connector_name: row.name,
  connector_type: row.connector_type,
  connector_name: row.connector_name,
});

/** The user who requested a task, or the system. */
export const taskActor = (task: Pick<TaskRow, 'created_by'>): Actor =>
  task.created_by ? { type: 'user', id: task.created_by, name: null } : SYSTEM_ACTOR;

/** Emits the outcome of a metadata export. `row` is undefined if the source is gone. */
export async function emitExportEvent(
  db: Db,
  event: 'metadata_export_succeeded' | 'metadata_export_failed',
  ended: { task: TaskRow; row: AccountConnectorRow | undefined; facts: Record<string, unknown> },
): Promise<void> {
  const { task, row, facts } = ended;
  const { format, destination_id } = task.parameters;
  const outcome = event === 'metadata_export_succeeded' ? 'exported' : 'export failed';
  await emit(db, {
    account_id: task.account_id,
    event,
    actor: taskActor(task),
    resource: { type: 'account_connector', id: task.account_connector_id, name: row?.name ?? null },
    summary: `Metadata ${outcome}: ${row?.name ?? 'a deleted source'}`,
    account_connector_id: task.account_connector_id,
    payload: {
      task_id: task.id,
      account_connector_id: task.account_connector_id,
      account_connector_name: row?.name ?? null,
      connector_type: row?.connector_type ?? null,
      connector_name: row?.connector_name ?? null,
      format,
      destination_id,
      ...facts,
    },
  });
}
