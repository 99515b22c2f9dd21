import { and, count, eq, inArray, isNull, ne, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { z } from 'zod';
import {
  accountConnectors,
  type ConnectionRow,
  connections,
  connectionStreams,
  type StreamRow,
} from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findConnection } from '../access/connection.ts';
import { instant, whole } from '../../api/wire-types.ts';
import { readStreams } from './streams/store.ts';
import { streamKey } from './streams/selection.ts';

export const FieldMappingSourceConnectionSchema = z
  .object({
    connection_id: z.string().meta({ format: 'uuid' }),
    name: z.string(),
    source_connector_name: z.string(),
    destination_connector_name: z.string(),
    stream_count: whole(),
    mapped_stream_count: whole(),
    mapped_field_count: whole(),
    matching_stream_names: z.array(z.string()).meta({ description: 'Mapped streams that this connection also has.' }),
    is_same_source: z.boolean(),
    updated_at: instant(),
  })
  .meta({ id: 'FieldMappingSourceConnectionSchema' });
export type FieldMappingSourceConnectionSchema = z.infer<typeof FieldMappingSourceConnectionSchema>;

const source = alias(accountConnectors, 'source');
const destination = alias(accountConnectors, 'destination');

/**
 * Connections between the same two connectors whose field settings can be copied: those with the most streams in
 * common first, then the most recently changed.
 * @throws ApiError 404
 */
export async function listFieldMappingSources(
  ctx: Ctx,
  input: { connection_id: string },
): Promise<FieldMappingSourceConnectionSchema[]> {
  const connection = await findConnection(ctx, input.connection_id);
  const mapped = await mappedStreams(ctx, connection);
  const ids = [...mapped.keys()];
  const [candidates, sizes, own] = await Promise.all([
    candidatesAmong(ctx, connection, ids),
    streamCounts(ctx, ids),
    readStreams(ctx, connection.id),
  ]);
  const known = new Set(own.map(streamKey));
  return candidates
    .map(({ connection: one, ...names }) => ({
      connection_id: one.id,
      name: one.name,
      ...names,
      stream_count: sizes.get(one.id) ?? 0,
      ...describe(mapped.get(one.id) ?? [], known),
      is_same_source: one.source_id === connection.source_id,
      updated_at: one.updated_at,
    }))
    .toSorted(
      (a, b) =>
        b.matching_stream_names.length - a.matching_stream_names.length ||
        b.updated_at.localeCompare(a.updated_at) ||
        a.connection_id.localeCompare(b.connection_id),
    );
}

/** Streams with custom settings, by connection. They are few and have a partial index. */
async function mappedStreams(ctx: Ctx, connection: ConnectionRow): Promise<Map<string, StreamRow[]>> {
  const rows = await ctx.db
    .select()
    .from(connectionStreams)
    .where(
      and(
        eq(connectionStreams.account_id, ctx.principal.account_id),
        ne(connectionStreams.connection_id, connection.id),
        sql`(${connectionStreams.fields} <> '[]'::jsonb or ${connectionStreams.mapping} is not null)`,
      ),
    );
  return Map.groupBy(rows, (row) => row.connection_id);
}

async function streamCounts(ctx: Ctx, ids: string[]): Promise<Map<string, number>> {
  const rows = await ctx.db
    .select({ id: connectionStreams.connection_id, size: count() })
    .from(connectionStreams)
    .where(inArray(connectionStreams.connection_id, ids))
    .groupBy(connectionStreams.connection_id);
  return new Map(rows.map(({ id, size }) => [id, size]));
}

async function candidatesAmong(ctx: Ctx, connection: ConnectionRow, ids: string[]) {
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
        inArray(connections.id, ids),
        eq(source.connector_name, nameOf('source')),
        eq(destination.connector_name, nameOf('destination')),
      ),
    );
}

const settingsOf = (stream: StreamRow) => stream.fields.length + (stream.mapping?.length ?? 0);

function describe(mapped: StreamRow[], own: ReadonlySet<string>) {
  return {
    mapped_stream_count: mapped.length,
    mapped_field_count: mapped.reduce((sum, stream) => sum + settingsOf(stream), 0),
    matching_stream_names: mapped
      .filter((stream) => own.has(streamKey(stream)))
      .map((stream) => stream.name)
      .toSorted(),
  };
}
