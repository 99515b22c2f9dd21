import type { ConnectorContext, ReadRequest } from '../define.ts';
import type { CopyOut, Piece } from './copy-out.ts';
import { interleave } from './interleave.ts';
import { type Ranges, rangesOf } from './ranges.ts';
import { BEGIN, begin } from './read-transaction.ts';
import { fullSelect, type SelectForm } from './select.ts';
import { PgSession } from './session.ts';
import type { PostgresSourceConfig } from './settings.ts';
import { literal, relation } from './sql.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** Rows as COPY gives them. `rows()` is exact after the end. */
export interface RowBytes extends AsyncIterable<Buffer> {
  rows(): number;
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const TRAILER = Buffer.from([0xff, 0xff]);

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
      // Before the snapshot: nobody may truncate or rewrite the table between the two.
      await begin(session, request);
      if (ranges) await session.query(lockOf(request));
      if (ranges) yield* readRanges(ctx, { session, request, form, ranges, start });
      else yield* start(session, [], false);
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
  form: SelectForm;
  ranges: Ranges;
  start(session: PgSession, more: string[], bare: boolean): CopyOut;
}

async function* readRanges(ctx: Context, read: RangeRead): AsyncGenerator<Buffer> {
  const { session, form, ranges, start } = read;
  const helpers = await openHelpers(ctx, read);
  const left = ranges.conditions.values();
  async function* pieces(own: PgSession): AsyncGenerator<Piece> {
    try {
      for (const range of left) yield* start(own, [range], true).pieces();
    } catch (error) {
      throw own.translate(error);
    }
    // Others may be at it for long: an idle transaction holds the server's clean-up back.
    await own.close();
  }
  try {
    if (form === 'binary') yield SIGNATURE;
    yield* interleave([session, ...helpers].map(pieces));
    if (form === 'binary') yield TRAILER;
  } finally {
    await Promise.all([session, ...helpers].map((one) => one.close()));
  }
}

const lockOf = ({ stream }: ReadRequest) =>
  `lock table ${relation(stream.namespace!, stream.name)} in access share mode`;

/**
 * Connections that see what `session` sees. Each holds the table itself before a row is read: one that waited behind
 * an ALTER TABLE until the others are through would find a table without the rows of its snapshot. What does not come
 * about (no connection to be had, another server behind a balancer) is done without: the others read its part.
 */
async function openHelpers(ctx: Context, { session, request, ranges }: RangeRead): Promise<PgSession[]> {
  const { rows } = await session.query('select pg_export_snapshot()');
  const [snapshot = null] = rows[0] ?? [];
  const open = async () => {
    const helper = await PgSession.open(ctx, { phase: 'run' });
    try {
      await helper.query(BEGIN);
      await helper.query(`set transaction snapshot ${literal(snapshot ?? '')}`);
      await helper.query(`${lockOf(request)} nowait`);
      return helper;
    } catch (error) {
      await helper.close();
      throw error;
    }
  };
  const opened = await Promise.allSettled(Array.from({ length: ranges.readers - 1 }, open));
  const helpers = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed && ctx.signal.aborted) {
    await Promise.all(helpers.map((helper) => helper.close()));
    throw ctx.signal.reason;
  }
  if (failed) ctx.log.warn('a table is read by fewer connections', { reason: String(failed.reason) });
  return helpers;
}
