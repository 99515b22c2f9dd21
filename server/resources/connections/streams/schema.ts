import { z } from 'zod';
import { LOGICAL_TYPES } from '../../../connectors/contract/connector.ts';
import { count, instant, readOnlyKeys, text, whole } from '../../../api/wire-types.ts';

export const SyncMode = z.enum(['full_refresh', 'incremental']).meta({ id: 'SyncMode' });
export const DestinationSyncMode = z
  .enum(['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'])
  .meta({ id: 'DestinationSyncMode' });

const path = () => z.array(text(1, 255)).min(1).max(20);

export const ConnectionField = z
  .strictObject({
    path: path(),
    selected: z.boolean().default(true),
    destination_name: text(1, 255).nullish().default(null),
    destination_type: z.enum(LOGICAL_TYPES).nullish().default(null),
    masking: z.enum(['none', 'hash_sha256', 'hash_sha256_salted', 'redact', 'encrypt']).default('none'),
  })
  .meta({
    id: 'ConnectionField',
    description: 'Settings of one field. Fields not listed are loaded unchanged.',
  });
export type ConnectionField = z.infer<typeof ConnectionField>;

export const StreamFilter = z
  .strictObject({
    field: text(1, 255),
    operator: z.enum([
      'eq',
      'ne',
      'gt',
      'gte',
      'lt',
      'lte',
      'in',
      'not_in',
      'contains',
      'starts_with',
      'is_null',
      'is_not_null',
      'between',
    ]),
    value: z
      .union([z.string(), z.number(), z.boolean(), z.array(z.union([z.string(), z.number(), z.boolean()]))])
      .nullish(),
  })
  .meta({ id: 'StreamFilter' });
export type StreamFilter = z.infer<typeof StreamFilter>;

export const FieldMapping = z
  .strictObject({
    source_field: text(1, 255),
    destination_field: text(1, 255),
    is_match_key: z.boolean().default(false),
    transform: z.enum(['none', 'lowercase', 'uppercase', 'trim', 'sha256', 'date_iso', 'number']).default('none'),
    constant_value: text(0, 2000).nullish().default(null),
  })
  .meta({ id: 'FieldMapping' });

export const ConnectionStream = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    name: z.string(),
    namespace: z.string().nullable(),
    selected: z.boolean(),
    sync_mode: SyncMode,
    destination_sync_mode: DestinationSyncMode,
    cursor_field: z.array(z.string()).nullable(),
    primary_key: z.array(z.array(z.string())).nullable(),
    destination_table: z.string().nullable(),
    shared_destination_table: z.boolean(),
    backfill_days: whole().nullable(),
    fields: z.array(ConnectionField),
    filters: z.array(StreamFilter),
    dataset_sql: z.string().nullable(),
    mapping: z.array(FieldMapping).nullable(),
    cursor_value: z.string().nullable(),
    cursor_updated_at: instant().nullable(),
    row_count_last_run: count().nullable(),
    fresh_at: instant().nullable().meta({
      description: 'The table has everything that the source had at this moment. Null before the first load.',
    }),
    parked: z
      .object({
        at: instant(),
        code: z.string(),
        message: z.string(),
        origin: z.enum(['source', 'destination']),
      })
      .nullable()
      .meta({
        description:
          "Why changes of the stream's table could not be applied: it is left out until its cursor is reset. Null: it is read.",
      }),
  })
  .meta({ id: 'ConnectionStream' });
export type ConnectionStream = z.infer<typeof ConnectionStream>;

const settings = {
  name: text(1, 255),
  namespace: text(1, 255).nullish(),
  selected: z.boolean(),
  sync_mode: SyncMode,
  destination_sync_mode: DestinationSyncMode,
  cursor_field: path().nullable(),
  primary_key: z.array(path()).max(50).nullable(),
  destination_table: text(1, 255).nullable(),
  shared_destination_table: z.boolean().meta({
    description: 'Other streams and connections may write to the same table. Otherwise such a stream is refused.',
  }),
  backfill_days: z.int().min(0).max(365).nullable(),
  fields: z.array(ConnectionField).max(2000),
  filters: z.array(StreamFilter).max(50),
  dataset_sql: text(1, 100_000).nullable(),
  mapping: z.array(FieldMapping).max(500).nullable(),
};

/** Settings of one stream in a request. Only the name is required. */
export const ConnectionStreamRequest = z
  .strictObject({
    ...z.object(settings).partial().shape,
    name: settings.name,
    ...readOnlyKeys(ConnectionStream, settings),
  })
  .meta({ id: 'ConnectionStreamRequest' });
export type ConnectionStreamRequest = z.infer<typeof ConnectionStreamRequest>;
