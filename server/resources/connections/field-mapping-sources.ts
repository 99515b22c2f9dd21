import { and, eq, inArray, isNull, ne } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { z } from 'zod';
import { accountConnectors, connectionStreams, connections } from '../../../db/schema/index.ts';
import type { Ctx } from '../../procedure.ts';
import { type ConnectionRow, findConnection } from '../owned-connection.ts';
import { instant } from '../wire.ts';
import { streamKey } from './stream-selection.ts';

export const FieldMappingSourceConnectionSchema = z
  .object({
    connection_id: z.string().meta({ format: 'uuid' }),
    name: z.string(),
    source_connector_name: z.string(),
    destination_connector_name: z.string(),
    stream_count: z.number(),
    mapped_stream_count: z.number(),
    mapped_field_count: z.number(),
    matching_stream_names: z.array(z.string()).meta({ description: 'Mapped streams that this connection has too.' }),
    is_same_source: z.boolean(),
    updated_at: instant(),
  })
  .meta({ id: 'FieldMappingSourceConnectionSchema' });
export type FieldMappingSourceConnectionSchema = z.infer<typeof FieldMappingSourceConnectionSchema>;

type StreamRow = typeof connectionStreams.$inferSelect;

const source = alias(accountConnectors, 'source');
const destination = alias(accountConnectors, 'destination');

/**
 * Connections between the same two connectors whose field settings can be copied: those with the most streams in
 * common first, then the last changed.
 * @throws ApiError 404
 */
export async function listFieldMappingSources(
  ctx: Ctx,
  input: { connection_id: string },
): Promise<FieldMappingSourceConnectionSchema[]> {
  const connection = await findConnection(ctx, input.connection_id);
  const candidates = await candidatesFor(ctx, connection);
  const ids = [connection.id, ...candidates.map((candidate) => candidate.connection.id)];
  const rows = await ctx.db.select().from(connectionStreams).where(inArray(connectionStreams.connection_id, ids));
  const streams = Map.groupBy(rows, (row) => row.connection_id);
  const own = new Set(streams.get(connection.id)?.map(streamKey));
  return candidates
    .map(({ connection: one, ...names }) => ({
      connection_id: one.id,
      name: one.name,
      ...names,
      ...describe(streams.get(one.id) ?? [], own),
      is_same_source: one.source_id === connection.source_id,
      updated_at: one.updated_at,
    }))
    .filter((one) => one.mapped_stream_count > 0)
    .toSorted(
      (a, b) =>
        b.matching_stream_names.length - a.matching_stream_names.length ||
        b.updated_at.localeCompare(a.updated_at) ||
        a.connection_id.localeCompare(b.connection_id),
    );
}

async function candidatesFor(ctx: Ctx, connection: ConnectionRow) {
  const ends = await ctx.db
    .select({ type: accountConnectors.connector_type, name: accountConnectors.connector_name })
    .from(accountConnectors)
    .where(inArray(accountConnectors.id, [connection.source_id, connection.destination_id]));
  const nameOf = (type: 'source' | 'destination') => ends.find((end) => end.type === type)?.name ?? '';
  return ctx.db
    .select({
      connection: connections,
      source_connector_name: source.connector_name,
      destination_connector_name: destination.connector_name,
    })
    .from(connections)
    .innerJoin(source, eq(source.id, connections.source_id))
    .innerJoin(destination, eq(destination.id, connections.destination_id))
    .where(
      and(
        eq(connections.account_id, ctx.principal.account_id),
        isNull(connections.deleted_at),
        ne(connections.id, connection.id),
        eq(source.connector_name, nameOf('source')),
        eq(destination.connector_name, nameOf('destination')),
      ),
    );
}

const settingsOf = (stream: StreamRow) => stream.fields.length + (stream.mapping?.length ?? 0);

function describe(streams: StreamRow[], own: ReadonlySet<string>) {
  const mapped = streams.filter((stream) => settingsOf(stream) > 0);
  return {
    stream_count: streams.length,
    mapped_stream_count: mapped.length,
    mapped_field_count: mapped.reduce((sum, stream) => sum + settingsOf(stream), 0),
    matching_stream_names: mapped
      .filter((stream) => own.has(streamKey(stream)))
      .map((stream) => stream.name)
      .toSorted(),
  };
}
