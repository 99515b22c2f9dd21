import { z } from 'zod';
import type { ChatChannel, ChatMessage } from '../contract/chat.ts';
import { type CheckResult, type ConnectorContext, defineDestination } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { callSlack, type SlackSettings } from './client.ts';

const PAGE_SIZE = 1000;
/** A longer list is of no use for choosing a channel. */
const MAX_PAGES = 20;

const SlackConfig = z.object({
  bot_token: z
    .string()
    .min(1)
    .max(500)
    .regex(/^[\x21-\x7e]+$/, 'A token contains no spaces')
    .meta({
      label: 'Bot token',
      description: 'Of a Slack app with the scopes chat:write, channels:read and groups:read',
      placeholder: 'xoxb-…',
      secret: true,
      group: 'authentication',
      validates_remotely: true,
    }),
  api_url: z
    .string()
    .max(500)
    .regex(/^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|\/))/, 'Must be an https:// URL')
    .default('https://slack.com/api/')
    .meta({
      label: 'API URL',
      directs_secrets: true,
      keyed_address: true,
      description: 'For another server that implements the Web API',
      group: 'advanced',
      validates_remotely: true,
    }),
});

type Context = ConnectorContext<SlackSettings>;

export const slackDestination = defineDestination<SlackSettings>({
  type: 'destination',
  name: 'slack',
  display_name: 'Slack',
  description: 'Trigger notifications in channels, one thread per case',
  category: 'chat',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['api_key'],
  documentation_url: 'https://docs.slack.dev/apis/web-api/',
  supported_destination_sync_modes: [],
  config: SlackConfig,
  check,
  channels,
  postMessage,
  open: () =>
    Promise.reject(
      new ConfigurationError(
        'not_for_rows',
        'Slack receives trigger notifications. It cannot be the destination of a connection.',
      ),
    ),
});

async function check(ctx: Context): Promise<CheckResult> {
  const { team, user } = await callSlack(ctx, (client) => client.auth.test());
  return {
    checks: [{ title: 'Sign-in', status: 'passed', message: `${user ?? 'App'} in ${team ?? 'the workspace'}` }],
  };
}

async function channels(ctx: Context): Promise<ChatChannel[]> {
  const found: ChatChannel[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const response = await callSlack(ctx, (client) =>
      client.conversations.list({ types: 'public_channel,private_channel', limit: PAGE_SIZE, cursor }),
    );
    for (const channel of response.channels ?? []) {
      if (channel.id === undefined) continue;
      found.push({
        id: channel.id,
        name: channel.name ?? channel.id,
        is_private: channel.is_private ?? false,
        is_member: channel.is_member ?? false,
        is_archived: channel.is_archived ?? false,
        member_count: channel.num_members ?? null,
      });
    }
    cursor = response.response_metadata?.next_cursor;
    if (!cursor) return found;
  }
  ctx.log.warn('the list of channels is incomplete', { channels: found.length });
  return found;
}

async function postMessage(ctx: Context, message: ChatMessage): Promise<{ thread: string }> {
  const { channel_id, text, thread, delivery_id } = message;
  const response = await callSlack(ctx, ({ chat: { postMessage: post } }) =>
    post({
      channel: channel_id,
      text,
      ...(thread !== null && { thread_ts: thread }),
      // The id stays the same when a message is sent again after a lost response.
      metadata: { event_type: 'delivery', event_payload: { delivery_id } },
      unfurl_links: false,
      unfurl_media: false,
    }),
  );
  return { thread: thread ?? response.ts ?? '' };
}
