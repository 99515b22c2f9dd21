import { trackCursor } from '../../cells/cursor.ts';
import type { Batch, Cell, ConnectorContext, ReadRequest, StreamState } from '../../contract/connector.ts';
import { where } from './request.ts';

/** The state once all rows without a cursor have been read. */
export const NULLS_READ: StreamState = { cursor: null, boundary: [], nulls_read: true };

/**
 * Rows whose cursor is NULL have no place in its order. The first read, without a state, begins with them and gives no
 * state before all of them have been read, so that they are read once. Later reads leave them out.
 */
export const readsNulls = ({ state, window }: ReadRequest): boolean =>
  state?.cursor == null && !window && !state?.nulls_read;

/** The two SELECTs of an incremental read. */
export interface IncrementalSelects {
  /** Null: left out. */
  nulls: string | null;
  /** In the order of the cursor, beginning with the rows at the cursor of the state. */
  ordered: string;
}

/** Parts of these SELECTs, as SQL. */
export interface IncrementalParts {
  /** Up to the FROM clause, with the columns. */
  select: string;
  /** Filters and the window. */
  conditions: readonly string[];
  /** The cursor is NULL. */
  isNull: string;
  /** The cursor is at or behind that of the state; null: there is no state. */
  resumes: string | null;
  orderBy: string;
}

export function incrementalSelects(request: ReadRequest, parts: IncrementalParts): IncrementalSelects {
  const { select, conditions, isNull, resumes, orderBy } = parts;
  const behind = resumes === null ? [] : [resumes];
  return {
    nulls: readsNulls(request) ? `${select}${where([...conditions, isNull])}` : null,
    ordered: `${select}${where([...conditions, ...behind, `not (${isNull})`])}${orderBy}`,
  };
}

export function warnOfNulls(ctx: Pick<ConnectorContext<unknown>, 'warn'>, request: ReadRequest, rows: number): void {
  if (rows === 0) return;
  const { stream, cursor_field } = request;
  const cursor = cursor_field?.join('.');
  ctx.warn(
    'null_cursor',
    `${rows} rows of ${stream.name} have no ${cursor}. They are read once, later changes to them are not detected`,
  );
}

/** Batches of rows that end in the cursor, as it is stored: the column itself may be masked or not selected. */
export interface IncrementalRows {
  nulls(): AsyncIterable<Batch>;
  ordered(): AsyncIterable<Batch>;
}

/** The row lane of an incremental read. Every batch of ordered rows carries the state after it. */
export async function* readIncrement(
  ctx: Pick<ConnectorContext<unknown>, 'warn'>,
  request: ReadRequest,
  rows: IncrementalRows,
): AsyncGenerator<Batch> {
  const width = request.columns.length;
  const withoutCursor = (found: Cell[][]) => {
    for (const row of found) row.length = width;
    return found;
  };
  if (readsNulls(request)) {
    let nulls = 0;
    for await (const batch of rows.nulls()) {
      nulls += batch.rows.length;
      yield { ...batch, rows: withoutCursor(batch.rows) };
    }
    warnOfNulls(ctx, request, nulls);
    yield { rows: [], bytes: 0, state: NULLS_READ };
  }
  // Rows are told apart as a whole, not by key: one that changes twice within one value of the cursor must come again.
  const tracker = trackCursor({ cursorIndex: width, keyIndexes: [], state: request.state });
  for await (const batch of rows.ordered()) {
    const tracked = tracker.next(batch.rows);
    yield { rows: withoutCursor(tracked.rows), bytes: batch.bytes, state: tracked.state ?? NULLS_READ };
  }
}
