import { z } from 'zod';
import { LOGICAL_TYPES } from '../../../connectors/contract/connector.ts';
import { count, idInBody } from '../../../api/wire-types.ts';
import { ConnectionStreamRequest } from '../streams/schema.ts';
import { CheckConnectionRequest } from '../check.ts';

const { destination_schema, table_prefix } = CheckConnectionRequest.shape;

export const PreviewStreamRequest = z
  .strictObject({
    source_id: idInBody(),
    destination_id: idInBody().nullish().meta({
      description: 'Null or absent: not selected yet. Values are then shown as for a PostgreSQL table.',
    }),
    destination_schema,
    table_prefix,
    stream: ConnectionStreamRequest,
    limit: z.int().min(1).max(100).default(10).meta({ description: 'Maximum number of rows.' }),
  })
  .meta({
    id: 'PreviewStreamRequest',
    examples: [
      {
        source_id: '019a0000-0000-7000-8000-000000000001',
        destination_id: '019a0000-0000-7000-8000-000000000002',
        stream: { name: 'orders', fields: [{ path: ['email'], masking: 'redact' }] },
      },
    ],
  });
export type PreviewStreamRequest = z.output<typeof PreviewStreamRequest>;

const PreviewColumn = z
  .object({
    field: z.string().meta({ description: 'Name in the source.' }),
    source_type: z.string(),
    name: z.string().meta({ description: 'Name in the destination.' }),
    type: z.enum(LOGICAL_TYPES).meta({ description: 'Type in the destination.' }),
    masked: z.boolean(),
  })
  .meta({ id: 'PreviewColumn' });

const PreviewRow = z
  .object({
    source: z.array(z.string().nullable()).meta({ description: 'By column. Values of masked columns are null.' }),
    destination: z.array(z.string().nullable()).meta({ description: 'By column, as a run writes them.' }),
  })
  .meta({ id: 'PreviewRow' });

export const StreamPreview = z
  .object({
    estimated_rows: count().nullable().meta({ description: 'Of the whole stream. Null: unknown.' }),
    columns: z.array(PreviewColumn),
    rows: z.array(PreviewRow),
    rows_skipped: count().meta({ description: 'Rows over 1 MB, which are left out.' }),
    table: z.string().meta({ description: 'Name of the table in the destination.' }),
    definition: z
      .string()
      .nullable()
      .meta({ description: 'The statement that creates the table. Null: the destination has none beforehand.' }),
  })
  .meta({ id: 'StreamPreview' });
export type StreamPreview = z.infer<typeof StreamPreview>;
