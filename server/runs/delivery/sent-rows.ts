import { and, asc, eq, gt, inArray, lte, ne, sql } from 'drizzle-orm';
import { connectionStreams, rejectedRows, sentRows, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Rejection, SentOperation, WriteCounts } from '../../connectors/contract/connector.ts';
import { type Claim, stillHeld } from '../claim-stream.ts';

/** Packed entries about rows of a stream. */
export interface SentSegment {
  id: number;
  settled: boolean;
  entries: number;
  data: Uint8Array;
}

export interface RejectedRow extends Rejection {
  operation: SentOperation;
  key: string;
}

const PAGE = 16;

/** The segments of a stream in order, a few at a time. */
export async function* readSegments(db: Db, stream: { stream_id: string; place: string }): AsyncGenerator<SentSegment> {
  const [last] = await db
    .select({ id: sql<number>`coalesce(max(${sentRows.id}), 0)::bigint`.mapWith(Number) })
    .from(sentRows)
    .where(eq(sentRows.stream_id, stream.stream_id));
  for (let after = 0; ; ) {
    const page = await db
      .select({ id: sentRows.id, settled: sentRows.settled, entries: sentRows.entries, data: sentRows.data })
      .from(sentRows)
      .where(
        and(
          eq(sentRows.stream_id, stream.stream_id),
          eq(sentRows.place, stream.place),
          gt(sentRows.id, after),
          lte(sentRows.id, last?.id ?? 0),
        ),
      )
      .orderBy(asc(sentRows.id))
      .limit(PAGE);
    yield* page;
    if (page.length < PAGE) return;
    after = page.at(-1)!.id;
  }
}

/** Entries of a stream at a place. */
export async function countEntries(db: Db, stream: { stream_id: string; place: string }): Promise<number> {
  const [row] = await db
    .select({ entries: sql<number>`coalesce(sum(${sentRows.entries}), 0)::bigint`.mapWith(Number) })
    .from(sentRows)
    .where(and(eq(sentRows.stream_id, stream.stream_id), eq(sentRows.place, stream.place)));
  return row?.entries ?? 0;
}

/** Forgets what was sent elsewhere. @returns whether there was anything */
export async function forgetOtherPlaces(db: Db, stream: { stream_id: string; place: string }): Promise<boolean> {
  const gone = await db
    .delete(sentRows)
    .where(and(eq(sentRows.stream_id, stream.stream_id), ne(sentRows.place, stream.place)))
    .returning({ id: sentRows.id });
  return gone.length > 0;
}

/** The next run of these streams sends all rows. */
export async function forgetSentRows(db: Db, stream_ids: readonly string[]): Promise<void> {
  if (stream_ids.length > 0) await db.delete(sentRows).where(inArray(sentRows.stream_id, [...stream_ids]));
}

export async function forgetSentRowsOf(db: Db, connection_id: string): Promise<void> {
  const streams = db
    .select({ id: connectionStreams.id })
    .from(connectionStreams)
    .where(eq(connectionStreams.connection_id, connection_id));
  await db.delete(sentRows).where(inArray(sentRows.stream_id, streams));
}

/** Rows that an earlier attempt of the claim has listed. */
export async function forgetRejectedRows(db: Db, { stream_run }: Claim): Promise<void> {
  await db.delete(rejectedRows).where(eq(rejectedRows.stream_run_id, stream_run.id));
}

/** What one write records. */
interface Sent {
  place: string;
  counts: WriteCounts;
  /** The destination has accepted rows since the last write. */
  progressed: boolean;
  /** The segment whose sends have all been answered. */
  settle: number | null;
  segments: Omit<SentSegment, 'id'>[];
  rejected: readonly RejectedRow[];
}

/** @returns the ids of the new segments; null if this worker has lost its claim */
export async function recordSent(db: Db, claim: Claim, sent: Sent): Promise<number[] | null> {
  const { stream, stream_run, run } = claim;
  return db.transaction(async (tx) => {
    if (!(await holdForWrite(tx, claim, sent))) return null;
    if (sent.settle !== null) {
      const segment = and(eq(sentRows.stream_id, stream.id), eq(sentRows.id, sent.settle));
      await tx.update(sentRows).set({ settled: true }).where(segment);
    }
    if (sent.rejected.length > 0) {
      const about = { account_id: run.account_id, stream_run_id: stream_run.id };
      await tx.insert(rejectedRows).values(sent.rejected.map((one) => ({ ...one, ...about })));
    }
    return insertSegments(tx, claim, sent);
  });
}

/** The update locks the row, so that no claim comes between the check and the write. */
async function holdForWrite(tx: Db, claim: Claim, { counts, progressed }: Pick<Sent, 'counts' | 'progressed'>) {
  const held = await tx
    .update(streamRuns)
    .set({ ...counts, ...(progressed && { attempts_without_progress: 0, worker_deaths: 0 }) })
    .where(stillHeld(claim))
    .returning({ id: streamRuns.id });
  return held.length > 0;
}

async function insertSegments(tx: Db, { stream }: Claim, { place, segments }: Pick<Sent, 'place' | 'segments'>) {
  if (segments.length === 0) return [];
  const rows = await tx
    .insert(sentRows)
    .values(segments.map((segment) => ({ ...segment, stream_id: stream.id, place })))
    .returning({ id: sentRows.id });
  return rows.map(({ id }) => id);
}

/** Replaces all segments of a stream by those that `segments` creates from them. False: the claim is lost. */
export async function replaceSegments(
  db: Db,
  claim: Claim,
  rewrite: {
    place: string;
    counts: WriteCounts;
    segments(old: AsyncIterable<SentSegment>): AsyncIterable<Omit<SentSegment, 'id'>>;
  },
): Promise<boolean> {
  const { place, counts } = rewrite;
  const stream = { stream_id: claim.stream.id, place };
  return db.transaction(async (tx) => {
    if (!(await holdForWrite(tx, claim, { counts, progressed: false }))) return false;
    const created: number[] = [];
    for await (const segment of rewrite.segments(readSegments(tx, stream))) {
      created.push(...(await insertSegments(tx, claim, { place, segments: [segment] })));
    }
    const [first] = created;
    const old = first === undefined ? sql`true` : sql`${sentRows.id} < ${first}`;
    await tx.delete(sentRows).where(and(eq(sentRows.stream_id, stream.stream_id), old));
    return true;
  });
}
