import { setTimeout as sleep } from 'node:timers/promises';
import { and, eq, isNull, sql } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors, cases } from '../../../db/schema/index.ts';
import { ConnectorError, RateLimitedError } from '../../connectors/contract/errors.ts';
import type { Deps } from '../../deps.ts';
import type { ActionOf } from '../triggers/action-schema.ts';
import { renderTemplate } from '../render-template.ts';
import { withConnector } from '../../connector-runtime/account-connector-calls.ts';
import { permanent, postponed, temporary } from './delivery-error.ts';
import { type Message, prefixOf, templateValues } from './template-values.ts';

type Action = ActionOf<'send_chat_message'>;

const TIMEOUT_MS = 20_000;
const USE = { purpose: 'chat_message' as const, actor: { type: 'automation' as const, id: null } };
/** Shorter waits for the channel happen in the job; for longer ones it is postponed. */
const MAX_WAIT_SECONDS = 2;
const POSTPONE_JITTER_MS = 2000;

/**
 * Posts a message, in the thread of its case if there is one. Returns the new thread and its key, if the message began
 * one, for the transaction that marks the delivery as delivered.
 * @throws DeliveryError
 */
export async function sendChatMessage(
  deps: Deps,
  { job, action, signal }: { job: Message; action: Action; signal: AbortSignal },
): Promise<{ key: string; thread: string } | null> {
  const connector = await chatConnector(deps, job.trigger.account_id, action.account_connector_id);
  await waitForChannel(deps, { action, signal });
  const key = `${action.account_connector_id} ${action.channel_id}`;
  const threaded = action.thread_by_case && job.case !== null;
  const message = {
    channel_id: action.channel_id,
    text: textOf(deps, job, action),
    thread: threaded ? (job.case?.chat_threads[key] ?? null) : null,
    delivery_id: job.delivery.id,
  };
  try {
    const posted = await withConnector(
      deps,
      connector,
      { ms: TIMEOUT_MS, use: USE },
      async ({ connector: chat, ctx }) => {
        if (chat.type !== 'destination' || !chat.postMessage)
          throw permanent('not_a_chat_connector', 'The connector has no channels');
        return chat.postMessage(ctx, message);
      },
    );
    return threaded && message.thread === null && posted.thread !== '' ? { key, thread: posted.thread } : null;
  } catch (error) {
    signal.throwIfAborted();
    throw translate(error);
  }
}

function textOf(deps: Deps, job: Message, action: Action): string {
  const values = templateValues(job, deps.config.PUBLIC_URL);
  const text = prefixOf(job) + renderTemplate(action.message_template, values, 'mrkdwn');
  const { reason } = job.delivery;
  const begins = reason === 'opened' || reason === 'reopened';
  const link = begins && job.case ? `\n<${String(values.case_url)}|Case #${job.case.number}>` : '';
  return text + link;
}

/** Stored in the transaction that marks the delivery as delivered. The first message of a case wins. */
export const rememberThread = (case_id: string, { key, thread }: { key: string; thread: string }) => ({
  where: eq(cases.id, case_id),
  set: { chat_threads: sql`${JSON.stringify({ [key]: thread })}::jsonb || ${cases.chat_threads}` },
});

async function chatConnector(deps: Deps, account_id: string, id: string): Promise<AccountConnectorRow> {
  const [row] = await deps.db
    .select()
    .from(accountConnectors)
    .where(
      and(
        eq(accountConnectors.id, id),
        eq(accountConnectors.account_id, account_id),
        isNull(accountConnectors.deleted_at),
      ),
    );
  if (!row) throw permanent('account_connector_gone', 'The chat connector was deleted');
  if (row.status === 'disabled') throw permanent('account_connector_not_ready', 'The chat connector is disabled');
  return row;
}

/** Limits each channel to one message per second across all processes. @throws DeliveryError when the wait is long */
async function waitForChannel(deps: Deps, { action, signal }: { action: Action; signal: AbortSignal }): Promise<void> {
  const { account_connector_id, channel_id } = action;
  const [slot] = await deps.db.execute<{ wait_ms: number }>(sql`
    insert into chat_channel_slots as s (account_connector_id, channel_id, next_at)
    values (${account_connector_id}, ${channel_id}, clock_timestamp() + interval '1 second')
    on conflict (account_connector_id, channel_id) do update
      set next_at = greatest(s.next_at, clock_timestamp()) + interval '1 second'
      where s.next_at < clock_timestamp() + make_interval(secs => ${MAX_WAIT_SECONDS})
    returning (extract(epoch from next_at - clock_timestamp()) * 1000 - 1000)::float8 as wait_ms`);
  if (!slot) {
    const until = new Date(deps.now().getTime() + 1000 + Math.random() * POSTPONE_JITTER_MS);
    throw postponed(until, 'Other messages to the channel are waiting');
  }
  if (slot.wait_ms > 0) await sleep(slot.wait_ms, undefined, { signal });
}

function translate(error: unknown): unknown {
  if (error instanceof RateLimitedError) return postponed(error.until, error.message);
  if (!(error instanceof ConnectorError)) return error;
  return error.retryable ? temporary(error.code, error.message) : permanent(error.code, error.message);
}
