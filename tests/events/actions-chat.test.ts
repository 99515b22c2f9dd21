import { describe, expect, test } from 'bun:test';
import { deliverActionJob } from '../../server/automation/delivery/deliver.ts';
import { deliveringService } from '../support/deliveries.ts';
import { connectionId } from '../support/firings.ts';
import { uniqueName } from '../support/resources.ts';
import { rateLimited, refused, SLACK_TOKEN, slackChannel, slackServer } from '../support/slack-server.ts';

const slack = slackServer();
slack.channels = [
  slackChannel('C1', 'alerts'),
  slackChannel('C2', 'others'),
  slackChannel('C3', 'slow'),
  slackChannel('C4', 'slower'),
];
const { deps, call, make, trigger, event, fire, emitEvent, evaluate, failed, settled, casesOf, deliveriesOf } =
  await deliveringService({ EGRESS_ALLOW: [slack.allow] });
const chat = await make.connector('destination', 'slack', { bot_token: SLACK_TOKEN, api_url: slack.api_url });

describe('send_chat_message', () => {
  const action = (channel_id: string, rest: object = {}) => ({
    actions: [
      {
        type: 'send_chat_message',
        account_connector_id: chat.id,
        channel_id,
        message_template: '{{ connection_name }}: {{ error_message }}',
        ...rest,
      },
    ],
  });
  const messagesIn = (channel: string) => slack.messages.filter((one) => one.channel === channel);

  test('posts one thread per case with a link to the case, and replies in it', async () => {
    const created = await trigger({ ...action('C1'), case: { notify_every: 1, notify_on_resolve: true } });
    const connection_id = connectionId();
    for (let count = 0; count < 3; count += 1) {
      await emitEvent('connection_failed', { connection_id });
      await evaluate();
    }
    await emitEvent('connection_succeeded', { connection_id });
    await evaluate();
    const all = await settled(created, 4);
    expect(all.map(({ status, reason }) => [status, reason])).toEqual([
      ['delivered', 'opened'],
      ['delivered', 'repeated'],
      ['delivered', 'repeated'],
      ['delivered', 'resolved'],
    ]);
    const [first, ...rest] = messagesIn('C1');
    const [found] = await casesOf(created);
    expect(first).toMatchObject({ thread_ts: null, delivery_id: all[0]!.id });
    expect(first?.text).toBe(
      `Orders: The source is down\n<https://pipelines.example.test/cases/${found?.id}|Case #${found?.number}>`,
    );
    expect(rest.map(({ thread_ts }) => thread_ts)).toEqual(Array(3).fill(first!.ts));
    expect(rest.at(-1)?.text).toStartWith('Resolved: ');
  });

  test('waits until its thread exists, however slow that is', async () => {
    slack.next('chat.postMessage', () => Bun.sleep(2500).then(() => null));
    const created = await trigger({ ...action('C4'), case: { notify_every: 1 } });
    const group = { connection_id: connectionId() };
    for (let count = 0; count < 3; count += 1) {
      await fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    }
    const all = await settled(created, 3);
    const sent = messagesIn('C4');
    expect(sent.map(({ delivery_id }) => delivery_id)).toEqual(all.map(({ id }) => id));
    expect(sent.map(({ thread_ts }) => thread_ts)).toEqual([null, sent[0]!.ts, sent[0]!.ts]);
  });

  test('sends at most one message a second to each channel', async () => {
    const created = await trigger(action('C3'));
    await Promise.all(Array.from({ length: 4 }, () => failed(created, { connection_id: connectionId() })));
    await settled(created, 4);
    const times = messagesIn('C3').map(({ at }) => at);
    expect(times).toHaveLength(4);
    expect(times.at(-1)! - times[0]!).toBeGreaterThanOrEqual(2900);
  });

  test('escapes values, so that no value becomes a mention', async () => {
    const created = await trigger(action('C2'));
    await emitEvent('connection_failed', {
      connection_id: connectionId(),
      payload: { error_message: '<!channel> & <@U1>' },
    });
    await evaluate();
    await settled(created);
    expect(messagesIn('C2').at(-1)?.text).toStartWith('Orders: &lt;!channel&gt; &amp; &lt;@U1&gt;');
  });

  test('waits as long as the server asks, without using up an attempt', async () => {
    slack.next('chat.postMessage', rateLimited(1), rateLimited(1));
    const created = await trigger(action('C2'));
    await failed(created);
    expect(await settled(created)).toMatchObject([{ status: 'delivered', attempts: 1 }]);
  });

  test('fails with the reason in a channel where posting is not allowed', async () => {
    slack.next('chat.postMessage', refused('not_in_channel'));
    const created = await trigger(action('C2'));
    await failed(created);
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({ status: 'failed', attempts: 1 });
    expect(delivery?.error).toBe('not_in_channel: The app is not in the channel. Invite it first.');
  });

  test('sends a summary instead of more than five messages in ten minutes', async () => {
    const created = await trigger({ ...action('C2'), case: { notify_every: 1 } });
    const group = { connection_id: connectionId() };
    for (let count = 0; count < 18; count += 1) {
      await fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    }
    const all = await deliveriesOf(created);
    expect(all.filter(({ status }) => status === 'suppressed')).toHaveLength(12);
    const summary = all.find(({ reason }) => reason === 'summary')!;
    expect(Date.parse(summary.next_attempt_at ?? '') - Date.parse(all[0]!.created_at)).toBe(600_000);
    await settled(created, 17);
    await deliverActionJob(deps, summary.id, new AbortController().signal);
    expect(messagesIn('C2').at(-1)?.text).toStartWith('+13 more: Orders');
  });

  test.each([
    ['C9', 'unknown_channel', 'actions.0.channel_id'],
    ['C1', 'invalid_reference', 'actions.0.account_connector_id'],
  ])('400: channel %s: %s', async (channel, code, field) => {
    const account_connector_id = code === 'unknown_channel' ? chat.id : (await make.destination()).id;
    const body = {
      name: uniqueName('trigger'),
      rule: 'event == "connection_failed"',
      ...action(channel, { account_connector_id }),
    };
    const answer = await call('POST', '/automation/triggers', body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code, field });
  });
});
