import { z } from 'zod';
import { LOGICAL_TYPES } from '../../connectors/contract/connector.ts';
import { idInBody, instant, text } from '../../api/wire-types.ts';

const fieldPath = () => z.array(text(1, 255)).min(1).max(20);
const Masking = z.enum(['none', 'hash_sha256', 'hash_sha256_salted', 'redact', 'encrypt']);
const SyncMode = z.enum(['full_refresh', 'incremental']);

/** Override keys in responses; null means not overridden. */
const CatalogFieldOverride = z
  .object({
    type: z.enum(LOGICAL_TYPES).nullable(),
    destination_name: z.string().nullable(),
    description: z.string().nullable(),
    is_primary_key: z.boolean().nullable(),
    is_cursor: z.boolean().nullable(),
    masking: Masking.nullable(),
    excluded: z.boolean().nullable(),
    nullable: z.boolean().nullable(),
  })
  .meta({ id: 'CatalogFieldOverride' });

export const CatalogField = z
  .object({
    path: z.array(z.string()),
    name: z.string(),
    type: z.enum(LOGICAL_TYPES),
    source_type: z.string().nullable(),
    nullable: z.boolean(),
    is_primary_key: z.boolean(),
    is_cursor_candidate: z.boolean(),
    enum_values: z.array(z.string()).nullable(),
    sample: z.string().nullable(),
    override: CatalogFieldOverride.nullable().meta({
      description: 'Settings of users. The other keys are as discovered.',
    }),
  })
  .meta({ id: 'CatalogField' });
export type CatalogField = z.infer<typeof CatalogField>;

const SuggestedSettings = z
  .object({
    sync_mode: SyncMode,
    cursor_field: z.array(z.string()).nullable(),
    primary_key: z.array(z.array(z.string())).nullable(),
    reason: z.string(),
  })
  .meta({
    id: 'SuggestedSettings',
    description:
      'How to load the stream, and why: incremental where a key and a cursor are there. A connection gets these settings only if the request sets them.',
  });

export const AccountConnectorCatalogItemSchema = z
  .object({
    stream_id: z.string().meta({ format: 'uuid' }),
    name: z.string(),
    namespace: z.string().nullable(),
    display_name: z.string().nullable(),
    description: z.string().nullable(),
    supported_sync_modes: z.array(SyncMode),
    source_defined_cursor: z.boolean(),
    default_cursor_field: z.array(z.string()).nullable(),
    source_defined_primary_key: z.array(z.array(z.string())).nullable(),
    is_resumable: z.boolean(),
    supports_date_window: z.boolean(),
    suggested: z.boolean(),
    suggested_settings: SuggestedSettings,
    fields: z.array(CatalogField).meta({ description: 'In the order of the source.' }),
    change_status: z.enum(['unchanged', 'added', 'removed', 'updated']),
    discovered_at: instant(),
    removed_at: instant().nullable(),
  })
  .meta({ id: 'AccountConnectorCatalogItemSchema' });
export type AccountConnectorCatalogItemSchema = z.infer<typeof AccountConnectorCatalogItemSchema>;

const FieldOverrideRequest = z
  .strictObject({
    path: fieldPath(),
    type: z.enum(LOGICAL_TYPES).nullish().meta({ description: 'Type of the column in the destination.' }),
    destination_name: text(1, 255).nullish(),
    description: text(1, 2000).nullish(),
    is_primary_key: z.boolean().nullish(),
    is_cursor: z.boolean().nullish(),
    masking: Masking.nullish(),
    excluded: z.boolean().nullish(),
    nullable: z.boolean().nullish(),
    clear: z.boolean().default(false).meta({ description: 'Clears the existing override of the field first.' }),
  })
  .meta({
    id: 'CatalogFieldOverrideRequest',
    description: 'Omitted keys stay unchanged; null resets a key.',
  });
export type FieldOverrideRequest = z.infer<typeof FieldOverrideRequest>;

const CatalogItemRequest = z
  .strictObject({
    stream_id: idInBody().optional(),
    name: text(1, 255).optional(),
    namespace: text(1, 255).nullish(),
    field_overrides: z.array(FieldOverrideRequest).max(5000),
  })
  .refine(
    (item) => (item.stream_id === undefined) !== (item.name === undefined),
    'Exactly one of stream_id and name is required',
  )
  .meta({ id: 'CatalogItemRequest' });
export type CatalogItemRequest = z.infer<typeof CatalogItemRequest>;

export const UpdateAccountConnectorCatalogRequest = z
  .strictObject({
    items: z.array(CatalogItemRequest).min(1).max(10_000),
    mode: z.enum(['merge', 'replace']).default('merge').meta({
      description: '`merge` changes only the given fields; `replace` removes all other overrides.',
    }),
  })
  .meta({
    id: 'UpdateAccountConnectorCatalogRequest',
    examples: [{ items: [{ name: 'users', field_overrides: [{ path: ['email'], masking: 'hash_sha256' }] }] }],
  });
export type UpdateAccountConnectorCatalogRequest = z.infer<typeof UpdateAccountConnectorCatalogRequest>;
