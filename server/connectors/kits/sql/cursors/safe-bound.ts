import type { Order } from '../../../cells/comparison.ts';
import type { StreamState } from '../../../contract/connector.ts';

/*
 * Rows do not become visible in the order of their cursors: a transaction can commit after one that began later. A read
 * therefore remembers the rows above a bound and reads that part again next time. The bound is certain under one
 * assumption: a transaction that begins after a moment writes no cursor below those visible at that moment.
 */

/** A transaction that may still write rows. */
export interface OpenTransaction {
  id: string;
  /** For messages, e.g. `process 123`. */
  about: string;
}

/** What was visible, and which transactions were open right after. */
export interface Mark {
  /** A little below the highest visible cursor; null: none. */
  cursor: string | null;
  open: OpenTransaction[];
  /** What the open transactions write is not below it; null: unknown. */
  since: string | null;
}

export interface BoundSource {
  mark(): Promise<Mark>;
  /** Those of the transactions that have not ended. */
  stillOpen(ids: readonly string[]): Promise<string[]>;
}

/** A mark that becomes the bound when its transactions have ended. */
interface Pending {
  cursor: string;
  open: string[];
}

export interface Bound {
  /** All rows below it are visible; null: nothing is certain. */
  cursor: string | null;
  /** Holds the bound back. Empty: the bound is as high as it can be. */
  open: OpenTransaction[];
  pending: Pending | null;
}

const MAX_WAIT_MS = 1_000;
const LOOK_EVERY_MS = 20;

/** The lowest cursor of which rows may not have been read yet; null: the start. */
export const resumeCursor = (state: StreamState | null): string | null => {
  if (state === null) return null;
  return state.floor === undefined ? state.cursor : (state.floor as string | null);
};

/** Determines the bound of a read. Call it before the snapshot is taken that the read works on. */
export async function safeBound(source: BoundSource, state: StreamState | null, order: Order): Promise<Bound> {
  const highest = (...cursors: (string | null)[]) =>
    cursors.reduce((a, b) => (a === null || (b !== null && order(a, b) < 0) ? b : a), null);
  const earlier = pendingOf(state);
  const stillOpen = earlier ? await source.stillOpen(earlier.open) : [];
  const floor = highest(resumeCursor(state), stillOpen.length === 0 ? (earlier?.cursor ?? null) : null);
  const mark = await source.mark();
  // A transaction that was open in the last run is a long one.
  const left = mark.open.some(({ id }) => stillOpen.includes(id)) ? mark.open : await ended(source, mark.open);
  if (left.length > 0) {
    const pending =
      stillOpen.length > 0 ? earlier : mark.cursor === null ? null : { cursor: mark.cursor, open: ids(left) };
    return { cursor: highest(floor, mark.since), open: left, pending };
  }
  if (mark.open.length === 0) return { cursor: highest(floor, mark.cursor), open: [], pending: null };
  const next = await source.mark();
  const isQuiet = next.open.length === 0;
  const pending = isQuiet || next.cursor === null ? null : { cursor: next.cursor, open: ids(next.open) };
  return { cursor: highest(floor, isQuiet ? next.cursor : mark.cursor), open: [], pending };
}

const ids = (open: readonly OpenTransaction[]) => open.map(({ id }) => id);

function pendingOf(state: StreamState | null): Pending | null {
  const { cursor, open } = (state?.pending ?? {}) as Partial<Pending>;
  return typeof cursor === 'string' && Array.isArray(open) ? { cursor, open } : null;
}

/** Waits a moment for short transactions. @returns those that have not ended */
async function ended(source: BoundSource, open: OpenTransaction[]): Promise<OpenTransaction[]> {
  const until = performance.now() + MAX_WAIT_MS;
  let left = open;
  while (left.length > 0 && performance.now() < until) {
    const now = await source.stillOpen(ids(left));
    left = left.filter(({ id }) => now.includes(id));
    if (left.length > 0) await Bun.sleep(LOOK_EVERY_MS);
  }
  return left;
}
