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
 * The equivalent of trackCursor for lines of COPY text, sorted by a cursor that is never NULL. Decodes only the first
 * lines, which an earlier read may have returned, and the last lines of each chunk.
 */
export function trackLines(options: { cursorIndex: number; width: number; state: StreamState | null }) {
  const { cursorIndex, width, state } = options;
  const tracker = trackCursor({ cursorIndex: width, keyIndexes: [], state });
  let resumed = Array.isArray(state?.boundary) && state.boundary.length > 0 ? state.cursor : null;
  // The row lane repeats the cursor as the last cell. Both lanes must produce the same hashes.
  const tracked = (row: Cell[]) => [...row, row[cursorIndex] ?? null];

  /** The last rows, all with the same cursor. */
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
    /** Drops rows that an earlier read returned. */
    next(lines: Lines): Lines & { state: CursorState | null } {
      if (resumed !== null) {
        const rows = decodeCopyText(lines.bytes.toString('utf8'));
        if (rows[0]?.[cursorIndex] === resumed) return withoutSeen(lines, rows);
        // Rows are sorted, so all that follow are beyond the state.
        resumed = null;
      }
      return { ...lines, state: tracker.next(lastRows(lines.bytes).map(tracked)).state };
    },
  };
}
