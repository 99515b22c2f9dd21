import { describe, expect, test } from 'bun:test';
import { type Cast, castBetween, type ValueType } from '../../server/connectors/cells/casts.ts';
import { LOGICAL_TYPES, type LogicalType } from '../../server/connectors/contract/connector.ts';

/** What is not listed is impossible. */
const TABLE: Record<LogicalType, Partial<Record<LogicalType, Cast>>> = {
  string: {
    integer: 'checked',
    number: 'checked',
    date: 'checked',
    time: 'checked',
    timestamp: 'checked',
    timestamp_tz: 'checked',
  },
  integer: { number: 'exact', string: 'exact' },
  number: { integer: 'lossy', string: 'exact' },
  boolean: { string: 'exact' },
  date: { timestamp: 'exact', string: 'exact' },
  timestamp: { date: 'lossy', string: 'exact' },
  timestamp_tz: { timestamp: 'exact', date: 'lossy', string: 'exact' },
  time: { string: 'exact' },
  json: { string: 'exact' },
  array: { json: 'checked', string: 'exact' },
  binary: { string: 'exact' },
};

describe('the table of casts', () => {
  test('by logical types', () => {
    for (const from of LOGICAL_TYPES) {
      for (const to of LOGICAL_TYPES) {
        const wanted = from === to ? 'exact' : (TABLE[from][to] ?? 'impossible');
        expect(`${from} → ${to}: ${castBetween({ type: from }, { type: to })}`).toBe(`${from} → ${to}: ${wanted}`);
      }
    }
  });

  const digits = (whole: number, scale: number) => ({ type: 'number', digits: { whole, scale } }) as const;
  test.each<[string, ValueType, ValueType, Cast]>([
    ['numeric to numeric(10,2)', { type: 'number' }, digits(8, 2), 'lossy'],
    ['numeric(10,2) to numeric', digits(8, 2), { type: 'number' }, 'exact'],
    ['numeric(10,2) to numeric(5,2): the database refuses what is too large', digits(8, 2), digits(3, 2), 'exact'],
    ['numeric(10,3) to numeric(10,2)', digits(7, 3), digits(8, 2), 'lossy'],
    ['text to numeric(10,2)', { type: 'string' }, digits(8, 2), 'lossy'],
    ['integer to numeric(10,0)', { type: 'integer' }, digits(10, 0), 'exact'],
    ['bigint to real', { type: 'integer' }, { type: 'number', float: 'single' }, 'lossy'],
    [
      'smallint to real',
      { type: 'integer', digits: { whole: 5, scale: 0 } },
      { type: 'number', float: 'single' },
      'exact',
    ],
    ['numeric(4,2) to real', digits(2, 2), { type: 'number', float: 'single' }, 'exact'],
    ['numeric(16,2) to double precision', digits(14, 2), { type: 'number', float: 'double' }, 'lossy'],
    ['real to double precision', { type: 'number', float: 'single' }, { type: 'number', float: 'double' }, 'exact'],
    ['double precision to real', { type: 'number', float: 'double' }, { type: 'number', float: 'single' }, 'lossy'],
    ['timestamp to timestamp(0)', { type: 'timestamp' }, { type: 'timestamp', places: 0 }, 'lossy'],
    ['timestamp(3) to timestamp(6)', { type: 'timestamp', places: 3 }, { type: 'timestamp', places: 6 }, 'exact'],
    ['date to timestamp(0)', { type: 'date' }, { type: 'timestamp', places: 0 }, 'exact'],
    ['time to time(0)', { type: 'time' }, { type: 'time', places: 0 }, 'lossy'],
  ])('%s', (_name, from, to, cast) => {
    expect(castBetween(from, to)).toBe(cast);
  });
});
