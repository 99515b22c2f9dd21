import type { Batch, ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { BATCH_BYTES, BATCH_ROWS, decodeLines, LINE_FEED } from '../../kits/sql/copy-lines.ts';
import { boundOf, incrementalColumns, readIncrement } from '../../kits/sql/incremental-read.ts';
import { cursorOf, isIncremental } from '../../kits/sql/request.ts';
import type { Bound } from '../../kits/sql/cursors/safe-bound.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { selectsOf } from './incremental-query.ts';
import { openTransactions } from './open-transactions.ts';
import { begin } from './read-transaction.ts';
import { selectList } from './select.ts';
import { copyTable, type Join, type RowBytes } from './table-copy.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** The row lane. A full refresh gives batches without state, an incremental read gives the state after each batch. */
export async function* readRows(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  if (!isIncremental(request)) {
    yield* batchesOf(copyTable(ctx, request, 'rows'));
    return;
  }
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    const bound = await boundOf(request, openTransactions(session, request));
    await begin(session, request);
    yield* incrementalBatches(ctx, { session, request, bound });
  } catch (error) {
    throw session.translate(error);
  } finally {
    await session.close();
  }
}

function incrementalBatches(
  ctx: Context,
  { session, request, bound }: { session: PgSession; request: ReadRequest; bound: Bound | null },
): AsyncGenerator<Batch> {
  const selects = selectsOf(request, selectList(incrementalColumns(request, cursorOf(request)), 'rows'));
  const rows = {
    nulls: () => batches(session, selects.nulls ?? ''),
    ordered: () => batches(session, selects.ordered),
  };
  return readIncrement(ctx, request, rows, bound);
}

export const batches = (session: PgSession, select: string): AsyncGenerator<Batch> =>
  batchesOf(session.copyOut(`copy (${select}) to stdout`, { binary: false }));

/** A whole table. @param join begins the transaction that it is read in */
export const tableBatches = (ctx: Context, request: ReadRequest, join: Join): AsyncGenerator<Batch> =>
  batchesOf(copyTable(ctx, request, 'rows', join));

/** Collects pieces up to a batch of whole lines and decodes it at once, which is far cheaper than line by line. */
async function* batchesOf(copy: RowBytes): AsyncGenerator<Batch> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  let decoded = 0;
  let hasLine = false;
  for await (const piece of copy) {
    pieces.push(piece);
    bytes += piece.length;
    // A row larger than a batch is joined only once, when its end has arrived.
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
