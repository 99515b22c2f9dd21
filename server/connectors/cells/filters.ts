import type { Filter } from '../contract/read-request.ts';
import type { Cell } from '../contract/cells.ts';
import type { Field } from '../contract/stream.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { type Comparison, comparisonOf, orderOf } from './comparison.ts';
import { operandText } from './operands.ts';

type FilterField = Pick<Field, 'path' | 'type' | 'source_type' | 'dialect'>;

export interface FilterFinding {
  code: 'invalid_filter';
  /** The key of the filter that is wrong. */
  place: 'operator' | 'value';
  message: string;
}

/** A filter whose operands have the canonical form of the field's values, the same for all sources and the engine. */
export interface CheckedFilter {
  operator: Filter['operator'];
  comparison: Comparison;
  operands: string[];
}

const ORDERING = new Set<Filter['operator']>(['gt', 'gte', 'lt', 'lte', 'between']);
const SEARCHING = new Set<Filter['operator']>(['contains', 'starts_with']);
const LISTS = new Set<Filter['operator']>(['in', 'not_in']);
const WITHOUT_VALUE = new Set<Filter['operator']>(['is_null', 'is_not_null']);

/** What prevents a filter from having the same meaning everywhere; null: nothing. Pure. */
export function filterFinding(filter: Filter, field: FilterField): FilterFinding | null {
  const checked = examine(filter, field);
  return 'message' in checked ? checked : null;
}

/** @throws ConfigurationError when `filterFinding` has something to report. */
export function checkedFilter(filter: Filter, field: FilterField): CheckedFilter {
  const checked = examine(filter, field);
  if ('message' in checked) throw new ConfigurationError(checked.code, checked.message);
  return checked;
}

function examine({ operator, value }: Filter, field: FilterField): CheckedFilter | FilterFinding {
  const comparison = comparisonOf(field);
  const name = field.path.join('.');
  const finding = (place: FilterFinding['place'], message: string): FilterFinding => ({
    code: 'invalid_filter',
    place,
    message: `Filter on ${name}: ${message}`,
  });
  if (WITHOUT_VALUE.has(operator)) return { operator, comparison, operands: [] };
  const searches = SEARCHING.has(operator);
  if (!allows(comparison, operator)) {
    return finding('operator', `${operator} is not available for values of type ${field.source_type ?? field.type}`);
  }
  const given = valuesOf(operator, value);
  if (typeof given === 'string') return finding('value', given);
  const operands = given.map((one) => operandText(searches ? 'text' : comparison, one));
  const wrong = operands.indexOf(null);
  if (wrong >= 0) {
    return finding('value', `${shown(given[wrong])} is not a valid ${WANTED[searches ? 'text' : comparison]}`);
  }
  return { operator, comparison, operands: operands as string[] };
}

function allows(comparison: Comparison, operator: Filter['operator']): boolean {
  if (SEARCHING.has(operator)) return comparison !== 'binary';
  if (comparison === 'document') return false;
  return comparison !== 'opaque' || !ORDERING.has(operator);
}

/** The values of a filter, or what is wrong with their number. */
function valuesOf(operator: Filter['operator'], value: unknown): unknown[] | string {
  if (LISTS.has(operator)) return Array.isArray(value) ? value : `${operator} takes a list of values`;
  if (operator === 'between') {
    return Array.isArray(value) && value.length === 2 ? value : 'between takes a list of two values';
  }
  if (Array.isArray(value)) return `${operator} takes a single value`;
  return value === null || value === undefined ? `${operator} needs a value` : [value];
}

const shown = (value: unknown) => `"${(typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 100)}"`;

const WANTED: Record<Comparison, string> = {
  text: 'text',
  padded: 'text',
  opaque: 'text',
  document: 'text',
  uuid: 'UUID',
  integer: 'whole number',
  decimal: 'number of at most 65 digits and 30 decimal places',
  double: 'number',
  single: 'number',
  boolean: 'boolean',
  date: 'date, such as 2026-01-31',
  timestamp: 'timestamp without a time zone, such as 2026-01-31 23:59:59',
  timestamp_tz: 'timestamp, such as 2026-01-31T23:59:59Z',
  time: 'time of day, such as 23:59:59',
  binary: 'binary value, such as \\x00ff',
};

/** The engine's own evaluation. As in SQL, null matches only `is_null`. @throws ConfigurationError */
export function filterTest(filter: Filter, field: FilterField): (cell: Cell) => boolean {
  const { operator, comparison, operands } = checkedFilter(filter, field);
  const order = orderOf(comparison);
  const [first = '', second = ''] = operands;
  const known = (test: (cell: string) => boolean) => (cell: Cell) => cell !== null && test(cell);
  switch (operator) {
    case 'is_null':
      return (cell) => cell === null;
    case 'is_not_null':
      return (cell) => cell !== null;
    case 'eq':
      return known((cell) => order(cell, first) === 0);
    case 'ne':
      return known((cell) => order(cell, first) !== 0);
    case 'gt':
      return known((cell) => order(cell, first) > 0);
    case 'gte':
      return known((cell) => order(cell, first) >= 0);
    case 'lt':
      return known((cell) => order(cell, first) < 0);
    case 'lte':
      return known((cell) => order(cell, first) <= 0);
    case 'between':
      return known((cell) => order(cell, first) >= 0 && order(cell, second) <= 0);
    case 'in':
      return known((cell) => operands.some((value) => order(cell, value) === 0));
    case 'not_in':
      return known((cell) => operands.every((value) => order(cell, value) !== 0));
    case 'contains':
      return known((cell) => cell.includes(first));
    case 'starts_with':
      return known((cell) => cell.startsWith(first));
  }
}
