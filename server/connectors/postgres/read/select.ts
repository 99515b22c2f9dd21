import { datasetClause } from '../../kits/sql/datasets.ts';
import type { Field, Filter, ReadColumn, ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../../contract/errors.ts';
import { changeFieldOfRow } from '../cdc/fields.ts';
import { columnList, identifier, literal, relation } from '../connection/sql.ts';
import { hasPortableBinary } from '../connection/types.ts';

/** `rows`: texts as a Cell has them. `binary`: values as they are. */
export type SelectForm = 'rows' | 'binary';

/** Everything of the request but where it goes on. */
export function selectList(columns: readonly ReadColumn[], form: SelectForm): string {
  if (columns.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  return columns.map((column) => expression(column, form)).join(', ');
}

export function fromClause({ stream }: ReadRequest): string {
  if (stream.dataset_sql !== undefined) return datasetClause(stream.dataset_sql, 'q');
  return stream.namespace === null ? identifier(stream.name) : relation(stream.namespace, stream.name);
}

/** The whole of a full refresh, or the part of it for which `more` holds. */
export function fullSelect(request: ReadRequest, form: SelectForm, more: string[] = []): string {
  const parts = [...conditions(request), ...more];
  return `select ${selectList(request.columns, form)} from ${fromClause(request)}${where(parts)}`;
}

export const where = (parts: string[]) => (parts.length ? ` where ${parts.join(' and ')}` : '');

/** Filters and the window of days. */
export function conditions(request: ReadRequest): string[] {
  const parts = request.filters.map((filter) => filterCondition(filter, filterField(request, filter)));
  const { window, cursor_field } = request;
  if (!window || !cursor_field) return parts;
  const cursor = identifier(cursor_field[0]!);
  // An untyped literal takes the column's type: days begin at midnight in the session's time zone, which is UTC.
  if (window.start !== null) parts.push(`${cursor} >= ${literal(window.start)}`);
  if (window.end !== null) parts.push(`${cursor} < ${literal(window.end)}`);
  return parts;
}

/** Where an incremental read goes on; the rows at the very cursor come again. */
export function resumeCondition({ state, cursor_field }: ReadRequest): string[] {
  if (!cursor_field || state?.cursor == null) return [];
  return [`${identifier(cursor_field[0]!)} >= ${literal(state.cursor)}`];
}

export const orderBy = (cursor: Field, primaryKey: string[][]) =>
  ` order by ${columnList([...new Set([cursor.path[0]!, ...primaryKey.map((path) => path[0]!)])])}`;

export const canBeBinary = (columns: readonly ReadColumn[]) =>
  columns.every(({ field, masking }) => masking !== 'none' || hasPortableBinary(field));

export function fieldByPath(request: ReadRequest, path: string[]): Field {
  const field = request.stream.fields.find((one) => one.path.length === path.length && one.path[0] === path[0]);
  if (!field) throw new SchemaChangedError('column_missing', `${request.stream.name} has no column ${path.join('.')}`);
  return field;
}

function expression({ field, masking }: ReadColumn, form: SelectForm): string {
  const column = identifier(field.path[0]!);
  switch (masking) {
    case 'none':
      return form === 'rows' ? canonical(field) : column;
    case 'redact':
      return `case when ${column} is not null then '***' end`;
    case 'hash_sha256':
      return `case when ${column} is not null then encode(sha256(convert_to(${text(field)}, 'UTF8')), 'hex') end`;
    default:
      throw new ConfigurationError('unsupported_masking', `PostgreSQL does not mask by ${masking}`);
  }
}

/** COPY writes booleans as t and f, a cast as true and false. */
const canonical = (field: Field) => {
  const told = changeFieldOfRow(field);
  if (told) return told;
  const column = identifier(field.path[0]!);
  return field.type === 'boolean' ? `${column}::text` : column;
};

/** format() and not a cast: a cast of character(n) to text loses its trailing spaces, which COPY keeps. */
const text = (field: Field) =>
  field.type === 'boolean' ? canonical(field) : `format('%s', ${identifier(field.path[0]!)})`;

const filterField = (request: ReadRequest, filter: Filter) => fieldByPath(request, filter.field.split('.'));

const OPERATORS = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** Untyped literals take the type of the column that they are compared to. NULL matches nothing but `is_null`. */
function filterCondition({ operator, value }: Filter, field: Field): string {
  const column = identifier(field.path[0]!);
  const values = (Array.isArray(value) ? value : [value]).map(operand);
  const first = () => need(values, 0, field);
  switch (operator) {
    case 'is_null':
    case 'is_not_null':
      return `${column} is ${operator === 'is_null' ? '' : 'not '}null`;
    case 'in':
      return values.length ? `${column} in (${values.join(', ')})` : 'false';
    case 'not_in':
      return values.length ? `${column} not in (${values.join(', ')})` : `${column} is not null`;
    case 'between':
      return `${column}${byBytes(field)} between ${first()} and ${need(values, 1, field)}`;
    case 'contains':
      return `(${column} is not null and strpos(${text(field)}, ${first()}) > 0)`;
    case 'starts_with':
      return `(${column} is not null and left(${text(field)}, length(${first()})) = ${first()})`;
    default:
      return `${column}${'eq ne'.includes(operator) ? '' : byBytes(field)} ${OPERATORS[operator]} ${first()}`;
  }
}

/** Texts have an order of their own in every database; the engine's is that of their bytes. */
const byBytes = ({ source_type }: Field) =>
  /^(text|character varying|character)\b/.test(source_type ?? '') ? ' collate "C"' : '';

function operand(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  return literal(typeof value === 'string' ? value : JSON.stringify(value));
}

function need(values: string[], index: number, field: Field): string {
  const value = values[index];
  if (value === undefined)
    throw new ConfigurationError('invalid_filter', `A filter on ${field.path[0]} needs more values`);
  return value;
}
