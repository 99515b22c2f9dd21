import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { auditEvents } from '../../db/schema/index.ts';
import { deliveringService } from '../support/deliveries.ts';
import { connectionId } from '../support/firings.ts';
import { uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';
import { verifySignature, webhookReceiver } from '../support/webhook-receiver.ts';

const receiver = webhookReceiver();
const { deps, call, trigger, emitEvent, evaluate, failed, settled, casesOf, eventsOf } = await deliveringService({
  EGRESS_ALLOW: [receiver.allow],
  SECRET_REFERENCES: ['env:TEST_HOOK_'],
});

describe('call_webhook', () => {
  const SECRET = `whsec_${Buffer.from('a secret of 24 bytes or more').toString('base64')}`;
  const hook = (path: string, rest: object = {}) => ({
    actions: [{ type: 'call_webhook', url: `${receiver.url}${path}`, secret: SECRET, ...rest }],
  });

  test('has event, trigger, case and payload, signed as in Standard Webhooks, under its delivery id', async () => {
    const created = await trigger(hook('/signed', { headers: { 'x-mine': 'yes' } }));
    const connection_id = connectionId();
    await emitEvent('connection_failed', { connection_id });
    await evaluate();
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, error: null, reason: 'opened' });
    const [received] = receiver.to('/signed');
    const [found] = await casesOf(created);
    expect(verifySignature(received!, SECRET)).toMatchObject({
      id: delivery?.id,
      reason: 'opened',
      event: 'connection_failed',
      trigger: { id: created.id, name: created.name, severity: 'warning' },
      case: { number: found?.number, status: 'open', url: `https://pipelines.example.test/cases/${found?.id}` },
      payload: { connection_name: 'Orders', event: 'connection_failed', rows_loaded_zscore: null },
    });
    const headers = Object.fromEntries(received!.headers);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-mine': 'yes',
      'x-delivery-id': delivery!.id,
      'webhook-id': delivery!.id,
    });
    expect(Number(headers['webhook-timestamp']) * 1000).toBeGreaterThan(Date.now() - 60_000);
  });

  test('is signed with the new key when the secret changes', async () => {
    const created = await trigger(hook('/raw', { secret: 'any text of some length' }));
    await failed(created);
    await settled(created);
    const [received] = receiver.to('/raw');
    expect(() => verifySignature(received!, SECRET)).toThrow();
    expect(verifySignature(received!, 'any text of some length')).toMatchObject({ event: 'connection_failed' });
  });

  test('is in the audit log before each attempt that sends secrets', async () => {
    const recorded: unknown[][] = [];
    const usesOf = (id: string) => deps.db.select().from(auditEvents).where(eq(auditEvents.resource_id, id));
    let id = '';
    receiver.answer = async (_, path) => {
      if (path !== '/recorded') return new Response();
      recorded.push((await usesOf(id)).filter(({ kind }) => kind === 'secret_use'));
      return new Response(null, { status: recorded.length === 1 ? 500 : 200 });
    };
    const created = await trigger(hook('/recorded'));
    id = created.id;
    await failed(created);
    const [delivery] = await settled(created);
    const open = await trigger(hook('/open', { secret: null }));
    await failed(open);
    await settled(open);
    expect(recorded.map((uses) => uses.length)).toEqual([1, 2]);
    expect(recorded[0]).toMatchObject([
      {
        action: 'call_webhook',
        actor_type: 'automation',
        resource_type: 'trigger',
        resource_name: created.name,
        details: { host: new URL(receiver.url).host, delivery_id: delivery!.id },
      },
    ]);
    expect((await usesOf(open.id)).filter(({ kind }) => kind === 'secret_use')).toEqual([]);
  });

  test('reads secrets by reference at each attempt, as uses in the audit log', async () => {
    receiver.answer = () => new Response();
    process.env.TEST_HOOK_TOKEN = 'Bearer of-the-environment';
    process.env.TEST_HOOK_SECRET = SECRET;
    const by = { secret: 'env:TEST_HOOK_SECRET', headers: { authorization: 'env:TEST_HOOK_TOKEN', 'x-mine': 'yes' } };
    const created = await trigger(hook('/referred', by));
    await failed(created);
    await settled(created);
    const [received] = receiver.to('/referred');
    expect(verifySignature(received!, SECRET)).toMatchObject({ event: 'connection_failed' });
    const headers = Object.fromEntries(received!.headers);
    expect([headers.authorization, headers['x-mine']]).toEqual(['Bearer of-the-environment', 'yes']);
    const uses = await deps.db.select().from(auditEvents).where(eq(auditEvents.resource_id, created.id));
    const hosts = uses.filter(({ kind }) => kind === 'secret_use').map(({ details }) => details?.host);
    expect(hosts).toEqual(['env:TEST_HOOK_SECRET', 'env:TEST_HOOK_TOKEN', new URL(receiver.url).host]);
  });

  test.each([
    ['env:TEST_HOOK_MISSING', 'secret_not_found'],
    ['env:TEST_HOOK_SHORT', 'invalid_secret'],
  ])('fails once with the secret %s: %s', async (secret, code) => {
    process.env.TEST_HOOK_SHORT = 'short';
    const created = await trigger(hook('/never', { secret }));
    await failed(created);
    expect(await settled(created)).toMatchObject([
      { status: 'failed', attempts: 1, error: expect.stringContaining(`${code}: `) },
    ]);
    expect(receiver.to('/never')).toEqual([]);
  });

  test('refuses references that the installation does not allow', async () => {
    const refused = async (rest: object) =>
      (await call('POST', '/automation/triggers', { name: uniqueName('hook'), rule: 'true', ...hook('/no', rest) }))
        .body;
    const code = 'secret_reference_not_allowed';
    expect(await refused({ secret: 'env:SECRET_KEY' })).toMatchObject({ code, field: 'actions.0.secret' });
    expect(await refused({ headers: { 'x-key': 'file:/etc/shadow' } })).toMatchObject({
      code,
      field: 'actions.0.headers',
    });
  });

  test('escapes JSON template values', async () => {
    const template =
      '{"text": "{{ error_message }}", "raw": {{ error_message }}, "none": {{ no_such_name }}, "n": {{ event_count }}}';
    const created = await trigger(hook('/template', { payload_template: template }));
    const nasty = '"}, {"admin": true, \\ \n{{ trigger_id }}';
    await emitEvent('connection_failed', { connection_id: connectionId(), payload: { error_message: nasty } });
    await evaluate();
    await settled(created);
    expect(receiver.to('/template')[0]?.body).toEqual({ text: nasty, raw: nasty, none: null, n: 1 });
  });

  test('is retried under the same id until the receiver accepts it', async () => {
    let calls = 0;
    receiver.answer = (_, path) => new Response(null, { status: path === '/flaky' && (calls += 1) < 4 ? 500 : 200 });
    const created = await trigger(hook('/flaky'));
    await failed(created);
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 4, error: null });
    expect(receiver.to('/flaky').map(({ headers }) => headers.get('x-delivery-id'))).toEqual(
      Array(4).fill(delivery!.id),
    );
  });

  test('fails after 8 attempts, visibly in the case and as an event', async () => {
    receiver.answer = (_, path) => new Response(null, { status: path === '/down' ? 503 : 200 });
    const created = await trigger(hook('/down'));
    const { case_id } = await failed(created);
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({
      status: 'failed',
      attempts: 8,
      error: 'refused: The receiver responded with status 503',
    });
    expect(receiver.to('/down')).toHaveLength(8);
    const emitted = (await eventsOf('action_failed')).filter(({ payload }) => payload.trigger_id === created.id);
    expect(emitted).toMatchObject([{ causation_depth: 1, payload: { action_type: 'call_webhook', case_id } }]);
    const { body } = await call('GET', `/automation/cases/${case_id}`);
    expect(body.timeline.map(({ type }: { type: string }) => type)).toEqual(['opened', 'action_failed']);
  });

  test.each([
    [302, 'redirected'],
    [410, 'gone'],
  ])('fails at once at status %d', async (status, code) => {
    receiver.answer = () => new Response(null, { status, headers: { location: `${receiver.url}/elsewhere` } });
    const created = await trigger(hook(`/status-${status}`));
    await failed(created);
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({ status: 'failed', attempts: 1 });
    expect(delivery?.error).toStartWith(`${code}:`);
    expect(receiver.to('/elsewhere')).toEqual([]);
    receiver.answer = () => new Response(null, { status: 204 });
  });

  test.each([
    ['http://127.0.0.1:1/', 'plain http inside'],
    ['https://127.0.0.1:1/', 'loopback'],
    ['https://169.254.169.254/latest/meta-data', 'link-local'],
    ['https://10.0.0.1/', 'private'],
    ['https://[::1]/', 'loopback of IPv6'],
    ['https://[::ffff:127.0.0.1]/', 'mapped'],
    ['https://0177.0.0.1/', 'octal'],
    ['https://2130706433/', 'a number'],
  ])('is refused on save: %s (%s)', async (url) => {
    const body = {
      name: uniqueName('trigger'),
      rule: 'event == "connection_failed"',
      actions: [{ type: 'call_webhook', url }],
    };
    const answer = await call('POST', '/automation/triggers', body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'address_not_allowed', field: 'actions.0.url' });
  });

  test('is refused when its name resolves to an internal address only later', async () => {
    const created = await trigger(hook('/', { url: 'https://localhost:1/' }));
    await failed(created);
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({ status: 'failed', attempts: 1 });
    expect(delivery?.error).toStartWith('address_not_allowed');
  });

  test('of a deleted trigger is canceled', async () => {
    let release = () => {};
    const held = new Promise<void>((done) => {
      release = done;
    });
    receiver.answer = async (_, path) => {
      if (path === '/held') await held;
      return new Response(null, { status: path === '/held' ? 500 : 204 });
    };
    const created = await trigger(hook('/held'));
    await failed(created);
    await until(() => receiver.to('/held').length > 0);
    expect((await call('DELETE', `/automation/triggers/${created.id}`)).status).toBe(204);
    release();
    expect(await settled(created)).toMatchObject([{ status: 'cancelled' }]);
    receiver.answer = () => new Response(null, { status: 204 });
  });
});
