import { comparisonOf, orderOf } from '../../cells/comparison.ts';
import type {
  Batch,
  Cell,
  ConnectorContext,
  Field,
  ReadColumn,
  ReadRequest,
  StreamState,
} from '../../contract/connector.ts';
import { OrderedTracker } from './cursors/cursor-tracker.ts';
import { cursorOf, where } from './request.ts';
import { hiddenKey, rowIdentity } from './cursors/row-identity.ts';
import { type Bound, type BoundSource, safeBound } from './cursors/safe-bound.ts';

/** The state once all rows without a cursor have been read. */
export const NULLS_READ: StreamState = { cursor: null, boundary: [], nulls_read: true };

/**
 * Rows whose cursor is NULL have no place in its order. The first read, without a state, begins with them and gives no
 * state before all of them have been read, so that they are read once. Later reads leave them out.
 */
export const readsNulls = ({ state, window }: ReadRequest): boolean =>
  state?.cursor == null && !window && !state?.nulls_read;

/** A read that leaves rows without a cursor out, and tells so if there are any. */
export const missesNulls = (request: ReadRequest): boolean =>
  !readsNulls(request) && !request.window && cursorOf(request).nullable;

/** The two SELECTs of an incremental read. */
export interface IncrementalSelects {
  /** Rows without a cursor: all of them, or one of those that the read misses. Null: there are none, or they do not matter. */
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
  /** The cursor is at or above `resumeCursor` of the state; null: the read begins at the first row. */
  resumes: string | null;
  orderBy: string;
}

export function incrementalSelects(request: ReadRequest, parts: IncrementalParts): IncrementalSelects {
  const { select, conditions, isNull, resumes, orderBy } = parts;
  const behind = resumes === null ? [] : [resumes];
  const nulls = `${select}${where([...conditions, isNull])}`;
  const one = missesNulls(request) ? `${nulls} limit 1` : null;
  return {
    nulls: readsNulls(request) ? nulls : one,
    ordered: `${select}${where([...conditions, ...behind, `not (${isNull})`])}${orderBy}`,
  };
}

/** @param rows what the SELECT for them returned */
export function warnOfNulls(ctx: Pick<ConnectorContext<unknown>, 'warn'>, request: ReadRequest, rows: number): void {
  if (rows === 0) return;
  const { stream, cursor_field } = request;
  const cursor = cursor_field?.join('.');
  const about = missesNulls(request)
    ? `${stream.name} has rows without ${cursor}. Those that the first run found are loaded: later changes to them, and rows without it that were added since, are not`
    : `${rows} rows of ${stream.name} have no ${cursor}. They are read once: later changes to them are not detected, and rows without it that are added later are not loaded`;
  ctx.warn('null_cursor', about);
}

/** The bound of a read; null for a read of a window, whose state no later read continues. */
export const boundOf = async (request: ReadRequest, source: BoundSource): Promise<Bound | null> =>
  request.window?.end == null ? safeBound(source, request.state, cursorOrder(request)) : null;

export const cursorOrder = (request: ReadRequest) => orderOf(comparisonOf(cursorOf(request)));

/** What the SELECTs return: the columns of the request, the fields of its key that are not among them, the cursor. */
export const incrementalColumns = (request: ReadRequest, cursor: Field): ReadColumn[] => [
  ...request.columns,
  ...[...hiddenKey(request), cursor].map((field) => ({ field, masking: 'none' as const })),
];

/** Tracks rows that have `incrementalColumns`. */
export const trackerOf = (request: ReadRequest, bound: Bound | null): OrderedTracker =>
  new OrderedTracker({
    cursorIndex: request.columns.length + hiddenKey(request).length,
    identity: rowIdentity(request),
    state: request.state,
    order: cursorOrder(request),
    bound,
  });

export function warnOfHeldRows(
  ctx: Pick<ConnectorContext<unknown>, 'warn'>,
  { stream }: ReadRequest,
  bound: Bound | null,
): void {
  const { cursor = null, open = [] } = bound ?? {};
  const shown = open.slice(0, 3).map(({ about }) => about);
  const more = open.length > shown.length ? ` and ${open.length - shown.length} more` : '';
  ctx.warn(
    'cursor_held_back',
    `${open.length} open transactions (${shown.join(', ')}${more}) hold back ${stream.name}: rows behind ` +
      `${cursor ?? 'its first one'} are not final yet, and those that exceed the limit are loaded by a later run. ` +
      'End these transactions',
  );
}

/** Batches of rows that have `incrementalColumns`. */
export interface IncrementalRows {
  nulls(): AsyncIterable<Batch>;
  ordered(): AsyncIterable<Batch>;
}

/** The row lane of an incremental read. Batches of ordered rows carry the state after them. */
export async function* readIncrement(
  ctx: Pick<ConnectorContext<unknown>, 'warn'>,
  request: ReadRequest,
  rows: IncrementalRows,
  bound: Bound | null = null,
): AsyncGenerator<Batch> {
  const width = request.columns.length;
  const selected = (found: Cell[][]) => {
    for (const row of found) row.length = width;
    return found;
  };
  if (readsNulls(request)) {
    let nulls = 0;
    for await (const batch of rows.nulls()) {
      nulls += batch.rows.length;
      yield { ...batch, rows: selected(batch.rows) };
    }
    warnOfNulls(ctx, request, nulls);
    yield { rows: [], bytes: 0, state: NULLS_READ };
  } else if (missesNulls(request)) warnOfNulls(ctx, request, await countOf(rows.nulls()));
  const tracker = trackerOf(request, bound);
  for await (const batch of rows.ordered()) {
    const fresh = tracker.next(batch.rows);
    const state = tracker.state();
    yield { rows: selected(fresh), bytes: batch.bytes, ...(state && { state }) };
    if (tracker.held) break;
  }
  if (tracker.held) warnOfHeldRows(ctx, request, bound);
  const end = tracker.end();
  if (end) yield { rows: [], bytes: 0, state: end };
}

async function countOf(batches: AsyncIterable<Batch>): Promise<number> {
  let count = 0;
  for await (const { rows } of batches) count += rows.length;
  return count;
}
