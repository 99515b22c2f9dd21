import type { ReadRequest } from '../../contract/connector.ts';
import { CannotContinueError, ConfigurationError, RetryableError, SchemaChangedError } from '../../contract/errors.ts';
import { factName } from '../../contract/change-fields.ts';
import type { MysqlSession } from '../connection/session.ts';
import { discoverStreams, findUnlogged } from '../read/catalog.ts';
import { RESET_HINT } from './reset-hint.ts';

/** The columns of a table at one moment, as text to compare. */
export type TableShape = string;

/**
 * Checks that the table still matches the catalog, and that the log has all of its changes.
 * @throws SchemaChangedError, RetryableError `table_changed` if the catalog has to be refreshed first,
 * ConfigurationError `changes_not_logged`
 */
export async function assertFollowable(session: MysqlSession, request: ReadRequest): Promise<TableShape> {
  const { name } = request.stream;
  const found = await currentStream(session, request);
  if (!found) throw new SchemaChangedError('table_missing', `Table ${name} no longer exists`);
  if (!found.change_log) throw await notLogged(session, request.stream);
  const types = new Map(found.fields.map(({ path, source_type }) => [path[0]!, source_type]));
  for (const { field } of request.columns) {
    if (factName(field)) continue;
    const [column = ''] = field.path;
    const type = types.get(column);
    if (type == null) throw new SchemaChangedError('column_missing', `${name} no longer has a column ${column}`);
    if (type === field.source_type) continue;
    throw new SchemaChangedError(
      'column_type_changed',
      `The type of ${name}.${column} changed from ${field.source_type} to ${type}`,
    );
  }
  const known = new Set(request.stream.fields.map(({ path }) => path[0]));
  if (found.fields.some(({ path }) => !known.has(path[0]))) throw changedDuringRead(name);
  return JSON.stringify(found.fields);
}

/** @throws RetryableError `table_changed` unless the table is as it was */
export async function assertUnchanged(session: MysqlSession, request: ReadRequest, shape: TableShape): Promise<void> {
  const found = await currentStream(session, request);
  if (!found?.change_log || JSON.stringify(found.fields) !== shape) throw changedDuringRead(request.stream.name);
}

async function currentStream(session: MysqlSession, { stream }: ReadRequest) {
  const about = { database: stream.namespace ?? '', table: stream.name, logged: true };
  const found = await discoverStreams(session, about);
  return found.find(({ name }) => name === stream.name) ?? null;
}

/** The next attempt handles the change by the connection's policy. Nothing of this attempt is kept. */
export const changedDuringRead = (table: string) =>
  new RetryableError('table_changed', `${table} changed during the read. The next attempt reads its new schema`);

/** Names the cause, instead of reporting the columns of the log as missing. */
export async function notLogged(
  session: MysqlSession,
  { namespace, name }: ReadRequest['stream'],
): Promise<ConfigurationError> {
  const reason = (await findUnlogged(session, namespace ?? '')).get(name) ?? 'its changes are not in the log';
  return new ConfigurationError(
    'changes_not_logged',
    `${name} cannot be read by change data capture: ${reason}. Undo that and reset the cursor of its stream, or read the table by a cursor from another source`,
  );
}

export const tableReplaced = (table: string, statement: string) =>
  new CannotContinueError(
    'table_replaced',
    `${table} was dropped, renamed or replaced at the source (${statement.slice(0, 100)}), so its rows are other ones. ${RESET_HINT}`,
  );
