import { createHash } from 'node:crypto';
import type { Cell, StreamState } from '../contract/connector.ts';

/**
 * Where an incremental read stands. `boundary` has a hash of each row already read whose cursor equals `cursor`
 * (one entry a row, so equal rows are counted): a read that goes on asks for `>= cursor` and leaves those out. With each
 * hash goes the number of its cells: a row is still known when columns have come behind those that it had.
 */
export interface CursorState extends StreamState {
  boundary: string[];
}

export interface CursorTracker {
  /**
   * Takes the next rows in the order read and leaves out those that an earlier read had.
   * @returns the rows that are new, and the state after them (null as long as no row with a cursor was seen).
   */
  next(rows: Cell[][]): { rows: Cell[][]; state: CursorState | null };
}

/**
 * Keeps the state of a read whose rows come in ascending order of the cursor, from `>= state.cursor` on. Rows with the
 * same cursor are neither lost nor doubled wherever a checkpoint cuts between them. Cursors are compared as texts, so
 * equal ones must have equal texts. Rows without a cursor pass and leave the state alone.
 *
 * `keyIndexes`: the columns that tell rows apart. Empty: all. With the primary key alone, a row that was changed without
 * its cursor growing is taken for the one already read; with all columns it comes again.
 */
export function trackCursor(options: {
  cursorIndex: number;
  keyIndexes: readonly number[];
  state: StreamState | null;
}): CursorTracker {
  const { cursorIndex, keyIndexes } = options;
  const earlier = new EarlierRows(options.state, cursorIndex);
  const resumed = options.state?.cursor ?? null;
  let cursor = resumed;
  let boundary = boundaryOf(options.state);
  const cells = (row: Cell[]) => (keyIndexes.length ? keyIndexes.map((index) => row[index] ?? null) : row);
  const isNew = (row: Cell[]) => row[cursorIndex] !== resumed || !earlier.take(cells(row));
  return {
    next(rows) {
      const fresh = earlier.isEmpty ? rows : rows.filter(isNew);
      // Only the rows at the end can be at the boundary: hashing all of them would cost more than reading them.
      let start = fresh.length;
      const last = fresh.findLast((row) => row[cursorIndex] != null)?.[cursorIndex] ?? cursor;
      while (start > 0 && (fresh[start - 1]![cursorIndex] ?? last) === last) start--;
      const group = fresh.slice(start).filter((row) => row[cursorIndex] === last);
      if (group.length > 0) {
        const hashes = group.map((row) => rowHash(cells(row)));
        boundary = last === cursor ? [...boundary, ...hashes] : hashes;
        cursor = last;
      }
      return { rows: fresh, state: cursor === null ? null : { cursor, boundary } };
    },
  };
}

/**
 * The same for rows in any order: they are compared by `compare`, and a state is good only once everything has been
 * read. Rows below the state's cursor pass: whoever asks for them again wants them.
 */
export function trackHighest(options: {
  cursorIndex: number;
  state: StreamState | null;
  compare(a: string, b: string): number;
}): CursorTracker {
  const { cursorIndex, compare } = options;
  const before = new EarlierRows(options.state, cursorIndex);
  const resumed = options.state?.cursor ?? null;
  let cursor = resumed;
  let earlier = boundaryOf(options.state);
  // Hashed when the state is asked for: most rows are at the top only until the next one.
  let top: Cell[][] = [];
  const wasSeen = (row: Cell[]) => row[cursorIndex] === resumed && before.take(row);
  const note = (row: Cell[], value: string) => {
    const order = cursor === null ? 1 : compare(value, cursor);
    if (order < 0) return;
    if (order > 0) [cursor, earlier, top] = [value, [], []];
    top.push([...row]);
  };
  return {
    next(rows) {
      const fresh = rows.filter((row) => !wasSeen(row));
      for (const row of fresh) if (row[cursorIndex] != null) note(row, row[cursorIndex]);
      const state = () => (cursor === null ? null : { cursor, boundary: [...earlier, ...top.map(rowHash)] });
      return {
        rows: fresh,
        get state() {
          return state();
        },
      };
    },
  };
}

const boundaryOf = (state: StreamState | null): string[] =>
  Array.isArray(state?.boundary) ? state.boundary.filter((entry) => typeof entry === 'string') : [];

/** The rows of a state's boundary, each to be met again once. */
class EarlierRows {
  readonly #counts = new Map<string, number>();
  /** Numbers of cells; null: whoever noted the row did not say. */
  readonly #widths = new Set<number | null>();

  constructor(
    state: StreamState | null,
    private readonly cursorIndex: number,
  ) {
    for (const entry of boundaryOf(state)) {
      this.#counts.set(entry, (this.#counts.get(entry) ?? 0) + 1);
      this.#widths.add(entry.includes('.') ? Number(entry.slice(entry.indexOf('.') + 1)) : null);
    }
  }

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  /** False: it is none of them. */
  take(row: readonly Cell[]): boolean {
    for (const width of this.#widths) {
      const entry = width === null ? digest(row) : rowHash(this.#asBefore(row, width));
      const count = this.#counts.get(entry);
      if (!count) continue;
      if (count === 1) this.#counts.delete(entry);
      else this.#counts.set(entry, count - 1);
      return true;
    }
    return false;
  }

  /** Columns that came since stand behind the others, before the cursor where that is told once more at the end. */
  #asBefore(row: readonly Cell[], width: number): readonly Cell[] {
    if (width >= row.length) return row;
    return this.cursorIndex < width ? row.slice(0, width) : [...row.slice(0, width - 1), row[this.cursorIndex] ?? null];
  }
}

const rowHash = (cells: readonly Cell[]) => `${digest(cells)}.${cells.length}`;

/** 64 bits; each cell with its length before it, so that no two rows read the same. */
function digest(cells: readonly Cell[]): string {
  const hash = createHash('sha256');
  for (const cell of cells) hash.update(cell === null ? 'n;' : `${Buffer.byteLength(cell)};${cell}`);
  return hash.digest('hex').slice(0, 16);
}
