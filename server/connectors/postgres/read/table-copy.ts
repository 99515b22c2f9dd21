import type { ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import type { CopyOut, Piece } from './copy-out.ts';
import { Interleaved } from './interleave.ts';
import { type Ranges, rangesOf } from './ranges.ts';
import { begin } from './read-transaction.ts';
import { fullSelect, type SelectForm } from './select.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { holdTable, Snapshot } from './snapshot.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** Rows as COPY gives them. `rows()` is exact after the end. */
export interface RowBytes extends AsyncIterable<Buffer> {
  rows(): number;
}

/** What a copy in binary form begins and ends with. */
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const TRAILER = Buffer.from([0xff, 0xff]);
/** Another connection joins when rows were waited for in so much of so long a time. */
const WAITING = { share: 0.75, of_ms: 200 };

/** A full refresh: by one connection, or by several out of one snapshot where the table is large. Leaves none open. */
export function copyTable(ctx: Context, request: ReadRequest, form: SelectForm): RowBytes {
  const copies: CopyOut[] = [];
  const start = (session: PgSession, more: string[], bare: boolean) => {
    const format = form === 'binary' ? ' (format binary)' : '';
    const text = `copy (${fullSelect(request, form, more)}) to stdout${format}`;
    const copy = session.copyOut(text, { binary: form === 'binary', bare: bare && form === 'binary' });
    copies.push(copy);
    return copy;
  };
  async function* read() {
    const session = await PgSession.open(ctx, { phase: 'run' });
    try {
      const ranges = await rangesOf(session, request, ctx.config.parallel_reads);
      await begin(session, request);
      if (!ranges) return yield* start(session, [], false);
      // Before the snapshot: nobody may truncate or rewrite the table between the two.
      await holdTable(session, request);
      const copyRange = (own: PgSession, range: string) => start(own, [range], true);
      if (form === 'binary') yield SIGNATURE;
      yield* readRanges(ctx, { session, request, ranges, copyRange });
      if (form === 'binary') yield TRAILER;
    } catch (error) {
      throw session.translate(error);
    } finally {
      await session.close();
    }
  }
  return { [Symbol.asyncIterator]: read, rows: () => copies.reduce((sum, copy) => sum + copy.rows(), 0) };
}

interface RangeRead {
  /** In its transaction, holding the table. */
  session: PgSession;
  request: ReadRequest;
  ranges: Ranges;
  copyRange(session: PgSession, range: string): CopyOut;
}

/**
 * Each connection takes the next range when it is through with one. There is one at first, and another one joins while
 * rows are waited for: where the destination, or this machine, is what holds the rows up, more of them only cost.
 */
async function* readRanges(ctx: Context, { session, request, ranges, copyRange }: RangeRead): AsyncGenerator<Buffer> {
  const snapshot = await Snapshot.of(ctx, session, request);
  const left = ranges.conditions.values();
  const rows = new Interleaved();
  async function* pieces(own: PgSession): AsyncGenerator<Piece> {
    try {
      for (const range of left) yield* copyRange(own, range).pieces();
    } catch (error) {
      throw own.translate(error);
    }
    // Others may be at it for long: an idle transaction holds the server's clean-up back.
    await own.close();
  }
  let seen = { waited: 0, at: performance.now() };
  const watch = setInterval(() => {
    const now = { waited: rows.waited(), at: performance.now() };
    const isWaiting = now.waited - seen.waited >= WAITING.share * (now.at - seen.at);
    seen = now;
    if (isWaiting && snapshot.readers < ranges.readers) snapshot.join((helper) => rows.add(pieces(helper)));
  }, WAITING.of_ms);
  try {
    rows.add(pieces(session));
    yield* rows;
  } finally {
    clearInterval(watch);
    await snapshot.close();
  }
}
