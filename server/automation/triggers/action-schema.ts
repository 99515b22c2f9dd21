import { z } from 'zod';
import { isJsonTemplate } from '../delivery/templates.ts';

const id = () => z.guid().toLowerCase();
const text = (minimum: number, maximum: number) => z.string().min(minimum).max(maximum);
/** As loose as where users are made: what counts is that one has it. */
const email = () =>
  text(3, 320)
    .regex(/^[^\s@]+@[^\s@]+$/, 'This is no e-mail address')
    .toLowerCase();
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** What the delivery itself sets, or the connection needs. */
const OWN_HEADERS = /^(host|content-length|content-type|transfer-encoding|connection|x-delivery-id|webhook-.*)$/i;
const MAX_BODY = 20_000;

const headers = () =>
  z
    .record(text(1, 100).regex(HEADER_NAME), text(0, 2000).regex(/^[\t\x20-\x7e]*$/))
    .refine((all) => Object.keys(all).length <= 20, 'At most 20 headers')
    .refine(
      (all) => !Object.keys(all).some((name) => OWN_HEADERS.test(name)),
      'One of the headers is set by the delivery',
    )
    .default({});

const SendChatMessage = z
  .strictObject({
    type: z.literal('send_chat_message'),
    account_connector_id: id(),
    channel_id: text(1, 255),
    message_template: text(1, 4000),
    thread_by_case: z.boolean().default(true).meta({ description: 'One thread for all messages about a case.' }),
  })
  .meta({ id: 'SendChatMessageAction' });

const SendEmail = z
  .strictObject({
    type: z.literal('send_email'),
    recipients: z.array(email()).min(1).max(50).meta({ description: 'Users of the account.' }),
    subject_template: text(1, 300),
    body_template: text(1, MAX_BODY).meta({ description: 'Plain text, or HTML when it has tags.' }),
  })
  .meta({
    id: 'SendEmailAction',
    description: 'Without SMTP_URL in the settings of the service each delivery fails with `mail_not_configured`.',
  });

const CallWebhook = z
  .strictObject({
    type: z.literal('call_webhook'),
    url: text(1, 2000).refine(isWebAddress, 'This is no https:// address'),
    headers: headers(),
    secret: text(1, 300)
      .refine(isWebhookSecret, 'A secret is whsec_ and base64 of 24 to 64 bytes, or any text of 16 characters or more')
      .nullable()
      .default(null)
      .meta({ description: 'Signs the calls (Standard Webhooks); write-only. The mask sent back leaves it as it is.' }),
    payload_template: text(1, MAX_BODY)
      .refine(isJsonTemplate, 'The template gives no JSON')
      .nullable()
      .default(null)
      .meta({ description: 'JSON with {{ names }} in it; absent: event, trigger, case and payload.' }),
  })
  .meta({ id: 'CallWebhookAction' });

const PauseConnection = z.strictObject({ type: z.literal('pause_connection') }).meta({ id: 'PauseConnectionAction' });

const RunConnection = z
  .strictObject({
    type: z.literal('run_connection'),
    connection_id: id().nullable().default(null).meta({ description: 'Absent: the connection of the event.' }),
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
      .meta({ description: 'Reruns of reruns, counted from the first run.' }),
  })
  .meta({ id: 'RerunRunAction' });

/** What a trigger does when it fires. To open a case is no action: every trigger does unless told not to. */
export const TriggerAction = z
  .discriminatedUnion('type', [SendChatMessage, SendEmail, CallWebhook, PauseConnection, RunConnection, RerunRun])
  .meta({ id: 'TriggerAction' });
export type TriggerAction = z.infer<typeof TriggerAction>;
export type ActionOf<Type extends TriggerAction['type']> = Extract<TriggerAction, { type: Type }>;

/** Stands for a secret in answers; sent back, it means "unchanged". */
export const SECRET_MASK = '**********';

/** Actions that tell somebody, as opposed to those that change pipelines. */
const NOTIFICATIONS: readonly string[] = [
  'send_chat_message',
  'send_email',
  'call_webhook',
] satisfies TriggerAction['type'][];
export const isNotification = (type: string) => NOTIFICATIONS.includes(type);

/** Whether plain http is allowed depends on the service's settings, which validate.ts knows. */
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
  if (secret === SECRET_MASK) return true;
  if (!secret.startsWith('whsec_')) return secret.length >= 16;
  const encoded = secret.slice('whsec_'.length);
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded && bytes.length >= 24 && bytes.length <= 64;
}
