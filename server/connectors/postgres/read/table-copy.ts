import type { ByteFormat, ByteStream, ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { freeBytes } from '../../../platform/memory/free-bytes.ts';
import { periodic } from '../../../platform/periodic.ts';
import { SIGNATURE, TRAILER } from '../../cells/copy-binary.ts';
import type { CopyOut, Piece } from '../connection/copy-out.ts';
import { WAITING } from '../connection/waiting.ts';
import { Interleaved, type Rows } from './interleave.ts';
import { planRead, type Ranges, type ReadPlan } from './ranges.ts';
import { begin } from './read-transaction.ts';
import { canBeBinary, fullSelect, type SelectForm } from './select.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { holdTable, Snapshot } from './snapshot.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** Begins the transaction in which a session reads. */
export type Join = (session: PgSession) => Promise<void>;

/** The bytes of a COPY. `rows()` is exact after the end. */
export interface RowBytes extends AsyncIterable<Buffer> {
  rows(): number;
}

/** Those of a table. `rowsEnd`: as in `ByteStream`. */
interface TableBytes extends RowBytes {
  rowsEnd(): number;
}

/** The formats in which a whole table can be copied. */
export const tableFormats = ({ columns }: ReadRequest): ByteFormat[] =>
  canBeBinary(columns) ? ['pgcopy-binary', 'pgcopy-text'] : ['pgcopy-text'];

/** The bytes of a whole table. */
export function tableStream(
  ctx: Context,
  request: ReadRequest,
  { format, join }: { format: ByteFormat; join?: Join },
): ByteStream {
  const chunks = copyTable(ctx, request, format === 'pgcopy-binary' ? 'binary' : 'rows', join);
  return { format, chunks, rows: () => chunks.rows(), rowsEnd: () => chunks.rowsEnd(), reuse: freeBytes };
}

/**
 * A full refresh, by one connection, or of a large table by several with one snapshot. Closes all of them.
 * @param join begins the transaction of the first one
 */
export function copyTable(
  ctx: Context,
  request: ReadRequest,
  form: SelectForm,
  join: Join = (session) => begin(session, request),
): TableBytes {
  const copies: CopyOut[] = [];
  let plan: ReadPlan = { steady: false, ranges: null };
  let rows_end = 0;
  const start = (session: PgSession, more: string[], bare: boolean) => {
    const format = form === 'binary' ? ' (format binary)' : '';
    const text = `copy (${fullSelect(request, form, more)}) to stdout${format}`;
    const { steady } = plan;
    const copy = session.copyOut(text, { binary: form === 'binary', bare: bare && form === 'binary', steady });
    copies.push(copy);
    return copy;
  };
  async function* bytesOf(pieces: AsyncIterable<Rows>) {
    for await (const piece of pieces) {
      ({ rows_end } = piece);
      yield piece.bytes;
    }
  }
  const edge = (bytes: Buffer) => {
    rows_end = bytes.length;
    return bytes;
  };
  async function* read() {
    const session = await PgSession.open(ctx, { phase: 'run' });
    try {
      plan = await planRead(session, request, ctx.config.parallel_reads);
      await join(session);
      if (!plan.ranges) return yield* bytesOf(start(session, [], false).pieces());
      // Before the snapshot: the table must not be truncated or rewritten between the two.
      await holdTable(session, request);
      const copyRange = (own: PgSession, range: string) => start(own, [range], true);
      if (form === 'binary') yield edge(SIGNATURE);
      yield* bytesOf(readRanges(ctx, { session, request, ranges: plan.ranges, copyRange }));
      if (form === 'binary') yield edge(TRAILER);
    } catch (error) {
      throw session.translate(error);
    } finally {
      await session.close();
    }
  }
  return {
    [Symbol.asyncIterator]: read,
    rows: () => copies.reduce((sum, copy) => sum + copy.rows(), 0),
    rowsEnd: () => rows_end,
  };
}

interface RangeRead {
  /** In its transaction, holding the table. */
  session: PgSession;
  request: ReadRequest;
  ranges: Ranges;
  copyRange(session: PgSession, range: string): CopyOut;
}

/**
 * Each connection takes the next range when it has finished one. The read starts with one connection, and more join while
 * it waits for rows: if the destination or this machine is the bottleneck, more connections only cost.
 */
async function* readRanges(ctx: Context, { session, request, ranges, copyRange }: RangeRead): AsyncGenerator<Rows> {
  const snapshot = await Snapshot.of(ctx, session, request);
  const left = ranges.conditions.values();
  const rows = new Interleaved();
  async function* pieces(own: PgSession): AsyncGenerator<Piece> {
    try {
      for (const range of left) yield* copyRange(own, range).pieces();
    } catch (error) {
      throw own.translate(error);
    }
    // The others may take long, and an idle transaction delays the server's vacuum.
    await own.close();
  }
  let seen = { waited: 0, at: performance.now() };
  const watch = async () => {
    const now = { waited: rows.waited(), at: performance.now() };
    const isWaiting = now.waited - seen.waited >= WAITING.share * (now.at - seen.at);
    seen = now;
    if (isWaiting) snapshot.join(ranges.readers, (helper) => rows.add(pieces(helper)));
  };
  const watching = periodic(watch, { every_ms: WAITING.of_ms, jitter: 0, onError: () => {} });
  try {
    rows.add(pieces(session));
    yield* rows;
  } finally {
    await watching.stop();
    await snapshot.close();
  }
}
