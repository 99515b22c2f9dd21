import { z } from 'zod';
import { MASK } from '../../platform/mask.ts';
import { isReference } from '../../platform/secret-references.ts';
import { isJsonTemplate } from '../render-template.ts';

const id = () => z.guid().toLowerCase();
const text = (minimum: number, maximum: number) => z.string().min(minimum).max(maximum);
/** As permissive as the check for users: what matters is that a user has the address. */
const email = () =>
  text(3, 320)
    .regex(/^[^\s@]+@[^\s@]+$/, 'Not a valid email address')
    .toLowerCase();
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Headers that the delivery sets or that the HTTP connection needs. */
const OWN_HEADERS = /^(host|content-length|content-type|transfer-encoding|connection|x-delivery-id|webhook-.*)$/i;
const MAX_BODY_LENGTH = 20_000;

const headers = () =>
  z
    .record(text(1, 100).regex(HEADER_NAME), text(0, 2000).regex(/^[\t\x20-\x7e]*$/))
    .refine((all) => Object.keys(all).length <= 20, 'At most 20 headers')
    .refine(
      (all) => !Object.keys(all).some((name) => OWN_HEADERS.test(name)),
      'Headers such as Host, Content-Type, X-Delivery-Id and Webhook-* are set by the service',
    )
    .default({});

const SendChatMessage = z
  .strictObject({
    type: z.literal('send_chat_message'),
    account_connector_id: id(),
    channel_id: text(1, 255),
    message_template: text(1, 4000),
    thread_by_case: z.boolean().default(true).meta({ description: 'Post all messages about a case in one thread.' }),
  })
  .meta({ id: 'SendChatMessageAction' });

const SendEmail = z
  .strictObject({
    type: z.literal('send_email'),
    recipients: z.array(email()).min(1).max(50).meta({ description: 'Email addresses of users of the account.' }),
    subject_template: text(1, 300),
    body_template: text(1, MAX_BODY_LENGTH).meta({ description: 'Plain text, or HTML if it contains tags.' }),
  })
  .meta({
    id: 'SendEmailAction',
    description: 'Requires `SMTP_URL`. Without it, each delivery fails with `mail_not_configured`.',
  });

const SECRET_FORM = 'A secret is whsec_ followed by 24 to 64 bytes in base64, or any text of at least 16 characters';

/** The secrets of a webhook as they are sent. */
export const WebhookSecrets = z.object({
  headers: headers(),
  secret: z.string().refine(isWebhookSecret, SECRET_FORM).nullable(),
});
export type WebhookSecrets = z.infer<typeof WebhookSecrets>;

const CallWebhook = z
  .strictObject({
    type: z.literal('call_webhook'),
    url: text(1, 2000).refine(isWebAddress, 'Not a valid https:// URL'),
    headers: headers(),
    secret: text(1, 300)
      .refine((secret) => isReference(secret) || isWebhookSecret(secret), SECRET_FORM)
      .nullable()
      .default(null)
      .meta({
        description:
          'Signs the calls (Standard Webhooks). Write-only: responses show a mask; sending the mask keeps the secret.',
      }),
    payload_template: text(1, MAX_BODY_LENGTH)
      .refine(isJsonTemplate, 'The template does not produce valid JSON')
      .nullable()
      .default(null)
      .meta({ description: 'JSON with {{ name }} placeholders. Default: event, trigger, case and payload.' }),
  })
  .meta({ id: 'CallWebhookAction' });

const PauseConnection = z.strictObject({ type: z.literal('pause_connection') }).meta({ id: 'PauseConnectionAction' });

const RunConnection = z
  .strictObject({
    type: z.literal('run_connection'),
    connection_id: id().nullable().default(null).meta({ description: 'Default: the connection of the event.' }),
  })
  .meta({ id: 'RunConnectionAction' });

const RerunRun = z
  .strictObject({
    type: z.literal('rerun_run'),
    max_reruns: z
      .int()
      .min(1)
      .max(10)
      .default(1)
      .meta({ description: 'Maximum number of reruns, counted from the first run of the chain.' }),
  })
  .meta({ id: 'RerunRunAction' });

/** What a trigger does when it fires. Opening a case is not an action: every trigger does so unless configured not to. */
export const TriggerAction = z
  .discriminatedUnion('type', [SendChatMessage, SendEmail, CallWebhook, PauseConnection, RunConnection, RerunRun])
  .meta({ id: 'TriggerAction' });
export type TriggerAction = z.infer<typeof TriggerAction>;
export type ActionOf<Type extends TriggerAction['type']> = Extract<TriggerAction, { type: Type }>;

/** An action that notifies people or systems. */
export const NotifyingAction = z
  .discriminatedUnion('type', [SendChatMessage, SendEmail, CallWebhook])
  .meta({ id: 'NotifyingAction' });
export type NotifyingAction = z.infer<typeof NotifyingAction>;

/** Actions that notify people, as opposed to those that change pipelines. */
const NOTIFICATIONS: readonly string[] = [
  'send_chat_message',
  'send_email',
  'call_webhook',
] satisfies TriggerAction['type'][];
export const isNotification = (type: string) => NOTIFICATIONS.includes(type);

/** Whether plain http is allowed depends on the settings of the service: see validate-actions.ts. */
function isWebAddress(value: string): boolean {
  const url = URL.parse(value);
  return (
    url !== null &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === ''
  );
}

function isWebhookSecret(secret: string): boolean {
  if (secret === MASK) return true;
  if (!secret.startsWith('whsec_')) return secret.length >= 16;
  const encoded = secret.slice('whsec_'.length);
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded && bytes.length >= 24 && bytes.length <= 64;
}
