import { describe, expect, test } from 'bun:test';
import type { Cell } from '../../server/connectors/contract/connector.ts';
import { OrderedTracker } from '../../server/connectors/kits/sql/cursors/cursor-tracker.ts';
import type { Bound } from '../../server/connectors/kits/sql/cursors/safe-bound.ts';

/* One statement can give very many rows the same cursor, and all of them are remembered. */

const BATCHES = 100;
const ROWS = 100;

const OPEN = [{ id: '1', about: 'transaction 1' }];
const CASES: [what: string, cursor: string | null, bound: Bound | null][] = [
  ['without a bound', null, null],
  ['above a bound', null, { cursor: 'a', open: [], pending: null }],
  ['below what open transactions hold back', null, { cursor: 'x', open: OPEN, pending: null }],
  ['read once more, below what open transactions hold back', 'c', { cursor: 'x', open: OPEN, pending: null }],
];

describe('rows with the same cursor cost as much as any others', () => {
  test.each(CASES)('%s', (_what, cursor, bound) => {
    let compared = 0;
    const entryOf = (row: readonly Cell[]) => String(row[0]);
    const tracker = new OrderedTracker({
      cursorIndex: 1,
      identity: {
        shape: { columns: '', key: null, cells: [] },
        entry: entryOf,
        below: (entry) => entry,
        earlier: () => ({ isEmpty: cursor === null, take: (row) => Number(row[0]) < ROWS }),
      },
      state: cursor === null ? null : { cursor, boundary: [] },
      order: (a, b) => {
        compared += 1;
        return a < b ? -1 : a > b ? 1 : 0;
      },
      bound,
    });
    for (let at = 0; at < BATCHES; at += 1) {
      tracker.next(Array.from({ length: ROWS }, (_, n) => [String(at * ROWS + n), 'c']));
      tracker.state();
    }
    expect(tracker.end()?.boundary).toHaveLength(BATCHES * ROWS);
    expect(compared / (BATCHES * ROWS)).toBeLessThan(10);
  });
});
