import type { StreamState } from '../../contract/connector.ts';

/** How far a stream, or one partition of it, has been read. Cursor values are in a form that sorts. */
export interface ReadProgress extends StreamState {
  /** The highest cursor seen. */
  cursor: string | null;
  /** Hashes of the rows that have it. */
  boundary: string[];
  /** More rows have it than a state may hold, so that the next read has them again. */
  boundary_exceeded?: boolean;
  /** Everything before it has been requested. May be ahead of the last record. */
  read_until: string | null;
  /** The read came to its end. */
  complete: boolean;
}

export const NO_PROGRESS: ReadProgress = { cursor: null, boundary: [], read_until: null, complete: false };

/** The progress in a stored state. @param normal the sortable form of a stored value */
export function progressOf(state: Record<string, unknown>, normal: (text: string) => string | null): ReadProgress {
  const { cursor, boundary, read_until, complete } = state;
  return {
    cursor: typeof cursor === 'string' ? normal(cursor) : null,
    ...(state.boundary_exceeded === true && { boundary_exceeded: true }),
    boundary: Array.isArray(boundary) ? boundary.filter((hash) => typeof hash === 'string') : [],
    read_until: typeof read_until === 'string' ? normal(read_until) : null,
    complete: complete === true,
  };
}
