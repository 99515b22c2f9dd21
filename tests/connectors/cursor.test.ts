import { describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { trackCursor } from '../../server/connectors/cells/cursor.ts';
import type { Cell, StreamState } from '../../server/connectors/contract/connector.ts';
import { limitHangs } from '../support/hangs.ts';

limitHangs();

/** A growing source: each step is the table at that time, ascending by cursor (column 0). */
const byCursor = (rows: Cell[][]) => [...rows].sort((a, b) => Number(a[0]) - Number(b[0]));

/** One read from `state`, in batches; stops after `stopAfter` batches as a crash would. The last state is what was committed. */
function read(table: Cell[][], state: StreamState | null, how: { batch: number; stopAfter: number }) {
  const from = state?.cursor ?? null;
  const rows = byCursor(table).filter(([cursor]) => from === null || Number(cursor) >= Number(from));
  const tracker = trackCursor({ cursorIndex: 0, keyIndexes: [], state });
  const got: Cell[][] = [];
  let reached = state;
  for (let batch = 0; batch * how.batch < rows.length && batch < how.stopAfter; batch++) {
    const next = tracker.next(rows.slice(batch * how.batch, (batch + 1) * how.batch));
    got.push(...next.rows);
    // As JSON, as in the database.
    reached = JSON.parse(JSON.stringify(next.state)) as StreamState;
  }
  return { got, state: reached };
}

const row = fc
  .tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 }))
  .map(([cursor, value]) => [String(cursor), String(value)]);
const rest = fc.record({ batch: fc.integer({ min: 1, max: 5 }), stopAfter: fc.integer({ min: 1, max: 4 }) });
const counted = (rows: Cell[][]) => rows.map((cells) => cells.join(':')).sort();

describe('reading by a cursor', () => {
  test('every row is returned once, whatever the batches, crashes and equal cursors', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 40 }), fc.array(rest, { minLength: 1, maxLength: 6 }), (table, reads) => {
        let state: StreamState | null = null;
        const all: Cell[][] = [];
        for (const how of [...reads, { batch: 3, stopAfter: 100 }]) {
          const part = read(table, state, how);
          all.push(...part.got);
          state = part.state;
        }
        expect(counted(all)).toEqual(counted(table));
      }),
      { numRuns: 2_000 },
    );
  });

  test('rows that appear later are returned once, even with the cursor of the last read', () => {
    fc.assert(
      fc.property(fc.array(fc.array(row, { maxLength: 8 }), { minLength: 1, maxLength: 5 }), rest, (steps, how) => {
        let state: StreamState | null = null;
        let table: Cell[][] = [];
        const all: Cell[][] = [];
        const expected: Cell[][] = [];
        for (const step of steps) {
          const floor = Math.max(-1, ...table.map(([cursor]) => Number(cursor)));
          const grown = step.filter(([cursor]) => Number(cursor) >= floor);
          table = [...table, ...grown];
          expected.push(...grown);
          const part = read(table, state, { ...how, stopAfter: 100 });
          all.push(...part.got);
          state = part.state;
        }
        expect(counted(all)).toEqual(counted(expected));
      }),
      { numRuns: 2_000 },
    );
  });

  test('a row that changed at the same cursor counts as read with keys, and is returned again without', () => {
    const first = [['5', 'a', 'old']];
    const second = [
      ['5', 'a', 'new'],
      ['5', 'b', 'new'],
    ];
    for (const [keyIndexes, expected] of [
      [[1], ['b']],
      [[], ['a', 'b']],
    ] as const) {
      const { state } = trackCursor({ cursorIndex: 0, keyIndexes, state: null }).next(first);
      const { rows } = trackCursor({ cursorIndex: 0, keyIndexes, state }).next(second);
      expect(rows.map((cells) => cells[1]!)).toEqual([...expected]);
    }
  });

  test('rows without a cursor pass through and do not affect the state', () => {
    const tracker = trackCursor({ cursorIndex: 0, keyIndexes: [], state: null });
    expect(tracker.next([[null, 'x']])).toEqual({ rows: [[null, 'x']], state: null });
    expect(
      tracker.next([
        ['1', 'x'],
        [null, 'y'],
      ]).state,
    ).toMatchObject({ cursor: '1' });
  });

  test('rows differ by NULL or the empty string, and by the boundaries of their cells', () => {
    const state = trackCursor({ cursorIndex: 0, keyIndexes: [], state: null }).next([['1', null, 'ab', 'c']]).state;
    for (const other of [
      ['1', '', 'ab', 'c'],
      ['1', null, 'a', 'bc'],
    ]) {
      expect(trackCursor({ cursorIndex: 0, keyIndexes: [], state }).next([other]).rows).toEqual([other]);
    }
  });

  test.each(['at the end', 'where it stands'])(
    'rows are recognized although columns were added since; the cursor %s',
    (where) => {
      const atEnd = where === 'at the end';
      const wide = (cells: Cell[]) => (atEnd ? [...cells, cells[0]!] : cells);
      const cursorIndex = (cells: Cell[]) => (atEnd ? cells.length : 0);
      const readOn = (state: StreamState | null, rows: Cell[][]) => {
        const tracker = trackCursor({ cursorIndex: cursorIndex(rows[0]!), keyIndexes: [], state });
        const next = tracker.next(rows.map(wide));
        return { rows: next.rows.map((cells) => cells.slice(0, rows[0]!.length)), state: next.state };
      };
      const first = readOn(null, [
        ['1', 'a'],
        ['2', 'b'],
        ['2', 'b'],
      ]);
      // A changed row is returned again, and so is an additional duplicate.
      const second = readOn(first.state, [
        ['2', 'b', null],
        ['2', 'c', 'x'],
        ['2', 'b', 'y'],
        ['2', 'b', null],
      ]);
      expect(second.rows).toEqual([
        ['2', 'c', 'x'],
        ['2', 'b', null],
      ]);
      const third = readOn(second.state, [
        ['2', 'b', null, '1'],
        ['2', 'c', 'x', '1'],
        ['2', 'b', 'y', '1'],
        ['2', 'b', null, '1'],
        ['3', 'd', null, '1'],
      ]);
      expect(third.rows).toEqual([['3', 'd', null, '1']]);
    },
  );

  test('states from before the number of cells was recorded still work', () => {
    const state = {
      cursor: '2',
      boundary: [createHash('sha256').update('1;21;b').digest('hex').slice(0, 16)],
    };
    const tracker = trackCursor({ cursorIndex: 0, keyIndexes: [], state });
    expect(
      tracker.next([
        ['2', 'b'],
        ['2', 'b'],
      ]).rows,
    ).toEqual([['2', 'b']]);
  });
});
