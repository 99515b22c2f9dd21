import type { Cell, ReadRequest, StreamState } from '../../contract/connector.ts';
import { decodeCopyText, encodeCopyText } from '../../cells/copy-text.ts';
import { cursorOrder, trackerOf } from '../../kits/sql/incremental-read.ts';
import type { Bound } from '../../kits/sql/cursors/safe-bound.ts';

/** Whole lines of COPY text. */
interface Lines {
  bytes: Buffer;
  rows: number;
}

const LINE_FEED = 0x0a;

/**
 * Tracks lines of COPY text, sorted by a cursor that is never NULL and is one of the columns. Decodes only the first
 * lines, which an earlier read may have returned, and the last lines of each chunk.
 */
export function trackLines(request: ReadRequest, cursorIndex: number, bound: Bound | null) {
  const width = request.columns.length;
  const tracker = trackerOf(request, bound);
  const order = cursorOrder(request);
  // The row lane repeats the cursor as the last cell.
  const tracked = (row: Cell[]) => [...row, row[cursorIndex] ?? null];

  const decode = (bytes: Buffer, from: number, to: number) =>
    decodeCopyText(bytes.toString('utf8', from, to)).map(tracked);

  /** The rows that the state after them remembers. */
  function lastRows(bytes: Buffer): Cell[][] {
    const found: Cell[][] = [];
    let floor: string | null | undefined;
    for (let end = bytes.length; end > 0; ) {
      const start = bytes.lastIndexOf(LINE_FEED, end - 2) + 1;
      const [row] = decode(bytes, start, end) as [Cell[]];
      const cursor = row[cursorIndex] as string;
      floor ??= tracker.floorAt(cursor);
      if (floor !== null && order(cursor, floor) < 0) break;
      found.push(row);
      end = start;
    }
    return found.toReversed();
  }

  function whole({ bytes }: Lines): Lines {
    const rows = decode(bytes, 0, bytes.length);
    const fresh = tracker.next(rows);
    if (fresh.length === rows.length) return { bytes, rows: rows.length };
    for (const row of fresh) row.length = width;
    return { bytes: encodeCopyText(fresh, () => {}), rows: fresh.length };
  }

  const cursorOfLine = (bytes: Buffer, start: number) =>
    decode(bytes, start, bytes.indexOf(LINE_FEED, start) + 1)[0]?.[cursorIndex] ?? '';

  return {
    /** Drops rows that an earlier read returned. */
    next(lines: Lines): Lines {
      const { bytes } = lines;
      const last = cursorOfLine(bytes, bytes.lastIndexOf(LINE_FEED, bytes.length - 2) + 1);
      if (tracker.isResuming(cursorOfLine(bytes, 0)) || tracker.isResuming(last) || tracker.isLimited(last)) {
        return whole(lines);
      }
      tracker.next(lastRows(bytes));
      return lines;
    },
    state: (): StreamState | null => tracker.state(),
    end: (): StreamState | null => tracker.end(),
    held: () => tracker.held,
  };
}
