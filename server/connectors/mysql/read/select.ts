import { datasetClause } from '../../kits/sql/datasets.ts';
import type { Field, ReadColumn, ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../../contract/errors.ts';
import { columnOf, isZeroDate, shownSql, textSql } from './cell-sql.ts';
import { compare, filterCondition } from './filters.ts';
import { FORM, type Form } from '../connection/row-text.ts';
import { columnList, identifier, relation } from '../connection/sql.ts';
import { DATES, formOf } from '../connection/types.ts';

/** What a SELECT gives, column by column. */
export interface Selection {
  list: string;
  forms: Form[];
}

export function selection(columns: readonly ReadColumn[], keepZeroDates: boolean): Selection {
  if (columns.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  const list = columns.map((column) => expression(column, keepZeroDates)).join(', ');
  const forms = columns.map(({ field, masking }) =>
    masking === 'none' ? formOf(field.type, keepZeroDates) : FORM.plain,
  );
  return { list, forms };
}

function expression({ field, masking }: ReadColumn, keepZeroDates: boolean): string {
  switch (masking) {
    case 'none':
      return shownSql(field);
    case 'redact':
      return `if(${textSql(field, keepZeroDates)} is null, null, '***')`;
    case 'hash_sha256':
      return `sha2(${textSql(field, keepZeroDates)}, 256)`;
    default:
      throw new ConfigurationError('unsupported_masking', `MySQL does not mask by ${masking}`);
  }
}

export function fromClause({ stream }: ReadRequest): string {
  if (stream.dataset_sql !== undefined) return datasetClause(stream.dataset_sql, 'q');
  return stream.namespace === null ? identifier(stream.name) : relation(stream.namespace, stream.name);
}

export const where = (parts: string[]) => (parts.length ? ` where ${parts.join(' and ')}` : '');

/** Filters and the window of days. */
export function conditions(request: ReadRequest): string[] {
  const parts = request.filters.map((filter) => filterCondition(filter, fieldByPath(request, filter.field.split('.'))));
  const { window, cursor_field } = request;
  if (!window || !cursor_field) return parts;
  const cursor = fieldByPath(request, cursor_field);
  if (window.start !== null) parts.push(compare(cursor, '>=', window.start));
  if (window.end !== null) parts.push(compare(cursor, '<', window.end));
  return parts;
}

/** Where an incremental read goes on; the rows at the very cursor come again. */
export function resumeCondition(request: ReadRequest): string[] {
  const { state, cursor_field } = request;
  if (!cursor_field || state?.cursor == null) return [];
  return [compare(fieldByPath(request, cursor_field), '>=', state.cursor)];
}

export const orderBy = (cursor: Field, primaryKey: string[][]) =>
  ` order by ${columnList([...new Set([cursor.path[0]!, ...primaryKey.map((path) => path[0]!)])])}`;

/** Has no place in the order of the cursor: its cell is NULL. */
export const hasNoCursor = (field: Field, keepZeroDates: boolean) =>
  DATES.has(field.type) && !keepZeroDates
    ? `(${columnOf(field)} is null or ${isZeroDate(field)})`
    : `${columnOf(field)} is null`;

export function fieldByPath(request: ReadRequest, path: string[]): Field {
  const field = request.stream.fields.find((one) => one.path.length === path.length && one.path[0] === path[0]);
  if (!field) throw new SchemaChangedError('column_missing', `${request.stream.name} has no column ${path.join('.')}`);
  return field;
}
