import { createHash } from 'node:crypto';
import type { Cell, StreamState } from '../contract/connector.ts';

/**
 * The position of an incremental read. `boundary` has one hash for each row already read whose cursor equals `cursor`
 * (so equal rows are counted): the next read asks for `>= cursor` and drops those rows. Each entry has the number of
 * cells, so that a row is recognized even after columns were added behind its own, and a hash of the whole record where
 * there is one, so that it is recognized whatever fields are selected.
 */
export interface CursorState extends StreamState {
  boundary: string[];
  /** More rows have the cursor than a state may hold: `boundary` is empty. */
  boundary_exceeded?: boolean;
}

export interface CursorTracker {
  /**
   * Takes the next rows in the order they were read and drops those that an earlier read returned.
   * @returns the new rows and the state after them (null until a row with a cursor was seen)
   */
  next(rows: Cell[][]): { rows: Cell[][]; state: CursorState | null };
}

/** Everything that the source returned for a row, selected or not. Absent: only the cells identify it. */
type RecordOf = (row: readonly Cell[]) => Readonly<Record<string, unknown>> | undefined;

/**
 * Tracks a read whose rows arrive in ascending order of the cursor, starting at `>= state.cursor`. Rows with the same
 * cursor are neither lost nor duplicated, even if a checkpoint falls between them. Cursors are compared as text, so equal
 * cursors must have equal texts. Rows without a cursor pass and do not affect the state.
 *
 * `keyIndexes`: the columns that identify a row; empty for all columns. With only the primary key, a row that changed
 * without a higher cursor counts as already read; with all columns it is returned again.
 */
export function trackCursor(options: {
  cursorIndex: number;
  keyIndexes: readonly number[];
  state: StreamState | null;
  recordOf?: RecordOf;
}): CursorTracker {
  const { cursorIndex, keyIndexes, recordOf } = options;
  const earlier = new EarlierRows(options.state, cursorIndex);
  const resumed = options.state?.cursor ?? null;
  let cursor = resumed;
  let boundary = boundaryOf(options.state);
  const cells = (row: Cell[]) => (keyIndexes.length ? keyIndexes.map((index) => row[index] ?? null) : row);
  const isNew = (row: Cell[]) => row[cursorIndex] !== resumed || !earlier.take(cells(row), recordOf?.(row));
  return {
    next(rows) {
      const fresh = earlier.isEmpty ? rows : rows.filter(isNew);
      // Only the last rows can be at the boundary: hashing all of them would cost more than reading them.
      let start = fresh.length;
      const last = fresh.findLast((row) => row[cursorIndex] != null)?.[cursorIndex] ?? cursor;
      while (start > 0 && (fresh[start - 1]![cursorIndex] ?? last) === last) start--;
      const group = fresh.slice(start).filter((row) => row[cursorIndex] === last);
      if (group.length > 0) {
        const hashes = group.map((row) => rowHash(cells(row), recordOf?.(row)));
        boundary = last === cursor ? [...boundary, ...hashes] : hashes;
        cursor = last;
      }
      return { rows: fresh, state: cursor === null ? null : { cursor, boundary } };
    },
  };
}

/** More rows than this with the same cursor are not remembered, so that a state stays small: the next read has them again. */
const MAX_BOUNDARY = 20_000;

/**
 * Tracks a read whose rows arrive in any order. `compare` orders the cursors, and a state is valid only after the last
 * row. Rows below the state's cursor pass: a read that asks for them again wants them.
 */
export function trackHighest(options: {
  cursorIndex: number;
  state: StreamState | null;
  compare(a: string, b: string): number;
  recordOf?: RecordOf;
}): CursorTracker {
  const { cursorIndex, compare, recordOf } = options;
  let isTooLarge = options.state?.boundary_exceeded === true;
  const before = new EarlierRows(options.state, cursorIndex);
  const resumed = options.state?.cursor ?? null;
  let cursor = resumed;
  let earlier = boundaryOf(options.state);
  // Hashed only when the state is requested: most rows are the highest only until the next one.
  let top: { cells: Cell[]; record: ReturnType<RecordOf> }[] = [];
  const wasSeen = (row: Cell[]) => row[cursorIndex] === resumed && before.take(row, recordOf?.(row));
  const note = (row: Cell[], value: string) => {
    const order = cursor === null ? 1 : compare(value, cursor);
    if (order < 0) return;
    if (order > 0) [cursor, earlier, top, isTooLarge] = [value, [], [], false];
    if (isTooLarge) return;
    top.push({ cells: [...row], record: recordOf?.(row) });
    if (earlier.length + top.length > MAX_BOUNDARY) [earlier, top, isTooLarge] = [[], [], true];
  };
  return {
    next(rows) {
      const fresh = rows.filter((row) => !wasSeen(row));
      for (const row of fresh) if (row[cursorIndex] != null) note(row, row[cursorIndex]);
      const entries = () => [...earlier, ...top.map(({ cells, record }) => rowHash(cells, record))];
      const state = () =>
        cursor === null ? null : { cursor, boundary: entries(), ...(isTooLarge && { boundary_exceeded: true }) };
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

/** The boundary of a state that `trackCursor` made. `cells`: the row as it was given to it. */
export function earlierRows(state: StreamState | null, cursorIndex: number, cells: (row: readonly Cell[]) => Cell[]) {
  const earlier = new EarlierRows(state, cursorIndex);
  return {
    get isEmpty() {
      return earlier.isEmpty;
    },
    take: (row: readonly Cell[]) => earlier.take(cells(row)),
  };
}

/** The rows of a state's boundary. Each is expected to appear once more. */
class EarlierRows {
  /** Entries that are left, by each of their names: the hash of the cells, and that of the record. */
  readonly #left = new Map<string, Set<Entry>>();
  /** Numbers of cells; null for entries of old states, which do not include it. */
  readonly #widths = new Set<number | null>();

  constructor(
    state: StreamState | null,
    private readonly cursorIndex: number,
  ) {
    for (const text of boundaryOf(state)) {
      const [hash = '', width, record] = text.split('.');
      const names = [width === undefined ? hash : `${hash}.${width}`, ...(record === undefined ? [] : [`r${record}`])];
      const entry = { names };
      for (const name of names) this.#left.set(name, (this.#left.get(name) ?? new Set()).add(entry));
      this.#widths.add(width === undefined ? null : Number(width));
    }
  }

  get isEmpty(): boolean {
    return this.#left.size === 0;
  }

  /** Consumes the entry of a row. @returns false if the row is not among them */
  take(row: readonly Cell[], record?: ReturnType<RecordOf>): boolean {
    if (record && this.#consume(`r${recordHash(record)}`)) return true;
    return [...this.#widths].some((width) =>
      this.#consume(width === null ? digest(row) : rowHash(this.#asBefore(row, width))),
    );
  }

  #consume(name: string): boolean {
    const [entry] = this.#left.get(name) ?? [];
    if (!entry) return false;
    for (const one of entry.names) {
      const entries = this.#left.get(one);
      entries?.delete(entry);
      if (entries?.size === 0) this.#left.delete(one);
    }
    return true;
  }

  /** The row as it was: columns added since are at the end, before the cursor if the query appends it. */
  #asBefore(row: readonly Cell[], width: number): readonly Cell[] {
    if (width >= row.length) return row;
    return this.cursorIndex < width ? row.slice(0, width) : [...row.slice(0, width - 1), row[this.cursorIndex] ?? null];
  }
}

interface Entry {
  names: readonly string[];
}

const rowHash = (cells: readonly Cell[], record?: ReturnType<RecordOf>) =>
  `${digest(cells)}.${cells.length}${record ? `.${recordHash(record)}` : ''}`;

/** The order of the fields does not count. */
const recordHash = (record: Readonly<Record<string, unknown>>) =>
  digest(
    Object.keys(record)
      .toSorted()
      .flatMap((name) => [name, JSON.stringify(record[name]) ?? null]),
  );

/** 64 bits. Each cell is prefixed with its length, so that different rows never give the same input. */
function digest(cells: readonly Cell[]): string {
  const hash = createHash('sha256');
  for (const cell of cells) hash.update(cell === null ? 'n;' : `${Buffer.byteLength(cell)};${cell}`);
  return hash.digest('hex').slice(0, 16);
}

/** What a run says when its state does not hold all rows of the last cursor. */
export const boundaryWarning = (stream: string): [code: string, message: string] => [
  'cursor_boundary_exceeded',
  `${stream}: more than ${MAX_BOUNDARY} rows have the last value of the cursor, and the state does not list them. The next run loads them again. Use a finer cursor, or a sync mode that replaces rows by key`,
];
