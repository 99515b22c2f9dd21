import type { Field, ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../../contract/errors.ts';
import { datasetClause } from './datasets.ts';
import { columnList, type Dialect } from './dialect.ts';
import { isDate } from './streams.ts';

/** @throws SchemaChangedError when the stream has no such column any more. */
export function fieldByPath({ stream }: ReadRequest, path: readonly string[]): Field {
  const field = stream.fields.find((one) => one.path.length === path.length && one.path[0] === path[0]);
  if (field) return field;
  throw new SchemaChangedError('column_missing', `${stream.name} has no column ${path.join('.')}`);
}

/** The column of `cursor_field`, which must be set. */
export const cursorOf = (request: ReadRequest): Field => fieldByPath(request, request.cursor_field ?? []);

/**
 * The range of days that a read is limited to, and the field of these days. Null: it is not limited.
 * @throws ConfigurationError `window_needs_dates`
 */
export function windowOf(request: ReadRequest): { field: Field; window: NonNullable<ReadRequest['window']> } | null {
  const { window } = request;
  if (!window || (window.start === null && window.end === null)) return null;
  const field = cursorOf(request);
  if (isDate(field.type)) return { field, window };
  throw new ConfigurationError(
    'window_needs_dates',
    `${field.path[0]} is not a date, so the stream cannot be limited to a range of days`,
  );
}

export const isIncremental = ({ sync_mode, cursor_field }: ReadRequest): boolean =>
  sync_mode === 'incremental' && cursor_field !== null;

/** The table of a stream, or its query as a table with an alias. */
export function fromClause(
  { identifier, relation }: Pick<Dialect, 'identifier' | 'relation'>,
  { stream }: ReadRequest,
): string {
  if (stream.dataset_sql !== undefined) return datasetClause(stream.dataset_sql, 'q');
  return stream.namespace === null ? identifier(stream.name) : relation(stream.namespace, stream.name);
}

export const where = (parts: readonly string[]) => (parts.length ? ` where ${parts.join(' and ')}` : '');

/** The order of an incremental read: the cursor, then the key, so that equal cursors come in a stable order. */
export const orderBy = (dialect: Pick<Dialect, 'identifier'>, cursor: Field, primaryKey: string[][]): string =>
  ` order by ${columnList(dialect, [...new Set([cursor.path[0]!, ...primaryKey.map((path) => path[0]!)])])}`;
