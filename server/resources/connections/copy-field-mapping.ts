import { eq, inArray } from 'drizzle-orm';
import { accountConnectors, connectionStreams } from '../../../db/schema/index.ts';
import type { StreamSchema } from '../../connectors/contract/connector.ts';
import { ApiError, badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findConnection } from '../access/connection.ts';
import type { Sides } from './streams/references.ts';
import type { ConnectionField, ConnectionStreamRequest } from './streams/schema.ts';
import { streamKey } from './streams/selection.ts';

interface Copied {
  fields: ConnectionField[];
  mapping: NonNullable<ConnectionStreamRequest['mapping']> | null;
}

/**
 * Fills unset field settings of a create request from another connection. Fields that this source does not have are
 * left out.
 * @throws ApiError 400 `invalid_reference` when that connection is not of the same two connectors.
 */
export async function withCopiedFields(
  ctx: Ctx,
  input: { from: string; sides: Sides; catalog: StreamSchema[]; requests: ConnectionStreamRequest[] | null },
): Promise<ConnectionStreamRequest[]> {
  const copied = await readFields(ctx, input.from, input.sides);
  const requests: ConnectionStreamRequest[] =
    input.requests ?? input.catalog.map(({ name, namespace }) => ({ name, namespace }));
  return requests.map((request) => {
    const stream = input.catalog.find(
      (one) => one.name === request.name && (request.namespace == null || request.namespace === one.namespace),
    );
    const settings = stream && copied.get(streamKey(stream));
    if (!settings) return request;
    const fields = settings.fields.filter((field) =>
      stream.fields.some(({ path }) => Bun.deepEquals(path, field.path)),
    );
    // A constant needs no field.
    const mapping = settings.mapping?.filter(
      ({ source_field, constant_value }) =>
        constant_value != null || stream.fields.some(({ path }) => path.join('.') === source_field),
    );
    return {
      ...request,
      ...(fields.length > 0 && request.fields === undefined && { fields }),
      ...(mapping?.length && request.mapping === undefined && { mapping }),
    };
  });
}

async function readFields(ctx: Ctx, id: string, sides: Sides): Promise<Map<string, Copied>> {
  const field = 'copy_field_mapping_from_connection_id';
  const refuse = () =>
    badRequest('invalid_reference', `${field} is not a connection between the same two connectors`, { field });
  const model = await findConnection(ctx, id).catch((error: unknown) => {
    throw error instanceof ApiError ? refuse() : error;
  });
  const ends = await ctx.db
    .select({ type: accountConnectors.connector_type, name: accountConnectors.connector_name })
    .from(accountConnectors)
    .where(inArray(accountConnectors.id, [model.source_id, model.destination_id]));
  const matches = (type: 'source' | 'destination') =>
    ends.some((end) => end.type === type && end.name === sides[type].connector_name);
  if (!matches('source') || !matches('destination')) throw refuse();
  const streams = await ctx.db.select().from(connectionStreams).where(eq(connectionStreams.connection_id, id));
  return new Map(
    streams.map((stream) => [
      streamKey(stream),
      { fields: stream.fields as ConnectionField[], mapping: stream.mapping as Copied['mapping'] },
    ]),
  );
}
