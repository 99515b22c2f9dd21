import { recordOwnUse } from '../../../db/own-secret-uses.ts';
import type { Deps } from '../../deps.ts';
import type { ActionOf } from '../triggers/action-schema.ts';
import { renderTemplate } from '../render-template.ts';
import { permanent, temporary } from './delivery-error.ts';
import { type Message, prefixOf, templateValues } from './template-values.ts';

const TIMEOUT_MS = 15_000;
const HAS_TAGS = /<[a-z!/][^>]*>/i;
const MAX_SUBJECT = 300;

/**
 * Sends one email to users of the account. Every attempt has the delivery's id as its Message-ID. Returns a note about
 * recipients that the mail server rejected, or null.
 * @throws DeliveryError
 */
export async function sendEmail(
  deps: Deps,
  { job, action, to }: { job: Message; action: ActionOf<'send_email'>; to: string[] },
): Promise<string | null> {
  const { SMTP_URL, MAIL_FROM } = deps.config;
  if (SMTP_URL === null) throw permanent('mail_not_configured', 'No mail server is configured. Set SMTP_URL');
  if (to.length === 0) throw permanent('no_recipients', 'None of the recipients is still a user of the account');
  const { host, password } = new URL(SMTP_URL);
  if (password !== '') await recordOwnUse(deps.db, { setting: 'SMTP_URL', host }, deps.now());
  // Loaded with its first use: processes start often, and most never need it.
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({
    url: SMTP_URL,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    const { rejected } = await transport.sendMail({
      from: MAIL_FROM,
      to,
      messageId: `<${job.delivery.id}@data-pipelines>`,
      headers: { 'X-Delivery-Id': job.delivery.id, 'Auto-Submitted': 'auto-generated' },
      ...contentOf(deps, job, action),
    });
    return rejected.length === 0 ? null : `The mail server rejected ${rejected.map(String).join(', ')}`;
  } catch (error) {
    throw translate(error);
  } finally {
    transport.close();
  }
}

function contentOf(deps: Deps, job: Message, action: ActionOf<'send_email'>) {
  const values = templateValues(job, deps.config.PUBLIC_URL);
  const { subject_template, body_template } = action;
  // On one line, so that a value cannot add a header.
  const subject = `${prefixOf(job)}${renderTemplate(subject_template, values, 'text')}`.replaceAll(/\s+/g, ' ').trim();
  const isHtml = HAS_TAGS.test(body_template);
  const text = renderTemplate(isHtml ? body_template.replaceAll(/<[^>]*>/g, '') : body_template, values, 'text');
  const html = isHtml ? { html: renderTemplate(body_template, values, 'html') } : {};
  return { subject: subject.slice(0, MAX_SUBJECT), text, ...html };
}

/** 5xx responses are final. Responses of mail servers contain addresses, never passwords. */
function translate(error: unknown): Error {
  const { code, responseCode, response } = error as { code?: string; responseCode?: number; response?: string };
  if (code === 'EAUTH') return permanent('mail_login_refused', 'The mail server rejected the login in SMTP_URL');
  const message = response
    ? `The mail server responded: ${response.slice(0, 300)}`
    : `The mail server cannot be reached (${code ?? 'unknown'})`;
  return responseCode !== undefined && responseCode >= 500
    ? permanent('mail_refused', message)
    : temporary('mail_failed', message);
}
