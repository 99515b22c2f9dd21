import type { Batch, ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { BATCH_BYTES, decodeLines } from '../../kits/sql/copy-lines.ts';
import { boundOf, incrementalColumns, incrementalSelects, readIncrement } from '../../kits/sql/incremental-read.ts';
import { cursorOf, fromClause, isIncremental, orderBy, where } from '../../kits/sql/request.ts';
import type { Bound } from '../../kits/sql/cursors/safe-bound.ts';
import { decodeText } from '../connection/decode-text.ts';
import { RowText } from '../connection/row-text.ts';
import type { MysqlSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { mysqlNames } from '../connection/sql.ts';
import { asDescribed } from './datasets.ts';
import { canListTransactions, openTransactions } from './open-transactions.ts';
import { beginSnapshot, openToRead } from './shared-snapshot.ts';
import { conditions, hasNoCursor, resumeCondition, type Selection, selection } from './select.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

const PIECE_BYTES = 320 * 1024;

/** The row lane. A full refresh gives batches without state, an incremental read gives the state after each batch. */
export async function* readRows(ctx: Context, wanted: ReadRequest): AsyncGenerator<Batch> {
  const { session, close } = await openToRead(ctx, wanted);
  try {
    const request = await asDescribed(session, wanted);
    if (isIncremental(request)) {
      await session.query('commit');
      const bound = await safeBoundOf(ctx, session, request);
      await beginSnapshot(session);
      yield* incrementalBatches(ctx, { session, request, bound });
    } else {
      const keep = keepsZeroDates(ctx);
      yield* batches(ctx, { session, selected: selection(request.columns, keep), rest: fullRest(request, keep) });
    }
  } catch (error) {
    throw session.translate(error);
  } finally {
    await close();
  }
}

/** Everything after the columns in the SELECT of a full refresh. */
export const fullRest = (request: ReadRequest, keepZeroDates: boolean) =>
  ` from ${fromClause(mysqlNames, request)}${where(conditions(request, keepZeroDates))}`;

export const keepsZeroDates = ({ config }: Context): boolean => config.zero_dates === 'keep';

/** Without the list of transactions there is no bound, which a warning reports. */
async function safeBoundOf(ctx: Context, session: MysqlSession, request: ReadRequest): Promise<Bound | null> {
  if (!(await canListTransactions(session))) {
    ctx.warn(
      'transactions_not_visible',
      `Rows of ${request.stream.name} are lost when they are committed after later ones were read: ` +
        'the user cannot list open transactions. GRANT PROCESS to the user',
    );
    return null;
  }
  const how = { request, keepZeroDates: keepsZeroDates(ctx), begin: () => beginSnapshot(session) };
  return boundOf(request, openTransactions(session, how));
}

function incrementalBatches(
  ctx: Context,
  { session, request, bound }: { session: MysqlSession; request: ReadRequest; bound: Bound | null },
): AsyncGenerator<Batch> {
  const keep = keepsZeroDates(ctx);
  const cursor = cursorOf(request);
  const selected = selection(incrementalColumns(request, cursor), keep);
  const selects = incrementalSelects(request, {
    select: ` from ${fromClause(mysqlNames, request)}`,
    conditions: conditions(request, keep),
    isNull: hasNoCursor(cursor, keep),
    resumes: resumeCondition(request)[0] ?? null,
    orderBy: orderBy(mysqlNames, cursor, request.primary_key),
  });
  const rowsOf = (rest: string) => batches(ctx, { session, selected, rest });
  const rows = { nulls: () => rowsOf(selects.nulls ?? ''), ordered: () => rowsOf(selects.ordered) };
  return readIncrement(ctx, request, rows, bound);
}

export async function* batches(
  ctx: Context,
  { session, selected, rest }: { session: MysqlSession; selected: Selection; rest: string },
): AsyncGenerator<Batch> {
  const rows = new RowText(selected.forms, PIECE_BYTES);
  let pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of session.stream(`select ${selected.list}${rest}`, rows)) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes < BATCH_BYTES) continue;
    yield* decodeLines(pieces.length === 1 ? piece : Buffer.concat(pieces, bytes), decodeText);
    [pieces, bytes] = [[], 0];
  }
  yield* decodeLines(Buffer.concat(pieces, bytes), decodeText);
  warnOfZeroDates(ctx, rows);
}

export function warnOfZeroDates(ctx: Context, rows: RowText): void {
  if (rows.zeroDates === 0) return;
  ctx.warn('zero_date', `${rows.zeroDates} dates without a year, month or day, such as 0000-00-00, were read as NULL`);
}
