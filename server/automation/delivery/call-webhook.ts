import { Webhook } from 'standardwebhooks';
import { auditEvents } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';
import { ConfigurationError, RetryableError } from '../../connectors/contract/errors.ts';
import { resolveReferences } from '../../connector-runtime/references/resolve-references.ts';
import { type ActionOf, WebhookSecrets } from '../triggers/action-schema.ts';
import { renderTemplate } from '../render-template.ts';
import { openActions } from '../triggers/action-secrets.ts';
import { eventPayload } from '../../events/variables.ts';
import { guardedFetch } from '../../platform/net/guarded-fetch.ts';
import { EgressError } from '../../platform/net/egress-rules.ts';
import { permanent, postponed, temporary } from './delivery-error.ts';
import { caseUrl, type Message, templateValues } from './template-values.ts';

const TIMEOUT_MS = 10_000;
const MAX_PAUSE_SECONDS = 3600;

/**
 * Calls a webhook, signed according to Standard Webhooks if the action has a secret. `webhook-id` and `X-Delivery-Id` are
 * the delivery's id at every attempt. 2xx is success; redirects are not followed.
 * @throws DeliveryError
 */
export async function callWebhook(
  deps: Deps,
  { job, action, signal }: { job: Message; action: ActionOf<'call_webhook'>; signal: AbortSignal },
): Promise<void> {
  const { delivery, trigger } = job;
  const opened = openActions(deps.secrets, trigger)[delivery.action_index] as typeof action;
  const { url } = opened;
  const body = bodyOf(deps, job, action.payload_template);
  const { secret, headers: own } = await readSecrets(deps, job, opened);
  const headers = { ...own, ...signed({ id: delivery.id, body, secret, at: deps.now() }) };
  // What is stored of an action with secrets is masked.
  if (!Bun.deepEquals(opened, action)) await recordUse(deps, job, new URL(url).host);
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const send = guardedFetch(deps.egress);
  let response: Response;
  try {
    response = await send(url, { method: 'POST', headers, body, signal: AbortSignal.any([signal, late]) });
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) throw temporary('timeout', `No response within ${TIMEOUT_MS / 1000} s`);
    if (error instanceof EgressError) {
      throw error.code === 'host_not_found'
        ? temporary(error.code, error.message)
        : permanent(error.code, error.message);
    }
    throw temporary('unreachable', `The webhook URL cannot be reached (${codeOf(error)})`);
  }
  await response.body?.cancel();
  requireSuccess(response, deps.now());
}

/** The secrets of a webhook, those by reference included. @throws DeliveryError */
async function readSecrets(
  deps: Deps,
  job: Message,
  { secret, headers }: ActionOf<'call_webhook'>,
): Promise<WebhookSecrets> {
  const { account_id } = job.trigger;
  const reach = (reference: string) => recordUse(deps, job, reference);
  try {
    const { value, read } = await resolveReferences(deps, { account_id, value: { secret, headers }, reach });
    if (read.length === 0) return value;
    const parsed = WebhookSecrets.safeParse(value);
    if (parsed.success) return parsed.data;
    const [{ message, path } = { message: '', path: [] }] = parsed.error.issues;
    throw permanent('invalid_secret', `The value of ${path.join('.')} cannot be sent: ${message}`);
  } catch (error) {
    if (error instanceof RetryableError) throw temporary(error.code, error.message);
    if (error instanceof ConfigurationError) throw permanent(error.code, error.message);
    throw error;
  }
}

/** Each attempt is in the audit log before its secrets are read by reference, and before they are sent. */
async function recordUse(deps: Deps, { trigger, delivery, event }: Message, host: string): Promise<void> {
  const { connection_run_id } = event;
  await deps.db.insert(auditEvents).values({
    account_id: trigger.account_id,
    kind: 'secret_use',
    action: 'call_webhook',
    actor_type: 'automation',
    resource_type: 'trigger',
    resource_id: trigger.id,
    resource_name: trigger.name,
    details: { host, delivery_id: delivery.id, ...(connection_run_id && { connection_run_id }) },
  });
}

function requireSuccess({ status, headers }: Response, now: Date): void {
  if (status >= 200 && status < 300) return;
  const message = `The receiver responded with status ${status}`;
  if (status >= 300 && status < 400) throw permanent('redirected', `${message}; redirects are not followed`);
  if (status === 410) throw permanent('gone', `${message}: it no longer accepts calls`);
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  if ((status === 429 || status === 503) && seconds > 0) {
    throw postponed(new Date(now.getTime() + Math.min(seconds, MAX_PAUSE_SECONDS) * 1000), message);
  }
  throw temporary('refused', message);
}

const codeOf = (error: unknown) =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'connection failed';

function signed(message: { id: string; body: string; secret: string | null; at: Date }): Record<string, string> {
  const { id, body, secret, at } = message;
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'data-pipelines',
    'x-delivery-id': id,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
  };
  if (secret === null) return headers;
  const signer = secret.startsWith('whsec_') ? new Webhook(secret) : new Webhook(secret, { format: 'raw' });
  return { ...headers, 'webhook-signature': signer.sign(id, at, body) };
}

function bodyOf(deps: Deps, job: Message, template: string | null): string {
  const { delivery, trigger, event, case: row } = job;
  const publicUrl = deps.config.PUBLIC_URL;
  if (template !== null) return renderTemplate(template, templateValues(job, publicUrl), 'json');
  return JSON.stringify({
    id: delivery.id,
    reason: delivery.reason,
    event: event.event,
    event_id: event.id,
    occurred_at: event.occurred_at,
    summary: event.summary,
    trigger: { id: trigger.id, name: trigger.name, severity: trigger.severity },
    case: row && {
      id: row.id,
      number: row.number,
      title: row.title,
      status: row.status,
      severity: row.severity,
      group: row.group,
      event_count: row.event_count,
      url: caseUrl(row, publicUrl),
    },
    payload: eventPayload(event),
  });
}
