import { DATES } from '../../kits/sql/streams.ts';
import type { Field, Filter } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { microsOf, timestampText } from '../../cells/timestamp-text.ts';
import { filterValue } from '../../kits/sql/request.ts';
import { columnOf, textSql } from './cell-sql.ts';
import { literal } from '../connection/sql.ts';
import { bareName, isCharacter } from '../connection/types.ts';

const OPERATORS = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$/;

/**
 * Texts are compared by their bytes, regardless of the column's collation, which gives the same rows as the engine's own
 * filters. NULL matches nothing but `is_null`.
 */
export function filterCondition({ operator, value }: Filter, field: Field): string {
  const column = columnOf(field);
  const values = Array.isArray(value) ? value : [value];
  const first = () => filterValue(values, 0, field);
  switch (operator) {
    case 'is_null':
    case 'is_not_null':
      return `${column} is ${operator === 'is_null' ? '' : 'not '}null`;
    case 'in':
      return values.length ? `(${values.map((one) => compare(field, '=', one)).join(' or ')})` : 'false';
    case 'not_in':
      return values.length
        ? `(${values.map((one) => compare(field, '<>', one)).join(' and ')})`
        : `${column} is not null`;
    case 'between':
      return `(${compare(field, '>=', first())} and ${compare(field, '<=', filterValue(values, 1, field))})`;
    case 'contains':
    case 'starts_with':
      return `instr(cast(${textSql(field, false)} as binary), ${bytes(text(first()))}) ${operator === 'contains' ? '> 0' : '= 1'}`;
    default:
      return compare(field, OPERATORS[operator], first());
  }
}

export function compare(field: Field, operator: string, value: unknown): string {
  if (value === null || value === undefined) return 'null';
  const column = columnOf(field);
  const given = text(value);
  if (field.type === 'integer' || field.type === 'number') return `${column} ${operator} ${numberSql(field, given)}`;
  if (field.type === 'boolean') return `${column} ${operator} ${given === 'true' || given === '1' ? 1 : 0}`;
  if (DATES.has(field.type)) return `${column} ${operator} ${literal(instant(field, given))}`;
  const exact = `cast(${textSql(field, false)} as binary) ${operator} ${bytes(given)}`;
  // Equal bytes are equal in every collation, and the first comparison can use an index.
  return operator === '=' && isCharacter(field.source_type ?? '')
    ? `(${column} = ${literal(given)} and ${exact})`
    : exact;
}

const bytes = (value: string) => `cast(${literal(value)} as binary)`;
const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
const refuse = (field: Field, value: string) =>
  new ConfigurationError(
    'invalid_filter',
    `"${value.slice(0, 100)}" is not a valid ${field.type} to compare ${field.path[0]} with`,
  );

/** As a number: texts are compared as doubles, which lose digits. */
function numberSql(field: Field, value: string): string {
  const number = value.trim();
  if (!NUMBER.test(number)) throw refuse(field, value);
  const name = bareName(field.source_type ?? '');
  if (name === 'float') return `cast(${number} as float)`;
  return name === 'double' && !/e/i.test(number) ? `${number}e0` : number;
}

/** Turns ISO 8601, or the text of a cell, into what the server understands: UTC, without an offset. */
function instant(field: Field, value: string): string {
  const plain = value
    .trim()
    .replace(/^(\d{4}-\d\d-\d\d)T/, '$1 ')
    .replace(/(Z|\+00(:?00)?)$/, '');
  if (/^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d{1,6})?)?)?$/.test(plain)) return plain;
  const micros = microsOf(value.trim());
  if (Number.isNaN(micros)) throw refuse(field, value);
  return timestampText(micros).slice(0, -3);
}
