import { trackCursor } from '../../cells/cursor.ts';
import type { Batch, Cell, ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { decodeCopyText } from '../../cells/copy-text.ts';
import { incrementOf, NULLS_READ, warnOfNulls } from './incremental-query.ts';
import { begin } from './read-transaction.ts';
import { fieldByPath, selectList } from './select.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { identifier } from '../connection/sql.ts';
import { copyTable, type RowBytes } from './table-copy.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

const BATCH_ROWS = 5_000;
/** Texts of this size stay in the processor's cache: with 1 MB the codecs took some 15 % more CPU, and far more memory. */
const BATCH_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

/** The row lane. A full refresh gives batches without state; with a cursor each batch carries the state after it. */
export async function* readRows(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  if (request.sync_mode !== 'incremental' || !request.cursor_field) {
    yield* batchesOf(copyTable(ctx, request, 'rows'));
    return;
  }
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    await begin(session, request);
    yield* readIncrement(ctx, session, request);
  } catch (error) {
    throw session.translate(error);
  } finally {
    await session.close();
  }
}

async function* readIncrement(ctx: Context, session: PgSession, request: ReadRequest): AsyncGenerator<Batch> {
  const cursor = fieldByPath(request, request.cursor_field!);
  const column = identifier(cursor.path[0]!);
  const width = request.columns.length;
  // The cursor comes once more at the end, as it is: the column itself may be masked or not selected.
  // numeric without a scale has many texts for one value, which the tracker could not tell to be equal.
  const shown = cursor.source_type === 'numeric' ? `trim_scale(${column})` : column;
  const increment = incrementOf(request, `${selectList(request.columns, 'rows')}, ${shown}`);
  const cut = (rows: Cell[][]) => {
    for (const row of rows) row.length = width;
    return rows;
  };
  if (increment.nulls) {
    let nulls = 0;
    for await (const batch of batches(session, increment.nulls)) {
      nulls += batch.rows.length;
      yield { ...batch, rows: cut(batch.rows) };
    }
    warnOfNulls(ctx, request, nulls);
  }
  if (increment.is_first) yield { rows: [], bytes: 0, state: NULLS_READ };
  // Whole rows tell rows apart, not keys: a row changed twice within one value of the cursor must come again.
  const tracker = trackCursor({ cursorIndex: width, keyIndexes: [], state: request.state });
  for await (const batch of batches(session, increment.ordered)) {
    const tracked = tracker.next(batch.rows);
    yield { rows: cut(tracked.rows), bytes: batch.bytes, state: tracked.state ?? NULLS_READ };
  }
}

export const batches = (session: PgSession, select: string): AsyncGenerator<Batch> =>
  batchesOf(session.copyOut(`copy (${select}) to stdout`, { binary: false }));

/** Fetches pieces until there is a batch of whole lines, and decodes it at once: far cheaper than line by line. */
async function* batchesOf(copy: RowBytes): AsyncGenerator<Batch> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  let decoded = 0;
  let hasLine = false;
  for await (const piece of copy) {
    pieces.push(piece);
    bytes += piece.length;
    // A row larger than all of this is joined once, when its end is there.
    hasLine ||= piece.includes(LINE_FEED);
    if (!hasLine || (bytes < BATCH_BYTES && copy.rows() - decoded < BATCH_ROWS)) continue;
    hasLine = false;
    const all = pieces.length === 1 ? piece : Buffer.concat(pieces, bytes);
    const end = all.lastIndexOf(LINE_FEED) + 1;
    for (const batch of decodeLines(all.subarray(0, end))) {
      decoded += batch.rows.length;
      yield batch;
    }
    pieces = end < all.length ? [all.subarray(end)] : [];
    bytes = all.length - end;
  }
  yield* decodeLines(Buffer.concat(pieces, bytes));
}

/** A piece off the socket may hold many batches. */
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
