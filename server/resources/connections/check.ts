import { z } from 'zod';
import { idInBody } from '../../api/wire-types.ts';
import type { Ctx } from '../../api/procedure.ts';
import { ApiError } from '../../platform/errors.ts';
import { readCatalog } from './catalog.ts';
import { planNewStreams } from './create.ts';
import { CreateConnectionRequest } from './schema.ts';
import { resolveSides } from './streams/references.ts';

const { destination_schema, table_prefix, streams } = CreateConnectionRequest.shape;

export const CheckConnectionRequest = z
  .strictObject({ source_id: idInBody(), destination_id: idInBody(), destination_schema, table_prefix, streams })
  .meta({
    id: 'CheckConnectionRequest',
    examples: [
      {
        source_id: '019a0000-0000-7000-8000-000000000001',
        destination_id: '019a0000-0000-7000-8000-000000000002',
        streams: [{ name: 'orders', sync_mode: 'incremental', destination_sync_mode: 'append' }],
      },
    ],
  });
export type CheckConnectionRequest = z.infer<typeof CheckConnectionRequest>;

export const ConnectionFinding = z
  .object({
    code: z.string(),
    message: z.string(),
    field: z.string().meta({ description: 'Path of the setting in the request, such as `streams.0.filters.0.value`.' }),
    stream_name: z.string().nullable(),
  })
  .meta({ id: 'ConnectionFinding' });
export type ConnectionFinding = z.infer<typeof ConnectionFinding>;

/**
 * Everything that a create of this connection would refuse about its streams. Stores nothing.
 * @throws ApiError 400 as `resolveSides`.
 */
export async function checkConnection(ctx: Ctx, input: CheckConnectionRequest): Promise<ConnectionFinding[]> {
  const sides = await resolveSides(ctx, input, { lock: null });
  try {
    const { findings } = await planNewStreams(ctx, input, {
      ...sides,
      catalog: await readCatalog(ctx, sides.source.id),
    });
    return findings.map(({ code, message, field, stream_name }) => ({ code, message, field, stream_name }));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    const { field, stream_name } = error.context;
    return [
      { code: error.code, message: error.message, field: String(field), stream_name: (stream_name as string) ?? null },
    ];
  }
}
