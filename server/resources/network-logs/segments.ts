import { and, asc, eq } from 'drizzle-orm';
import { networkLogSegments } from '../../../db/schema/index.ts';
import type { ObjectStore } from '../../platform/object-store.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { ConnectorType } from '../../api/wire-types.ts';

export interface SegmentFilter {
  connection_run_id: string;
  stream_run_id?: string;
  connector_type?: ConnectorType;
}

/** Keys of the stored gzip members, in write order. */
export async function segmentKeys(ctx: Ctx, filter: SegmentFilter): Promise<string[]> {
  const { connection_run_id, stream_run_id, connector_type } = filter;
  const rows = await ctx.db
    .select({ key: networkLogSegments.object_key })
    .from(networkLogSegments)
    .where(
      and(
        eq(networkLogSegments.connection_run_id, connection_run_id),
        stream_run_id === undefined ? undefined : eq(networkLogSegments.stream_run_id, stream_run_id),
        connector_type && eq(networkLogSegments.connector_type, connector_type),
      ),
    )
    .orderBy(asc(networkLogSegments.id));
  return rows.map((row) => row.key);
}

/** The stored members in order, without expired ones. */
export async function* readMembers(objects: ObjectStore, keys: string[]): AsyncGenerator<Bytes, void, undefined> {
  for (const key of keys) {
    const member = await objects.get(key);
    if (member) yield member as Bytes;
  }
}

type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>;

/** Streams the members unchanged: a concatenation of gzip members is a gzip file. */
export async function* concatenate(members: AsyncIterable<Bytes>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const member of members) yield* member;
}

/** The text of all members. A decompressor takes one member only, so each gets its own. */
export async function* decompress(members: AsyncIterable<Bytes>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const member of members) yield* member.pipeThrough(new DecompressionStream('gzip'));
}

/** A body with backpressure that releases its source when the client disconnects. */
export function bodyOf(chunks: AsyncGenerator<Uint8Array<ArrayBuffer>>): Bytes {
  return new ReadableStream({
    pull: async (controller) => {
      const next = await chunks.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    cancel: async () => {
      await chunks.return(undefined);
    },
  });
}
