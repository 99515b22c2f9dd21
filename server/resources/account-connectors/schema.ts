import { GivenConsent } from './consents/schema.ts';
import { z } from 'zod';
import { AUTH_METHODS } from '../../../db/schema/index.ts';
import {
  ConnectorType,
  instant,
  moment,
  name,
  owner,
  readOnlyKeys,
  text,
  UserReference,
  whole,
} from '../../api/wire-types.ts';

const uuid = () => z.string().meta({ format: 'uuid' });
const port = () => z.int().min(1).max(65_535);

export const AccountConnectorTest = z
  .object({
    status: z.enum(['passed', 'failed', 'skipped']),
    checks: z.array(
      z.object({
        title: z.string(),
        status: z.enum(['passed', 'failed', 'skipped']),
        message: z.string().nullable(),
        fix: z.string().optional().meta({ description: 'What to do about a failure.' }),
        statements: z
          .array(z.string())
          .optional()
          .meta({ description: 'Statements that grant what is missing, for an owner of the database to run.' }),
      }),
    ),
  })
  .meta({ id: 'AccountConnectorTest' });

const Dataset = z.object({ name: z.string(), sql: z.string() }).meta({ id: 'Dataset' });

const SshTunnel = z.object({
  enabled: z.boolean(),
  host: z.string(),
  port: whole(),
  username: z.string(),
  public_key: z.string().nullable(),
  fingerprint: z.string().nullable(),
  host_key_fingerprint: z
    .string()
    .nullable()
    .meta({ description: 'Host key of the SSH server. Null until the first login, which stores the key.' }),
  refused_host_key_fingerprint: z.string().nullable().meta({
    description:
      'A different host key seen and rejected at the last test. Set host_key_fingerprint to it if the change is expected.',
  }),
});

export const AccountConnectorSchema = z
  .object({
    id: uuid(),
    account_id: uuid(),
    name: z.string(),
    connector_type: ConnectorType,
    connector_id: uuid(),
    connector_name: z.string(),
    connector_display_name: z.string(),
    connector_version: z.string(),
    status: z.enum(['pending_auth', 'pending_test', 'active', 'broken', 'needs_reauth', 'disabled']),
    status_reason: z.string().nullable(),
    status_message: z.string().nullable(),
    auth_method: z.enum(AUTH_METHODS),
    is_authenticated: z.boolean(),
    credentials_expire_at: instant().nullable(),
    parameters: z.record(z.string(), z.unknown()).meta({ description: 'Secrets are shown as "**********".' }),
    ssh_tunnel: SshTunnel.nullable(),
    connections_count: whole(),
    datasets: z.array(Dataset).meta({ description: 'SQL queries that a source offers as streams.' }),
    last_tested_at: instant().nullable(),
    last_test: AccountConnectorTest.nullable(),
    catalog_status: z.enum(['never', 'pending', 'ready', 'failed']),
    catalog_refreshed_at: instant().nullable(),
    streams_count: whole(),
    free_until: instant().nullable(),
    owner: z.string().nullable(),
    created_by: UserReference.nullable(),
    created_at: instant(),
    updated_at: instant(),
    revision: whole(),
  })
  .meta({ id: 'AccountConnectorSchema' });
export type AccountConnectorSchema = z.infer<typeof AccountConnectorSchema>;

const tunnel = {
  enabled: z.boolean(),
  // Only names and addresses: other characters could be read as an option or a path.
  host: text(1, 255).regex(/^[^/\\\s@]+$/, 'A host name or an address'),
  port: port(),
  username: text(1, 255),
  encrypted_private_key: text(1, 20_000).meta({ description: 'As returned by generate_ssh_key.' }),
  private_key: text(1, 20_000).meta({
    description: 'Your own key instead: PEM or OpenSSH, without a passphrase. Encrypted, never returned.',
  }),
  host_key_fingerprint: z
    .string()
    .regex(/^SHA256:[A-Za-z0-9+/]{43}$/, 'Must be SHA256: and 43 characters, as shown by ssh-keygen -l')
    .nullish()
    .meta({
      description:
        'The only accepted host key. Omitted: the key of the first login. Null clears it, for a server whose key has changed.',
    }),
  public_key: text(1, 5000).nullish().meta({ description: 'If given, must match the private key.' }),
  fingerprint: text(1, 200).nullish().meta({ description: 'Derived from the key. Ignored in requests.' }),
};

const SshTunnelRequest = z
  .strictObject({
    ...z.object(tunnel).partial().shape,
    enabled: tunnel.enabled.default(true),
    host: tunnel.host,
    port: tunnel.port.default(22),
    username: tunnel.username,
    ...readOnlyKeys(SshTunnel, tunnel),
  })
  .meta({ id: 'SshTunnelRequest' });

const SshTunnelUpdate = z
  .strictObject({ ...z.object(tunnel).partial().shape, ...readOnlyKeys(SshTunnel, tunnel) })
  .meta({ id: 'SshTunnelUpdate', description: 'Omitted keys stay unchanged. A masked key means unchanged.' });
export type SshTunnelUpdate = z.infer<typeof SshTunnelUpdate>;

const settings = {
  name: name(),
  connector_type: ConnectorType,
  connector_name: text(1, 100),
  connector_id: text(1, 100),
  parameters: z.record(z.string(), z.unknown()).meta({
    description:
      'Values by name, as in the catalog. In an update, omitted parameters stay unchanged and null resets to the default.',
  }),
  auth_method: text(1, 50),
  oauth_consent: GivenConsent,
  ssh_tunnel: SshTunnelRequest.nullable(),
  datasets: z.array(z.strictObject({ name: name(), sql: text(1, 100_000) })).max(500),
  credentials_expire_at: moment()
    .nullable()
    .meta({ description: 'When the credentials expire. `credentials_expiring` is emitted 14, 7 and 1 days before.' }),
  owner: owner(),
  test_connection: z.boolean(),
  redirect_url: z
    .url({ protocol: /^https?$/ })
    .max(2000)
    .nullable(),
};

export const CreateAccountConnectorRequest = z
  .strictObject({
    ...z.object(settings).partial().shape,
    name: settings.name,
    connector_type: settings.connector_type,
    connector_name: settings.connector_name,
    parameters: settings.parameters.default({}),
    test_connection: settings.test_connection.default(true),
  })
  .meta({
    id: 'CreateAccountConnectorRequest',
    examples: [
      { name: 'Shop', connector_type: 'source', connector_name: 'demo', parameters: { rows: 10000 } },
      {
        name: 'Warehouse',
        connector_type: 'destination',
        connector_name: 'postgres',
        parameters: { host: 'warehouse.example.org', database: 'shop', username: 'loader', password: 'a password' },
        test_connection: false,
      },
    ],
  });
export type CreateAccountConnectorRequest = z.infer<typeof CreateAccountConnectorRequest>;

export const CheckedAccountConnector = z
  .object({ lacks_credentials: z.boolean().meta({ description: 'Whether it would wait for its authorization.' }) })
  .meta({ id: 'CheckedAccountConnector' });
export type CheckedAccountConnector = z.infer<typeof CheckedAccountConnector>;

const updates = {
  ...z.object(settings).partial().shape,
  ssh_tunnel: SshTunnelUpdate.nullable().optional(),
  revision: z.int().optional().meta({ description: 'The update is rejected if the current revision differs.' }),
};

export const UpdateAccountConnectorRequest = z
  .strictObject({ ...updates, ...readOnlyKeys(AccountConnectorSchema, updates) })
  .refine((body) => Object.values(body).some((value) => value !== undefined), 'At least one field is required')
  .meta({
    id: 'UpdateAccountConnectorRequest',
    examples: [{ name: 'Shop, all rows' }, { parameters: { rows: 20000 } }],
  });
export type UpdateAccountConnectorRequest = z.infer<typeof UpdateAccountConnectorRequest>;
