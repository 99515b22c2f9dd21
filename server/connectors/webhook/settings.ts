import { z } from 'zod';
import type { InboxLimits } from '../contract/connector.ts';
import '../contract/parameters.ts';

export const SIGNATURES = ['none', 'secret_header', 'github', 'shopify', 'stripe', 'standard_webhooks'] as const;
export type Signature = (typeof SIGNATURES)[number];

const MEGABYTE = 1024 * 1024;
const MAX_BODY_KILOBYTES = 10_240;
export const MAX_BODY_BYTES = MAX_BODY_KILOBYTES * 1024;
const SIGNED = SIGNATURES.filter((one) => one !== 'none');

/** Nothing is sent anywhere, so no parameter can lead a secret elsewhere. */
const meta = <Meta extends object>(given: Meta) => ({ directs_secrets: false, ...given });
const headerName = () =>
  z
    .string()
    .regex(/^[A-Za-z0-9-]{1,100}$/, 'Name of a header')
    .transform((name) => name.toLowerCase());
const path = () =>
  z.string().regex(/^[^\s.]{1,100}(?:\.[^\s.]{1,100}){0,9}$/, 'Names separated by dots, such as data.id');

/** These headers prove who sends, so they are never stored. */
const SECRET_HEADERS =
  /^(?:authorization|proxy-authorization|cookie|webhook-signature|stripe-signature|x-hub-signature.*|x-shopify-hmac-.*)$/;

export const WebhookConfig = z
  .object({
    signature: z.enum(SIGNATURES).meta(
      meta({
        label: 'Signature',
        description:
          'How the sender proves that an event comes from it. Without a signature the address is the only secret',
        value_labels: {
          none: 'None',
          secret_header: 'Secret in a header',
          github: 'GitHub',
          shopify: 'Shopify',
          stripe: 'Stripe',
          standard_webhooks: 'Standard Webhooks',
        },
        group: 'authentication',
      }),
    ),
    secret: z
      .string()
      .min(1)
      .max(1000)
      .optional()
      .meta({
        label: 'Signing secret',
        description: 'As the sender shows it, or as you enter it there',
        secret: true,
        group: 'authentication',
        visible_when: { parameter: 'signature', equals: SIGNED },
      }),
    previous_secret: z
      .string()
      .min(1)
      .max(1000)
      .optional()
      .meta({
        label: 'Previous signing secret',
        description: 'Accepted too, while the sender changes to a new secret',
        secret: true,
        group: 'authentication',
        visible_when: { parameter: 'signature', equals: SIGNED },
      }),
    header_name: headerName()
      .default('x-webhook-secret')
      .meta(
        meta({
          label: 'Header with the secret',
          group: 'authentication',
          visible_when: { parameter: 'signature', equals: ['secret_header'] },
        }),
      ),
    tolerance_seconds: z
      .int()
      .min(10)
      .max(86_400)
      .default(300)
      .meta(
        meta({
          label: 'Replay window (seconds)',
          description: 'A signature whose time differs more from that of the service is refused',
          group: 'authentication',
          visible_when: { parameter: 'signature', equals: ['stripe', 'standard_webhooks'] },
        }),
      ),
    event_id_header: headerName()
      .optional()
      .meta(
        meta({
          label: 'Header with the event id',
          description: 'Events with the same id are stored once. Default: where the sender of the signature has its id',
          group: 'stream',
        }),
      ),
    event_id_path: path()
      .optional()
      .meta(meta({ label: 'Path of the event id', description: 'In the body, such as data.id', group: 'stream' })),
    event_type_header: headerName()
      .optional()
      .meta(meta({ label: 'Header with the event type', group: 'stream' })),
    event_type_path: path()
      .optional()
      .meta(meta({ label: 'Path of the event type', description: 'In the body, such as type', group: 'stream' })),
    streams_by_type: z
      .boolean()
      .default(false)
      .meta(
        meta({
          label: 'One stream per event type',
          description: 'Beside the stream of all events. Refresh the schema once events of a new type have arrived',
          group: 'stream',
        }),
      ),
    headers: z
      .array(headerName())
      .max(20)
      .default([])
      .meta(
        meta({ label: 'Stored headers', description: 'Names of headers to store with each event', group: 'stream' }),
      ),
    retention_days: z
      .int()
      .min(0)
      .max(90)
      .default(7)
      .meta(
        meta({
          label: 'Retention (days)',
          description: 'How long events are kept after every connection has loaded them',
          group: 'advanced',
        }),
      ),
    max_events: z
      .int()
      .min(1)
      .max(10_000_000)
      .default(1_000_000)
      .meta(
        meta({
          label: 'Stored events',
          description: 'Beyond them, senders receive 429 and try again',
          group: 'advanced',
        }),
      ),
    max_megabytes: z
      .int()
      .min(1)
      .max(10_240)
      .default(1024)
      .meta(
        meta({
          label: 'Stored megabytes',
          description: 'Beyond them, senders receive 429 and try again',
          group: 'advanced',
        }),
      ),
    max_body_kilobytes: z
      .int()
      .min(1)
      .max(MAX_BODY_KILOBYTES)
      .default(1024)
      .meta(
        meta({ label: 'Largest body (kilobytes)', description: 'A larger one is refused with 413', group: 'advanced' }),
      ),
  })
  .superRefine((config, { addIssue }) => {
    const problem = (name: string, message: string, code?: string) =>
      addIssue({ code: 'custom', path: [name], message, ...(code !== undefined && { params: { code } }) });
    if (config.signature !== 'none' && config.secret === undefined) {
      problem('secret', 'Enter the signing secret', 'missing_parameter');
    }
    if (config.event_id_header !== undefined && config.event_id_path !== undefined) {
      problem('event_id_path', 'The event id is either in a header or in the body');
    }
    if (config.event_type_header !== undefined && config.event_type_path !== undefined) {
      problem('event_type_path', 'The event type is either in a header or in the body');
    }
    const secret = config.headers.find(
      (name) => SECRET_HEADERS.test(name) || (config.signature === 'secret_header' && name === config.header_name),
    );
    if (secret !== undefined) problem('headers', `${secret} contains a secret or a signature and cannot be stored`);
  });
export type WebhookConfig = z.infer<typeof WebhookConfig>;

const Limits = z.object({
  retention_days: WebhookConfig.shape.retention_days,
  max_events: WebhookConfig.shape.max_events,
  max_megabytes: WebhookConfig.shape.max_megabytes,
  max_body_kilobytes: WebhookConfig.shape.max_body_kilobytes,
});

export function limitsOf(parameters: Record<string, unknown>): InboxLimits {
  const { retention_days, max_events, max_megabytes, max_body_kilobytes } = Limits.parse(parameters);
  return {
    events: max_events,
    bytes: max_megabytes * MEGABYTE,
    body_bytes: max_body_kilobytes * 1024,
    retention_days,
  };
}
