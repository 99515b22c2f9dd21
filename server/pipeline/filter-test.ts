import type { Cell, Filter, LogicalType } from '../connectors/contract/connector.ts';
import { microsOf } from '../connectors/cells/timestamp-text.ts';

/** As in SQL, null matches only `is_null`. */
export function filterTest(filter: Filter, type: LogicalType): (cell: Cell) => boolean {
  const operand = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  const compare = comparison(type);
  const list = (Array.isArray(filter.value) ? filter.value : [filter.value]).map(operand);
  const [first = '', second = ''] = list;
  const known = (test: (cell: string) => boolean) => (cell: Cell) => cell !== null && test(cell);
  switch (filter.operator) {
    case 'is_null':
      return (cell) => cell === null;
    case 'is_not_null':
      return (cell) => cell !== null;
    case 'eq':
      return known((cell) => compare(cell, first) === 0);
    case 'ne':
      return known((cell) => compare(cell, first) !== 0);
    case 'gt':
      return known((cell) => compare(cell, first) > 0);
    case 'gte':
      return known((cell) => compare(cell, first) >= 0);
    case 'lt':
      return known((cell) => compare(cell, first) < 0);
    case 'lte':
      return known((cell) => compare(cell, first) <= 0);
    case 'between':
      return known((cell) => compare(cell, first) >= 0 && compare(cell, second) <= 0);
    case 'in':
      return known((cell) => list.some((value) => compare(cell, value) === 0));
    case 'not_in':
      return known((cell) => list.every((value) => compare(cell, value) !== 0));
    case 'contains':
      return known((cell) => cell.includes(first));
    case 'starts_with':
      return known((cell) => cell.startsWith(first));
  }
}

type Compare = (a: string, b: string) => number;

/** Compares as SQL sources do: numbers by value, timestamps by instant, texts by bytes. */
function comparison(type: LogicalType): Compare {
  switch (type) {
    case 'integer':
    case 'number':
      return compareNumbers;
    case 'date':
    case 'timestamp':
    case 'timestamp_tz':
      return compareMoments;
    default:
      return compareTexts;
  }
}

const compareTexts: Compare = (a, b) => (a === b ? 0 : a < b ? -1 : 1);

/** Values without a time zone are in UTC. */
function compareMoments(a: string, b: string): number {
  const difference = microsOf(a) - microsOf(b);
  return Number.isNaN(difference) ? compareTexts(a, b) : difference;
}

const DECIMAL = /^([+-]?)(\d*)\.?(\d*)$/;

/** Exact, except for exponents, NaN and the infinities, which are compared as doubles. */
function compareNumbers(a: string, b: string): number {
  const [x, y] = [DECIMAL.exec(a), DECIMAL.exec(b)];
  if (!x || !y) return Number(a) - Number(b);
  const scale = Math.max(x[3]!.length, y[3]!.length);
  const difference = digits(x, scale) - digits(y, scale);
  return difference === 0n ? 0 : difference < 0n ? -1 : 1;
}

const digits = ([, sign, whole, fraction = '']: RegExpExecArray, scale: number) => {
  const value = BigInt(`${whole}${fraction.padEnd(scale, '0')}` || '0');
  return sign === '-' ? -value : value;
};
