import type { Field, Filter, ReadColumn, ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { checkedFilter } from '../../cells/filters.ts';
import type { Comparison } from '../../cells/comparison.ts';
import { fieldByPath, fromClause, where } from '../../kits/sql/request.ts';
import { resumeCursor } from '../../kits/sql/cursors/safe-bound.ts';
import { changeFieldOfRow } from './change-fields.ts';
import { identifier, literal, postgresNames } from '../connection/sql.ts';
import { hasPortableBinary } from '../connection/types.ts';

/** `rows`: the texts of cells. `binary`: unconverted values. */
export type SelectForm = 'rows' | 'binary';

/** The columns of the request. */
export function selectList(columns: readonly ReadColumn[], form: SelectForm): string {
  if (columns.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  return columns.map((column) => expression(column, form)).join(', ');
}

/** A full refresh, or the part of it for which `more` holds. */
export function fullSelect(request: ReadRequest, form: SelectForm, more: string[] = []): string {
  const parts = [...conditions(request), ...more];
  return `select ${selectList(request.columns, form)} from ${fromClause(postgresNames, request)}${where(parts)}`;
}

/** The filters and the window. */
export function conditions(request: ReadRequest): string[] {
  const parts = request.filters.map((filter) => filterCondition(filter, filterField(request, filter)));
  const { window, cursor_field, keys } = request;
  if (keys) parts.push(hasKey(keys));
  if (!window || !cursor_field) return parts;
  const cursor = identifier(cursor_field[0]!);
  // An untyped literal takes the column's type: days begin at midnight in the session's time zone, which is UTC.
  if (window.start !== null) parts.push(`${cursor} >= ${literal(window.start)}`);
  if (window.end !== null) parts.push(`${cursor} < ${literal(window.end)}`);
  return parts;
}

/** An untyped literal takes the column's type. */
function hasKey({ paths, values }: NonNullable<ReadRequest['keys']>): string {
  const columns = paths.map((path) => identifier(path[0]!));
  const rows = values.map((row) => row.map((text, at) => `${columns[at]!} = ${literal(text)}`).join(' and '));
  return `(${rows.map((row) => `(${row})`).join(' or ')})`;
}

/** Where an incremental read resumes: rows with the same cursor are read again. */
export function resumeCondition({ state, cursor_field }: ReadRequest): string[] {
  const cursor = resumeCursor(state);
  if (!cursor_field || cursor === null) return [];
  return [`${identifier(cursor_field[0]!)} >= ${literal(cursor)}`];
}

export const canBeBinary = (columns: readonly ReadColumn[]) =>
  columns.every(
    ({ field, masking }) => masking !== 'none' || changeFieldOfRow(field) !== null || hasPortableBinary(field),
  );

/** A column, or what rows of a table have for a field of changes. */
const valueOf = (field: Field) => changeFieldOfRow(field) ?? identifier(field.path[0]!);

export function expression({ field, masking }: ReadColumn, form: SelectForm): string {
  const value = valueOf(field);
  switch (masking) {
    case 'none':
      return form === 'rows' ? canonical(field) : value;
    case 'redact':
      return `case when ${isPresent(value)} then '***' end`;
    case 'hash_sha256':
      return `case when ${isPresent(value)} then encode(sha256(convert_to(${text(field)}, 'UTF8')), 'hex') end`;
    default:
      throw new ConfigurationError('unsupported_masking', `PostgreSQL cannot apply the masking ${masking}`);
  }
}

/** A composite value that holds a NULL is, by itself, neither null nor not null. */
const isPresent = (value: string) => `${value} is distinct from null`;

/** COPY writes booleans as t and f, a cast as true and false. */
const canonical = (field: Field) => (field.type === 'boolean' ? `${valueOf(field)}::text` : valueOf(field));

/** format() instead of a cast: a cast of character(n) to text loses its trailing spaces, which COPY keeps. */
const text = (field: Field) => (field.type === 'boolean' ? canonical(field) : `format('%s', ${valueOf(field)})`);

const filterField = (request: ReadRequest, filter: Filter) => fieldByPath(request, filter.field.split('.'));

const OPERATORS = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** NULL matches nothing but `is_null`. */
function filterCondition(filter: Filter, field: Field): string {
  const { operator, comparison, operands } = checkedFilter(filter, field);
  const [first = '', second = ''] = operands;
  const column = identifier(field.path[0]!);
  const compare = (sign: string, operand: string) => comparisonSql(field, comparison, { sign, operand });
  switch (operator) {
    case 'is_null':
    case 'is_not_null':
      return `${column} is ${operator === 'is_null' ? '' : 'not '}null`;
    case 'in':
      return operands.length ? `(${operands.map((one) => compare('=', one)).join(' or ')})` : 'false';
    case 'not_in':
      return operands.length ? `(${operands.map((one) => compare('<>', one)).join(' and ')})` : `${column} is not null`;
    case 'between':
      return `(${compare('>=', first)} and ${compare('<=', second)})`;
    case 'contains':
      return `(${column} is not null and strpos(${text(field)} collate "C", ${literal(first)}) > 0)`;
    case 'starts_with':
      return `(${column} is not null and left(${text(field)}, length(${literal(first)})) collate "C" = ${literal(first)})`;
    default:
      return compare(OPERATORS[operator], first);
  }
}

/** Types of the literals. Numbers that are not declared as PostgreSQL's own are compared by their texts' digits. */
const LITERALS: Partial<Record<Comparison, string>> = {
  uuid: 'uuid',
  decimal: 'numeric',
  double: 'float8',
  single: 'float4',
  boolean: 'boolean',
  date: 'date',
  timestamp: 'timestamp',
  timestamp_tz: 'timestamptz',
  time: 'time',
  binary: 'bytea',
};

function comparisonSql(
  field: Field,
  comparison: Comparison,
  { sign, operand }: { sign: string; operand: string },
): string {
  const column = identifier(field.path[0]!);
  const value = literal(operand);
  switch (comparison) {
    case 'text':
    case 'padded': {
      // Every collation has its own order, and some have equal texts that differ.
      const exact = `${column} collate "C" ${sign} ${value}`;
      return sign === '=' ? `(${column} = ${value} and ${exact})` : exact;
    }
    case 'opaque':
    case 'document':
      return `(${column} is not null and ${text(field)} collate "C" ${sign} ${value})`;
    case 'integer':
      // A number as it is written has the type that it needs; an index serves the usual ones.
      return `${field.source_type === 'oid' ? `${column}::bigint` : column} ${sign} (${operand})`;
    case 'decimal':
      return `${/^numeric\b/.test(field.source_type ?? '') ? column : `${column}::text::numeric`} ${sign} ${value}::numeric`;
    default:
      return `${column} ${sign} ${value}::${LITERALS[comparison]}`;
  }
}
