import { z } from 'zod';
import { PARAMETER_TYPES } from '../../connectors/contract/parameters.ts';
import { ConnectorType, instant, whole } from '../../api/wire-types.ts';

export const ConnectorParameterSchema = z
  .object({
    name: z.string(),
    label: z.string(),
    description: z.string().nullable(),
    type: z.enum(PARAMETER_TYPES),
    required: z.boolean(),
    secret: z.boolean(),
    directs_secrets: z
      .boolean()
      .meta({ description: 'Decides where the secrets are sent. A change of it needs the stored secrets again.' }),
    keyed_address: z.boolean().meta({
      description: 'A URL or a list of URLs. User name, password, query values and keys in the path are masked.',
    }),
    default: z.unknown(),
    placeholder: z.string().nullable(),
    pattern: z.string().nullable(),
    minimum: z.number().nullable(),
    maximum: z.number().nullable(),
    possible_values: z.record(z.string(), z.string()).nullable().meta({ description: 'Labels by value.' }),
    dynamic_possible_values: z.boolean(),
    depends_on: z.array(z.string()).nullable(),
    visible_when: z
      .object({ parameter: z.string(), equals: z.array(z.union([z.string(), z.number(), z.boolean()])) })
      .nullable(),
    group: z.enum(['connection', 'authentication', 'advanced', 'stream']),
    order: whole(),
    validates_remotely: z.boolean(),
    json_schema: z.record(z.string(), z.unknown()).nullable().meta({
      description:
        'Of the configuration of a connector from a manifest: the specification that it declares. Values that it marks as `airbyte_secret` belong to the parameter `secrets`, at the same paths.',
    }),
  })
  .meta({ id: 'ConnectorParameter' });
export type ConnectorParameterSchema = z.infer<typeof ConnectorParameterSchema>;

const Capabilities = z
  .object({
    incremental: z.boolean(),
    full_refresh: z.boolean(),
    cdc: z.boolean(),
    date_window: z.boolean(),
    dynamic_streams: z.boolean(),
    reverse_etl: z.boolean(),
    network_logs: z.boolean(),
    export_metadata: z.boolean(),
    ssh_tunnel: z.boolean(),
    chat: z.boolean(),
    datasets: z.boolean().meta({ description: 'SQL queries can be streams.' }),
    table_preview: z.boolean().meta({ description: 'Rows of the destination can be shown after a run.' }),
    oauth_consent: z.boolean().meta({ description: 'Users can consent at the provider instead of entering tokens.' }),
    webhooks: z.boolean().meta({ description: 'Other services send events to an address of the source.' }),
  })
  .meta({ id: 'ConnectorCapabilities' });

export const ConnectorSchema = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    connector_type: ConnectorType,
    name: z.string(),
    display_name: z.string(),
    description: z.string(),
    category: z.enum(['database', 'warehouse', 'file', 'saas', 'ads', 'crm', 'chat', 'http']),
    icon_url: z.string().nullable(),
    documentation_url: z.string().nullable(),
    changelog_url: z.string().nullable(),
    version: z.string(),
    release_stage: z.enum(['alpha', 'beta', 'generally_available', 'deprecated']),
    availability: z.enum(['available', 'plan_restricted']),
    auth_methods: z.array(z.enum(['none', 'api_key', 'basic', 'oauth2', 'key_pair', 'ssh_key', 'service_account'])),
    capabilities: Capabilities,
    supported_sync_modes: z.array(z.enum(['full_refresh', 'incremental'])),
    supported_destination_sync_modes: z.array(z.enum(['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'])),
    parameters: z.array(ConnectorParameterSchema),
    oauth: z.object({ authorization_url_host: z.string(), scopes: z.array(z.string()) }).nullable(),
    rate_limit_notes: z.string().nullable(),
    created_at: instant(),
    updated_at: instant(),
  })
  .meta({ id: 'ConnectorSchema' });
export type ConnectorSchema = z.infer<typeof ConnectorSchema>;
