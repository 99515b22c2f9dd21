import { z } from 'zod';
import { selector } from '../kits/rest/document.ts';
import { parseDefinition } from './definition.ts';
import '../contract/parameters.ts';

const shownFor = (...equals: string[]) => ({
  visible_when: { parameter: 'authentication', equals },
  group: 'authentication' as const,
});
const secret = (label: string, ...methods: string[]) =>
  z
    .string()
    .min(1)
    .max(10_000)
    .optional()
    .meta({ label, secret: true, ...shownFor(...methods) });
const OAUTH = ['oauth2_client_credentials', 'oauth2_refresh_token'];

export const HttpDestinationConfig = z
  .object({
    url: z
      .url({ protocol: /^https?$/ })
      .max(2000)
      .meta({
        label: 'URL',
        directs_secrets: true,
        keyed_address: true,
        description: '{{ table }} is replaced by the name of the table',
        placeholder: 'https://api.example.com/contacts/batch',
        validates_remotely: true,
      }),
    method: z.enum(['POST', 'PUT', 'PATCH']).default('POST').meta({ label: 'Method', directs_secrets: false }),
    format: z
      .enum(['array', 'object', 'jsonl'])
      .default('array')
      .meta({
        label: 'Batch format',
        directs_secrets: false,
        value_labels: {
          array: 'JSON array of rows',
          object: 'JSON object that contains the rows',
          jsonl: 'JSON Lines',
        },
      }),
    rows_key: z
      .string()
      .min(1)
      .max(255)
      .default('records')
      .meta({
        label: 'Rows key',
        directs_secrets: false,
        description: 'The property of the object that contains the rows',
        visible_when: { parameter: 'format', equals: ['object'] },
      }),
    envelope: z
      .record(z.string(), z.json())
      .default({})
      .meta({
        label: 'Other properties',
        directs_secrets: false,
        description: 'Sent with every batch',
        visible_when: { parameter: 'format', equals: ['object'] },
      }),
    authentication: z
      .enum([
        'none',
        'bearer',
        'api_key_header',
        'api_key_query',
        'basic',
        'oauth2_client_credentials',
        'oauth2_refresh_token',
      ])
      .default('none')
      .meta({
        label: 'Authentication',
        directs_secrets: false,
        group: 'authentication',
        value_labels: {
          none: 'None',
          bearer: 'Bearer token',
          api_key_header: 'API key in a header',
          api_key_query: 'API key in the query string',
          basic: 'Username and password',
          oauth2_client_credentials: 'OAuth 2, client credentials',
          oauth2_refresh_token: 'OAuth 2, refresh token',
        },
      }),
    token: secret('Bearer token', 'bearer'),
    key_name: z
      .string()
      .min(1)
      .max(255)
      .default('X-Api-Key')
      .meta({ label: 'Key name', directs_secrets: false, ...shownFor('api_key_header', 'api_key_query') }),
    api_key: secret('API key', 'api_key_header', 'api_key_query'),
    username: z
      .string()
      .max(1000)
      .default('')
      .meta({ label: 'Username', directs_secrets: false, ...shownFor('basic') }),
    password: secret('Password', 'basic'),
    oauth_address: z
      .url({ protocol: /^https?$/ })
      .optional()
      .meta({ label: 'Token endpoint URL', directs_secrets: true, keyed_address: true, ...shownFor(...OAUTH) }),
    client_id: z
      .string()
      .max(1000)
      .default('')
      .meta({ label: 'Client ID', directs_secrets: false, ...shownFor(...OAUTH) }),
    client_secret: secret('Client secret', ...OAUTH),
    refresh_token: secret('Refresh token', 'oauth2_refresh_token'),
    scope: z
      .string()
      .max(1000)
      .default('')
      .meta({ label: 'Scope', directs_secrets: false, ...shownFor(...OAUTH) }),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .meta({ label: 'Headers', description: 'Sent with every batch', secret: true, group: 'advanced' }),
    batch_rows: z
      .int()
      .min(1)
      .max(10_000)
      .default(500)
      .meta({ label: 'Rows per batch', directs_secrets: false, group: 'advanced' }),
    batch_bytes: z
      .int()
      .min(1024)
      .max(16 * 1024 * 1024)
      .default(1024 * 1024)
      .meta({ label: 'Bytes per batch', directs_secrets: false, group: 'advanced' }),
    requests_per_second: z
      .number()
      .positive()
      .max(10_000)
      .optional()
      .meta({ label: 'Requests per second', directs_secrets: false, group: 'advanced' }),
    timeout_seconds: z
      .number()
      .min(0.1)
      .max(600)
      .default(60)
      .meta({ label: 'Timeout (seconds)', directs_secrets: false, group: 'advanced' }),
    rejected_selector: selector.optional().meta({
      label: 'Rejected rows',
      directs_secrets: false,
      description: 'JMESPath expression that selects their list or their number in a successful response',
      placeholder: 'errors',
      group: 'advanced',
    }),
    rejected_row: selector.optional().meta({
      label: 'Position of a rejected row',
      directs_secrets: false,
      description:
        'JMESPath expression that selects the position of the row in the batch, from 0, in an entry of the rejected rows',
      placeholder: 'index',
      group: 'advanced',
    }),
    delete_url: z
      .url({ protocol: /^https?$/ })
      .max(2000)
      .optional()
      .meta({
        label: 'URL for deletes',
        directs_secrets: true,
        keyed_address: true,
        description: 'Receives the keys of rows that the source no longer has. Empty: they stay in the service',
        group: 'advanced',
      }),
    delete_method: z
      .enum(['DELETE', 'POST'])
      .default('DELETE')
      .meta({ label: 'Method for deletes', directs_secrets: false, group: 'advanced' }),
    max_deletes: z.int().min(0).max(10_000_000).default(1000).meta({
      label: 'Maximum deletes per run',
      directs_secrets: false,
      description: 'A run that would delete more rows fails before it deletes any',
      group: 'advanced',
    }),
    definition: z
      .string()
      .min(1)
      .max(1_000_000)
      .superRefine((text, ctx) => {
        const { problem } = parseDefinition(text);
        if (problem !== null) ctx.addIssue({ code: 'custom', message: problem });
      })
      .optional()
      .meta({
        label: 'Requests',
        document: true,
        directs_secrets: true,
        description:
          'YAML or JSON with the requests that search, create, update and delete a row. Empty: batches of rows',
        group: 'advanced',
      }),
    check_method: z
      .enum(['OPTIONS', 'HEAD', 'GET', 'none'])
      .default('OPTIONS')
      .meta({
        label: 'Test method',
        directs_secrets: false,
        description: 'The connection test sends no rows',
        group: 'advanced',
        value_labels: { none: 'No request' },
      }),
  })
  .superRefine((settings, ctx) => {
    if (settings.definition !== undefined && settings.delete_url !== undefined) {
      const message = 'The requests of the definition replace this URL. Add delete to the object in the definition';
      ctx.addIssue({ code: 'custom', path: ['delete_url'], message });
    }
    if (settings.rejected_row !== undefined && settings.rejected_selector === undefined) {
      const message = 'It looks into the rejected rows. Set the expression that selects them, too';
      ctx.addIssue({ code: 'custom', path: ['rejected_row'], message });
    }
    for (const name of REQUIRED[settings.authentication] ?? []) {
      if (settings[name]) continue;
      ctx.addIssue({ code: 'custom', path: [name], message: `The parameter "${name}" is missing` });
    }
  });
export type HttpDestinationConfig = z.infer<typeof HttpDestinationConfig>;

const REQUIRED: Record<
  string,
  ('token' | 'api_key' | 'username' | 'password' | 'oauth_address' | 'client_id' | 'client_secret' | 'refresh_token')[]
> = {
  none: [],
  bearer: ['token'],
  api_key_header: ['api_key'],
  api_key_query: ['api_key'],
  basic: ['username'],
  oauth2_client_credentials: ['oauth_address', 'client_id', 'client_secret'],
  oauth2_refresh_token: ['oauth_address', 'client_id', 'client_secret', 'refresh_token'],
};
