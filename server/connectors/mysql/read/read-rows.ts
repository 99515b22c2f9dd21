import { trackCursor } from '../../cells/cursor.ts';
import type { Batch, Cell, ConnectorContext, ReadRequest, StreamState } from '../../contract/connector.ts';
import { decodeCopyText } from '../../cells/copy-text.ts';
import { asDescribed } from './datasets.ts';
import { RowText } from '../connection/row-text.ts';
import {
  conditions,
  fieldByPath,
  fromClause,
  hasNoCursor,
  orderBy,
  resumeCondition,
  type Selection,
  selection,
  where,
} from './select.ts';
import { MysqlSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

const BATCH_ROWS = 5_000;
/** Texts of this size stay in the processor's cache. */
const BATCH_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;
const PIECE_BYTES = 320 * 1024;

/** One snapshot for all statements of a read. */
export async function beginSnapshot(session: MysqlSession): Promise<void> {
  await session.query('set transaction isolation level repeatable read');
  await session.query('start transaction with consistent snapshot, read only');
}

/**
 * The row lane. A full refresh gives batches without state; with a cursor each batch carries the state after it.
 * Rows whose cursor is NULL have no place in that order: the first read (no state) begins with them and gives no state
 * before they are through, so that they come once; later reads do not see them.
 */
export async function* readRows(ctx: Context, wanted: ReadRequest): AsyncGenerator<Batch> {
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  try {
    await beginSnapshot(session);
    const request = await asDescribed(session, wanted);
    if (request.sync_mode === 'incremental' && request.cursor_field) {
      yield* readIncrement(ctx, { session, request, cursorField: request.cursor_field });
    } else {
      const full = selection(request.columns, ctx.config.zero_dates === 'keep');
      yield* batches(ctx, { session, selected: full, rest: fullRest(request) });
    }
  } catch (error) {
    throw session.translate(error);
  } finally {
    await session.close();
  }
}

/** What comes behind the columns of a full refresh. */
export const fullRest = (request: ReadRequest) => ` from ${fromClause(request)}${where(conditions(request))}`;

async function* readIncrement(
  ctx: Context,
  { session, request, cursorField }: { session: MysqlSession; request: ReadRequest; cursorField: string[] },
): AsyncGenerator<Batch> {
  const { state } = request;
  const keep = ctx.config.zero_dates === 'keep';
  const cursor = fieldByPath(request, cursorField);
  const width = request.columns.length;
  // The cursor comes once more at the end, as it is: the column itself may be masked or not selected.
  const selected = selection([...request.columns, { field: cursor, masking: 'none' }], keep);
  const from = ` from ${fromClause(request)}`;
  const filters = conditions(request);
  const absent = hasNoCursor(cursor, keep);
  const cut = (rows: Cell[][]) => {
    for (const row of rows) row.length = width;
    return rows;
  };
  const done: StreamState = { cursor: null, boundary: [], nulls_read: true };
  const firstRead = state?.cursor == null && !request.window;
  if (firstRead && !state?.nulls_read) {
    let nulls = 0;
    for await (const batch of batches(ctx, { session, selected, rest: `${from}${where([...filters, absent])}` })) {
      nulls += batch.rows.length;
      yield { ...batch, rows: cut(batch.rows) };
    }
    if (nulls > 0) warnOfNulls(ctx, request, nulls);
    yield { rows: [], bytes: 0, state: done };
  }
  // Whole rows tell rows apart, not keys: a row changed twice within one value of the cursor must come again.
  const tracker = trackCursor({ cursorIndex: width, keyIndexes: [], state });
  const present = [...filters, ...resumeCondition(request), `not ${absent}`];
  const ordered = `${from}${where(present)}${orderBy(cursor, request.primary_key)}`;
  for await (const batch of batches(ctx, { session, selected, rest: ordered })) {
    const tracked = tracker.next(batch.rows);
    yield { rows: cut(tracked.rows), bytes: batch.bytes, state: tracked.state ?? done };
  }
}

function warnOfNulls(ctx: Context, { stream, cursor_field }: ReadRequest, rows: number) {
  ctx.warn(
    'null_cursor',
    `${rows} rows of ${stream.name} have no ${cursor_field!.join('.')}: they are read once, changes to them are not seen`,
  );
}

async function* batches(
  ctx: Context,
  { session, selected, rest }: { session: MysqlSession; selected: Selection; rest: string },
): AsyncGenerator<Batch> {
  const rows = new RowText(selected.forms, { keepNul: true, size: PIECE_BYTES });
  let pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of session.stream(`select ${selected.list}${rest}`, rows)) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes < BATCH_BYTES) continue;
    yield* decodeLines(pieces.length === 1 ? piece : Buffer.concat(pieces, bytes));
    [pieces, bytes] = [[], 0];
  }
  yield* decodeLines(Buffer.concat(pieces, bytes));
  warnOfZeroDates(ctx, rows);
}

export function warnOfZeroDates(ctx: Context, rows: RowText): void {
  if (rows.zeroDates === 0) return;
  ctx.warn('zero_date', `${rows.zeroDates} dates had no year, month or day, as 0000-00-00 has none: they became NULL`);
}

/** A piece may hold many batches; it always ends with a line. */
function* decodeLines(lines: Buffer): Generator<Batch> {
  let from = 0;
  while (from < lines.length) {
    let end = Math.min(from + BATCH_BYTES, lines.length);
    if (end < lines.length) end = lines.lastIndexOf(LINE_FEED, end - 1) + 1;
    if (end <= from) end = lines.indexOf(LINE_FEED, from) + 1;
    const rows = decodeCopyText(lines.toString('utf8', from, end));
    for (let start = 0; start < rows.length; start += BATCH_ROWS) {
      const part = rows.length > BATCH_ROWS ? rows.slice(start, start + BATCH_ROWS) : rows;
      yield { rows: part, bytes: Math.ceil(((end - from) * part.length) / rows.length) };
    }
    from = end;
  }
}
