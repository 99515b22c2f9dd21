import { DATES } from '../../kits/sql/streams.ts';
import type { Field, ReadColumn, ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { fieldByPath } from '../../kits/sql/request.ts';
import { resumeCursor } from '../../kits/sql/cursors/safe-bound.ts';
import { columnOf, isZeroDate, shownSql, textSql } from './cell-sql.ts';
import { compare, filterCondition } from './filters.ts';
import { FORM, type Form } from '../connection/row-text.ts';
import { formOf } from '../connection/types.ts';

/** The columns of a SELECT, and the form of each. */
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

export function expression({ field, masking }: ReadColumn, keepZeroDates: boolean): string {
  switch (masking) {
    case 'none':
      return shownSql(field);
    case 'redact':
      return `if(${textSql(field, keepZeroDates)} is null, null, '***')`;
    case 'hash_sha256':
      return `sha2(${textSql(field, keepZeroDates)}, 256)`;
    default:
      throw new ConfigurationError('unsupported_masking', `MySQL cannot apply the masking ${masking}`);
  }
}

/** The filters and the window. */
export function conditions(request: ReadRequest, keepZeroDates: boolean): string[] {
  const parts = request.filters.map((filter) =>
    filterCondition(filter, fieldByPath(request, filter.field.split('.')), keepZeroDates),
  );
  const { window, cursor_field } = request;
  if (!window || !cursor_field) return parts;
  const cursor = fieldByPath(request, cursor_field);
  if (window.start !== null) parts.push(compare(cursor, '>=', window.start));
  if (window.end !== null) parts.push(compare(cursor, '<', window.end));
  return parts;
}

/** Where an incremental read resumes: rows with the same cursor are read again. */
export function resumeCondition(request: ReadRequest): string[] {
  const { state, cursor_field } = request;
  const cursor = resumeCursor(state);
  if (!cursor_field || cursor === null) return [];
  return [compare(fieldByPath(request, cursor_field), '>=', cursor)];
}

/** The cell of the cursor is NULL, so the row has no place in its order. */
export const hasNoCursor = (field: Field, keepZeroDates: boolean) =>
  DATES.has(field.type) && !keepZeroDates
    ? `(${columnOf(field)} is null or ${isZeroDate(field)})`
    : `${columnOf(field)} is null`;
