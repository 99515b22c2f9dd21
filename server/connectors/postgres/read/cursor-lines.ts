import { type CursorState, trackCursor } from '../../cells/cursor.ts';
import type { Cell, StreamState } from '../../contract/connector.ts';
import { decodeCopyText, encodeCopyText } from '../../cells/copy-text.ts';

/** Whole lines of COPY text. */
interface Lines {
  bytes: Buffer;
  rows: number;
}

const LINE_FEED = 0x0a;

/**
 * What trackCursor is for rows, for lines of COPY text in the order of the cursor, none of which is without one: it
 * looks into those that an earlier read may have had, at the beginning, and into the last ones of each chunk.
 */
export function trackLines(options: { cursorIndex: number; width: number; state: StreamState | null }) {
  const { cursorIndex, width, state } = options;
  const tracker = trackCursor({ cursorIndex: width, keyIndexes: [], state });
  let resumed = Array.isArray(state?.boundary) && state.boundary.length > 0 ? state.cursor : null;
  // The row lane has the cursor once more at the end: the hashes of a state are the same in both lanes.
  const tracked = (row: Cell[]) => [...row, row[cursorIndex] ?? null];

  /** The rows at the end that share their cursor. */
  function lastRows(bytes: Buffer): Cell[][] {
    const found: Cell[][] = [];
    for (let end = bytes.length; end > 0; ) {
      const start = bytes.lastIndexOf(LINE_FEED, end - 2) + 1;
      const [row] = decodeCopyText(bytes.toString('utf8', start, end)) as [Cell[]];
      if (found.length > 0 && row[cursorIndex] !== found[0]![cursorIndex]) break;
      found.push(row);
      end = start;
    }
    return found.toReversed();
  }

  function withoutSeen({ bytes }: Lines, rows: Cell[][]): Lines & { state: CursorState | null } {
    const next = tracker.next(rows.map(tracked));
    if (next.rows.length === rows.length) return { bytes, rows: rows.length, state: next.state };
    for (const row of next.rows) row.length = width;
    const rest = Buffer.from(encodeCopyText(next.rows, () => {}));
    return { bytes: rest, rows: next.rows.length, state: next.state };
  }

  return {
    /** Leaves out rows that an earlier read had. */
    next(lines: Lines): Lines & { state: CursorState | null } {
      if (resumed !== null) {
        const rows = decodeCopyText(lines.bytes.toString('utf8'));
        if (rows[0]?.[cursorIndex] === resumed) return withoutSeen(lines, rows);
        // The rows come in order: from here on all are behind where the state stands.
        resumed = null;
      }
      return { ...lines, state: tracker.next(lastRows(lines.bytes).map(tracked)).state };
    },
  };
}
