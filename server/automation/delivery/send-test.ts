import type { EventRow, TriggerRow } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';
import { SYSTEM_ACTOR } from '../../events/emit.ts';
import { EVENT_KINDS, type EventKind } from '../../events/kinds.ts';
import { isEventKind } from '../../events/variables.ts';
import { sampleFacts } from '../rules/sample-facts.ts';
import type { ActionOf, TriggerAction } from '../triggers/action-schema.ts';
import { callWebhook } from './call-webhook.ts';
import { DeliveryError } from './delivery-error.ts';
import { liveRecipients } from './recipients.ts';
import { sendChatMessage } from './send-chat-message.ts';
import { sendEmail } from './send-email.ts';
import type { Message } from './template-values.ts';

/** What became of a test message. */
export interface TestedAction {
  type: TriggerAction['type'];
  is_sent: boolean;
  /** Why it was not sent, or a remark of the receiver. */
  error: { code: string; message: string } | null;
}

/** A trigger whose actions are tried; it need not be stored. */
export type TestedTrigger = Message['trigger'] & Pick<TriggerRow, 'matched_kinds'>;

/**
 * Sends one notification of the trigger at once, with the values of an invented event. Nothing is stored, nothing is
 * retried, and quiet hours do not apply.
 */
export async function sendTest(
  deps: Deps,
  { trigger, action_index, signal }: { trigger: TestedTrigger; action_index: number; signal: AbortSignal },
): Promise<TestedAction> {
  const action = trigger.actions[action_index] as TriggerAction;
  const delivery = { id: Bun.randomUUIDv7(), action_index, reason: 'test' as const };
  const job: Message = { delivery, trigger, event: inventedEvent(deps, trigger), case: null, more_events: 0 };
  const { type } = action;
  try {
    let remark: string | null = null;
    if (action.type === 'call_webhook') await callWebhook(deps, { job, action, signal });
    else if (action.type === 'send_email')
      remark = await sendEmail(deps, { job, action, to: await addressesOf(deps, trigger, action) });
    else if (action.type === 'send_chat_message') await sendChatMessage(deps, { job, action, signal });
    return { type, is_sent: true, error: remark === null ? null : { code: 'partly_rejected', message: remark } };
  } catch (error) {
    if (!(error instanceof DeliveryError)) throw error;
    return { type, is_sent: false, error: { code: error.code, message: error.message } };
  }
}

async function addressesOf(deps: Deps, { account_id }: TestedTrigger, { recipients }: ActionOf<'send_email'>) {
  return (await liveRecipients(deps, account_id, recipients)).map(({ email }) => email);
}

function inventedEvent(deps: Deps, { account_id, matched_kinds }: TestedTrigger): EventRow {
  const event: EventKind = matched_kinds?.find(isEventKind) ?? 'connection_failed';
  const { connection_id: _id, connection_run_id: _run, ...payload } = sampleFacts(event);
  const none = { connection_id: null, connection_run_id: null, stream_run_id: null, account_connector_id: null };
  return {
    id: Bun.randomUUIDv7(),
    account_id,
    event,
    ...EVENT_KINDS[event],
    occurred_at: deps.now().toISOString(),
    actor: SYSTEM_ACTOR,
    resource: { type: 'account', id: account_id, name: null },
    ...none,
    user_id: null,
    summary: 'A test message. Nothing has happened',
    payload,
    processing_status: 'processed',
    causation_depth: 0,
    matched_trigger_ids: [],
    case_ids: [],
    evaluation_attempts: 0,
  };
}
