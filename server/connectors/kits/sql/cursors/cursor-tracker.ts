import type { Order } from '../../../cells/comparison.ts';
import type { Cell, StreamState } from '../../../contract/connector.ts';
import { boundaryOf, type RowIdentity } from './row-identity.ts';
import type { Bound } from './safe-bound.ts';

/** Rows above a bound that open transactions hold back. More are left to a later run. */
const MAX_HELD_ROWS = 10_000;
/** Rows with the same cursor of which each cell is remembered. Of more, only the key is. */
const MAX_TIES = 1_000;

export interface TrackedRead {
  /** The place of the cursor in a row. */
  cursorIndex: number;
  identity: RowIdentity;
  state: StreamState | null;
  order: Order;
  /** Null: the source has no transactions in flight. */
  bound: Bound | null;
}

/** The cursor has no place in the order that further rows would follow. */
const isUnplaced = (cursor: string) => cursor === 'infinity' || cursor === 'Infinity' || cursor === 'NaN';

interface Entry {
  cursor: string;
  text: string;
}

/**
 * Tracks a read whose rows arrive in ascending order of the cursor, starting where `resumeCursor` says. The boundary of
 * a state has an entry for each row that was read from `floor` on (without it: at `cursor`), so that the next read
 * drops those rows. Infinity and NaN never become the cursor: their rows are read again each time, and dropped.
 */
export class OrderedTracker {
  readonly #read: TrackedRead;
  readonly #earlier: ReturnType<RowIdentity['earlier']>;
  readonly #resumed: string | null;
  #reached: string | null = null;
  #entries: Entry[] = [];
  /** How many of the last entries have the same cursor. */
  #ties = 0;
  #unplaced: string[] = [];
  /** Rows below the cursor of the state that appeared since. */
  #late: string[] = [];
  #held = false;

  constructor(read: TrackedRead) {
    this.#read = read;
    this.#earlier = read.identity.earlier(read.state);
    this.#resumed = read.state?.cursor ?? null;
  }

  /** Open transactions hold back the rest of the rows: stop reading. */
  get held(): boolean {
    return this.#held;
  }

  /** An earlier read may have returned the row. */
  isResuming(cursor: Cell): boolean {
    if (cursor === null) return false;
    if (isUnplaced(cursor)) return !this.#earlier.isEmpty;
    return this.#resumed !== null && this.#read.order(cursor, this.#resumed) <= 0;
  }

  /** From this cursor on, rows are remembered once the read has reached `last`. Null: all of them. */
  floorAt(last: string): string | null {
    const { bound, order } = this.#read;
    if (!bound) return last;
    return bound.cursor === null || order(bound.cursor, last) < 0 ? bound.cursor : last;
  }

  /** Whether rows at this cursor may be held back. */
  isLimited(cursor: string): boolean {
    const { bound, order } = this.#read;
    return bound !== null && bound.open.length > 0 && (bound.cursor === null || order(cursor, bound.cursor) >= 0);
  }

  /** Drops rows that an earlier read returned. `rows` may lack those below `floorAt` of the last one. */
  next(rows: Cell[][]): Cell[][] {
    const { cursorIndex, order } = this.#read;
    const { given, fresh } = this.#sorted(rows);
    const last = given.findLast((row) => !isUnplaced(row[cursorIndex] ?? 'NaN'))?.[cursorIndex] ?? null;
    if (last !== null) {
      const floor = this.floorAt(last);
      this.#reached = last;
      this.#entries = this.#entriesFrom(floor);
      let start = given.length;
      const isAbove = (cursor: Cell) =>
        cursor === null || isUnplaced(cursor) || floor === null || order(cursor, floor) >= 0;
      while (start > 0 && isAbove(given[start - 1]![cursorIndex] ?? null)) start--;
      for (const row of given.slice(start)) this.#remember(row);
    } else for (const row of given) this.#remember(row);
    return fresh;
  }

  /** Entries are in the order of the cursor, and there may be very many with the same one: looks at no more than it drops. */
  #entriesFrom(floor: string | null): Entry[] {
    if (floor === null) return this.#entries;
    const start = this.#entries.findIndex(({ cursor }) => this.#read.order(cursor, floor) >= 0);
    return start === 0 ? this.#entries : start < 0 ? [] : this.#entries.slice(start);
  }

  #remember(row: Cell[]): void {
    const { cursorIndex, order, identity } = this.#read;
    const cursor = row[cursorIndex] ?? null;
    if (cursor === null) return;
    if (isUnplaced(cursor)) {
      this.#unplaced.push(identity.entry(row));
      return;
    }
    const previous = this.#entries.at(-1)?.cursor;
    if (previous === undefined || order(previous, cursor) !== 0) {
      this.#shortenLast();
      this.#ties = 0;
    }
    this.#ties += 1;
    this.#entries.push({ cursor, text: identity.entry(row, this.#ties <= MAX_TIES) });
  }

  /** The rows that have been the last ones are below the cursor now. */
  #shortenLast(): void {
    const { identity } = this.#read;
    if (this.#ties === 0) return;
    for (const entry of this.#entries.slice(-this.#ties)) entry.text = identity.below(entry.text);
  }

  #isLast(cursor: Cell): boolean {
    if (cursor === null || this.#resumed === null || isUnplaced(cursor)) return true;
    return this.#read.order(cursor, this.#resumed) === 0;
  }

  /** `given`: without the rows that are held back. `fresh`: also without those that an earlier read returned. */
  #sorted(rows: Cell[][]): { given: Cell[][]; fresh: Cell[][] } {
    const { cursorIndex, identity } = this.#read;
    const cursorOf = (row: Cell[] | undefined) => row?.[cursorIndex] ?? null;
    const ends = [cursorOf(rows[0]), cursorOf(rows.at(-1))];
    // They are sorted, so all between the first and the last are new if these are.
    if (!ends.some((cursor) => cursor !== null && (this.isResuming(cursor) || this.isLimited(cursor)))) {
      return { given: rows, fresh: rows };
    }
    // The limited ones are the last entries.
    let remembered = this.#entries.length - 1 - this.#entries.findLastIndex(({ cursor }) => !this.isLimited(cursor));
    const fresh: Cell[][] = [];
    for (const [at, row] of rows.entries()) {
      const cursor = cursorOf(row);
      const isResuming = this.isResuming(cursor);
      const isKnown = isResuming && this.#earlier.take(row, this.#isLast(cursor));
      const isLimited = cursor !== null && this.isLimited(cursor);
      if (isLimited && !isKnown && remembered >= MAX_HELD_ROWS) {
        this.#held = true;
        return { given: rows.slice(0, at), fresh };
      }
      if (isLimited) remembered += 1;
      if (isKnown) continue;
      fresh.push(row);
      if (isResuming && this.#resumed !== null && !isUnplaced(cursor!)) this.#late.push(identity.entry(row));
    }
    return { given: rows, fresh };
  }

  /** The state after the rows so far; null: a read cannot resume here. */
  state(): StreamState | null {
    const { state, identity } = this.#read;
    const [reached, resumed] = [this.#reached, this.#resumed];
    if (resumed === null) return reached === null ? this.#withoutCursor() : this.#at(reached);
    if (reached !== null && this.#read.order(reached, resumed) > 0) return this.#at(reached);
    // In the part that is read again: what has not come yet is still expected.
    if (this.#late.length === 0) return state;
    const isAlike = Bun.deepEquals(state?.shape, identity.shape);
    return state && isAlike ? { ...state, boundary: [...boundaryOf(state), ...this.#late] } : null;
  }

  /** The state after the last row. Rows of the earlier boundary that did not appear again are gone. */
  end(): StreamState | null {
    const [reached, resumed] = [this.#reached, this.#resumed];
    if (resumed === null || (reached !== null && this.#read.order(reached, resumed) > 0)) return this.state();
    return this.#held ? this.state() : this.#at(resumed);
  }

  #withoutCursor(): StreamState | null {
    if (this.#unplaced.length === 0) return null;
    return { cursor: null, boundary: this.#unplaced, shape: this.#read.identity.shape, nulls_read: true };
  }

  #at(cursor: string): StreamState {
    const { bound, identity } = this.#read;
    const floor = this.floorAt(cursor);
    return {
      cursor,
      boundary: [...this.#entriesFrom(floor).map(({ text }) => text), ...this.#unplaced],
      shape: identity.shape,
      ...(floor !== cursor && { floor }),
      ...(bound?.pending && { pending: bound.pending }),
    };
  }
}
