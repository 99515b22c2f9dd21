import type { Field, Filter } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type Comparison, comparisonOf, momentKey } from '../../cells/comparison.ts';
import { checkedFilter } from '../../cells/filters.ts';
import { operandText } from '../../cells/operands.ts';
import { microsOf, timestampText } from '../../cells/timestamp-text.ts';
import { DATES } from '../../kits/sql/streams.ts';
import { columnOf, isZeroDate, textSql } from './cell-sql.ts';
import { literal } from '../connection/sql.ts';
import { bareName, isCharacter } from '../connection/types.ts';

const OPERATORS = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/**
 * Texts are compared by their bytes, regardless of the column's collation, which gives the same rows as the engine's own
 * filters. NULL matches nothing but `is_null`, and so does a zero date that is read as NULL.
 */
export function filterCondition(filter: Filter, field: Field, keepZeroDates: boolean): string {
  const condition = valueCondition(filter, field);
  if (keepZeroDates || !DATES.has(field.type)) return condition;
  return filter.operator === 'is_null'
    ? `(${condition} or ${isZeroDate(field)})`
    : `(${condition} and not ${isZeroDate(field)})`;
}

function valueCondition(filter: Filter, field: Field): string {
  const { operator, comparison, operands } = checkedFilter(filter, field);
  const [first = '', second = ''] = operands;
  const column = columnOf(field);
  const compared = (sign: Sign, operand: string) => comparisonSql(field, comparison, { sign, operand });
  switch (operator) {
    case 'is_null':
    case 'is_not_null':
      return `${column} is ${operator === 'is_null' ? '' : 'not '}null`;
    case 'in':
      return operands.length ? `(${operands.map((one) => compared('=', one)).join(' or ')})` : 'false';
    case 'not_in':
      return operands.length
        ? `(${operands.map((one) => compared('<>', one)).join(' and ')})`
        : `${column} is not null`;
    case 'between':
      return `(${compared('>=', first)} and ${compared('<=', second)})`;
    case 'contains':
    case 'starts_with':
      return `instr(cast(${textSql(field, false)} as binary), ${bytes(first)}) ${operator === 'contains' ? '> 0' : '= 1'}`;
    default:
      return compared(OPERATORS[operator], first);
  }
}

type Sign = (typeof OPERATORS)[keyof typeof OPERATORS];

/** Compares with a position of a read: the cell of a cursor, or a limit of a window. */
export function compare(field: Field, sign: '>=' | '<', value: string): string {
  if (DATES.has(field.type)) return momentSql(field, sign, instant(field, value));
  const comparison = comparisonOf(field);
  const operand = operandText(comparison, value);
  if (operand === null) throw refuse(field, value);
  return comparisonSql(field, comparison, { sign, operand });
}

function comparisonSql(
  field: Field,
  comparison: Comparison,
  { sign, operand }: { sign: Sign; operand: string },
): string {
  const column = columnOf(field);
  switch (comparison) {
    case 'integer':
    case 'decimal':
    case 'double':
    case 'single':
      return numberSql(field, sign, operand);
    case 'boolean':
      return `${column} ${sign} ${operand === 'true' ? 1 : 0}`;
    case 'date':
    case 'timestamp':
    case 'timestamp_tz':
      return momentSql(field, sign, operand.replace(/\+00( BC)?$/, '$1'));
    default: {
      const exact = `cast(${textSql(field, false)} as binary) ${sign} ${bytes(operand)}`;
      // Equal bytes are equal in every collation, and the first comparison can use an index.
      return sign === '=' && isCharacter(field.source_type ?? '')
        ? `(${column} = ${literal(operand)} and ${exact})`
        : exact;
    }
  }
}

const bytes = (value: string) => `cast(${literal(value)} as binary)`;

/** The server has no such value: all of its own are below it, or above it. */
function beyond(field: Field, sign: Sign, place: 'above' | 'below'): string {
  const matches = sign === '<>' || sign.startsWith(place === 'above' ? '<' : '>');
  return matches ? `${columnOf(field)} is not null` : 'false';
}

/** As a number: texts are compared as doubles, which lose digits. */
function numberSql(field: Field, sign: Sign, operand: string): string {
  if (/[NI]/.test(operand)) return beyond(field, sign, operand === '-Infinity' ? 'below' : 'above');
  const name = bareName(field.source_type ?? '');
  const number = name === 'float' ? `cast(${operand} as float)` : operand;
  return `${columnOf(field)} ${sign} ${name === 'double' && !/e/i.test(number) ? `${number}e0` : number}`;
}

const LAST_DAY = momentKey('9999-12-31 23:59:59.999999');
const FIRST_DAY = momentKey('0001-01-01');

/** UTC, without an offset. */
function momentSql(field: Field, sign: Sign, moment: string): string {
  const key = momentKey(moment);
  const isZero = moment.startsWith('0000');
  if (key > LAST_DAY) return beyond(field, sign, 'above');
  return key < FIRST_DAY && !isZero ? beyond(field, sign, 'below') : `${columnOf(field)} ${sign} ${literal(moment)}`;
}

/** Turns ISO 8601, or the text of a cell, into what the server understands: UTC, without an offset. */
function instant(field: Field, value: string): string {
  const plain = value
    .trim()
    .replace(/^(\d{4}-\d\d-\d\d)T/, '$1 ')
    .replace(/(Z|\+00(:?00)?)$/, '');
  if (/^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d{1,6})?)?)?$/.test(plain)) return plain;
  const micros = microsOf(value.trim());
  if (!Number.isNaN(micros)) return timestampText(micros).slice(0, -3);
  throw refuse(field, value);
}

const refuse = (field: Field, value: string) =>
  new ConfigurationError(
    'invalid_filter',
    `"${value.slice(0, 100)}" is not a valid ${field.type} to compare ${field.path[0]} with`,
  );
