import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';
import { rateLimited, refused, SLACK_TOKEN, slackChannel, slackServer } from '../support/slack-server.ts';

const slack = slackServer();
slack.channels = ['zebra', 'alpha', 'mid', 'beta', 'yak'].map((name, at) => slackChannel(`C${at}`, name));
slack.channels.push(slackChannel('P1', 'hidden', { is_private: true, is_member: false, is_archived: true }));

let now = Date.now();
const service = await testDeps({ config: { EGRESS_ALLOW: [slack.allow] } });
const { deps } = service;
deps.now = () => new Date(now);
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const connector = (bot_token = SLACK_TOKEN) =>
  make.connector('destination', 'slack', { bot_token, api_url: slack.api_url });
const channels = (id: string, as = call) => as('GET', `/automation/chat_channels/${id}`);
const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const lists = () => slack.calls.filter((method) => method === 'conversations.list').length;

describe('GET /automation/chat_channels/{account_connector_id}', () => {
  test('200: channels of all pages, by name', async () => {
    const { id, status } = await connector();
    expect(status).toBe('active');
    const answer = await channels(id);
    expect(answer.status).toBe(200);
    expect(answer.body.map(({ name }: { name: string }) => name)).toEqual([
      'alpha',
      'beta',
      'hidden',
      'mid',
      'yak',
      'zebra',
    ]);
    expect(answer.body[2]).toEqual({
      id: 'P1',
      name: 'hidden',
      is_private: true,
      is_member: false,
      is_archived: true,
      member_count: 3,
    });
  });

  test('200: cached for 60 s, with one upstream request for parallel calls', async () => {
    const { id } = await connector();
    const before = lists();
    const answers = await Promise.all(Array.from({ length: 10 }, () => channels(id)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(lists() - before).toBe(2);
    now += 59_000;
    await channels(id);
    expect(lists() - before).toBe(2);
    now += 2000;
    await channels(id);
    expect(lists() - before).toBe(4);
  });

  test('200: an update of the connector clears the cache', async () => {
    const { id } = await connector();
    await channels(id);
    const before = lists();
    expect((await call('POST', `/account_connectors/${id}`, { name: `renamed ${id}` })).status).toBe(200);
    await channels(id);
    expect(lists() - before).toBe(2);
  });

  test('200: waits once after a 429', async () => {
    const { id } = await connector();
    slack.next('conversations.list', rateLimited(1));
    expect((await channels(id)).status).toBe(200);
  });

  test('400: not_a_chat_connector', async () => {
    for (const { id } of [await make.destination(), await make.source()]) {
      expect(await channels(id)).toMatchObject({ status: 400, body: { code: 'not_a_chat_connector' } });
    }
  });

  test('400: account_connector_not_ready', async () => {
    const { id, status } = await connector('xoxb-wrong');
    expect(status).not.toBe('active');
    expect(await channels(id)).toMatchObject({ status: 400, body: { code: 'account_connector_not_ready', status } });
  });

  test('400: upstream_error is not cached and contains no secret', async () => {
    const { id } = await connector();
    slack.next('conversations.list', refused('token_revoked'));
    const answer = await channels(id);
    expect(answer).toMatchObject({ status: 400, body: { code: 'upstream_error', upstream_code: 'token_revoked' } });
    expect(JSON.stringify(answer.body)).not.toContain(SLACK_TOKEN);
    expect((await channels(id)).status).toBe(200);
  });

  test('400: upstream_error after a second 429', async () => {
    const { id } = await connector();
    slack.next('conversations.list', rateLimited(1), rateLimited(60));
    expect(await channels(id)).toMatchObject({
      status: 400,
      body: { code: 'upstream_error', upstream_code: 'rate_limited' },
    });
  });

  test('401: without a key', async () => {
    expect((await channels(UNKNOWN, anonymous)).status).toBe(401);
  });

  test('404: unknown, malformed, deleted, of another account', async () => {
    const { id } = await connector();
    const other = await api.otherAccount();
    expect((await channels(id, other.call)).status).toBe(404);
    for (const one of [UNKNOWN, 'nonsense']) expect((await channels(one)).status).toBe(404);
    await deps.db
      .update(accountConnectors)
      .set({ deleted_at: new Date().toISOString() })
      .where(eq(accountConnectors.id, id));
    expect((await channels(id)).status).toBe(404);
  });
});
