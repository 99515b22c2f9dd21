import { createHmac } from 'node:crypto';
import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { Webhook } from 'standardwebhooks';
import { accountConnectors, webhookEvents, webhookInboxes } from '../../db/schema/index.ts';
import { inboxOf } from '../../server/connector-runtime/inbox/read-events.ts';
import { releaseWebhookEvents } from '../../server/connector-runtime/inbox/release-events.ts';
import { createApp } from '../../server/http/app.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker' });
const { deps } = service;
const api = testApi(service);
const { call } = api;
const make = makerOf(call);
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(deps);
afterAll(async () => {
  await worker.stop();
  await sql.end();
  await database.drop();
});
// Two processes of the API share the control database and nothing else.
const apps = [createApp(deps), createApp(deps)];

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
type Sent = { body: string; headers?: Record<string, string> };

async function send(address: string, { body, headers }: Sent, app = 0) {
  const url = `http://localhost${new URL(address).pathname}`;
  const response = await apps[app]!.handle(
    new Request(url, {
      method: 'POST',
      body,
      headers: { 'content-length': String(Buffer.byteLength(body)), ...headers },
    }),
  );
  const text = await response.text();
  return { status: response.status, text, headers: response.headers, body: JSON.parse(text) };
}

async function makeInbox(parameters: Record<string, unknown>) {
  const { id } = await make.connector('source', 'webhook', parameters);
  const path = `/account_connectors/${id}/webhook`;
  const { body } = await call('GET', path);
  return { id: id as string, path, address: body.address as string };
}

const seconds = (ago = 0) => Math.floor(Date.now() / 1000) - ago;
const hmac = (text: string, secret = SECRET) => createHmac('sha256', secret).update(text);
const standard = (body: string, at: number, secret = SECRET) => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(at),
  'webhook-signature': `v1,AAAA ${new Webhook(secret).sign('msg_1', new Date(at * 1000), body)}`,
});
/** Headers of a body as each sender signs it. Null: the signature has no time. */
const SIGNED: Record<string, (body: string, at: number, secret?: string) => Record<string, string>> = {
  secret_header: (_body, _at, secret = SECRET) => ({ 'x-webhook-secret': secret }),
  github: (body, _at, secret) => ({
    'x-hub-signature-256': `sha256=${hmac(body, secret).digest('hex')}`,
    'x-github-delivery': '72d3162e',
    'x-github-event': 'push',
  }),
  shopify: (body, _at, secret) => ({
    'x-shopify-hmac-sha256': hmac(body, secret).digest('base64'),
    'x-shopify-webhook-id': 'b54557e4',
    'x-shopify-topic': 'orders/create',
  }),
  stripe: (body, at, secret) => ({
    'stripe-signature': `t=${at},v1=${'0'.repeat(64)},v1=${hmac(`${at}.${body}`, secret).digest('hex')},v0=x`,
  }),
  standard_webhooks: standard,
};
const TIMED = ['stripe', 'standard_webhooks'];

describe('signatures', () => {
  test('standard_webhooks: a secret that is no key verifies nothing, least of all the signature of an empty key', async () => {
    const { address } = await makeInbox({
      signature: 'standard_webhooks',
      secret: 'no key',
      previous_secret: 'nor this',
    });
    const [body, at] = ['{}', seconds()];
    const forged = hmac(`msg_1.${at}.${body}`, '').digest('base64');
    const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(at), 'webhook-signature': `v1,${forged}` };
    const answer = await send(address, { body, headers });
    expect([answer.status, answer.body.code]).toEqual([401, 'webhook_signature_refused']);
  });

  for (const [signature, sign] of Object.entries(SIGNED)) {
    test(`${signature}: only what the sender signed is stored, and no response contains the secret`, async () => {
      const previous_secret = 'whsec_cHJldmlvdXMgc2VjcmV0IG9mIHRoZSBzZW5kZXI=';
      const { id, address } = await makeInbox({ signature, secret: SECRET, previous_secret });
      const body = JSON.stringify({ id: 'evt_1', type: 'invoice.paid', text: '☃' });
      const wrong = sign(body, seconds(), 'whsec_d3Jvbmc=');
      const refused = [
        await send(address, { body, headers: wrong }),
        await send(address, { body }),
        ...(signature === 'secret_header'
          ? []
          : [await send(address, { body: `${body} `, headers: sign(body, seconds()) })]),
      ];
      for (const answer of refused) {
        expect([answer.status, answer.body.code]).toEqual([401, 'webhook_signature_refused']);
        expect(answer.text).not.toContain(SECRET.slice(6, 20));
      }
      for (const at of TIMED.includes(signature) ? [seconds(400), seconds(-400)] : []) {
        const late = await send(address, { body, headers: sign(body, at) });
        expect([late.status, late.body.code]).toEqual([401, 'webhook_time_refused']);
      }
      expect((await send(address, { body, headers: sign(body, seconds()) })).body).toEqual({ status: 'stored' });
      const again = await send(address, { body, headers: sign(body, seconds(), previous_secret) });
      expect(again.body).toEqual({ status: signature === 'secret_header' ? 'stored' : 'repeated' });
      const [stored] = await deps.db.select().from(webhookEvents).where(eq(webhookEvents.account_connector_id, id));
      expect(stored).toMatchObject({ body, event_type: signature === 'secret_header' ? null : expect.any(String) });
    });
  }

  test('a new secret counts at once in every process, without a signature the address suffices', async () => {
    const { id, address } = await makeInbox({ signature: 'secret_header', secret: SECRET });
    const headers = { 'x-webhook-secret': SECRET };
    for (const app of [0, 1]) expect((await send(address, { body: '{}', headers }, app)).status).toBe(200);
    await call('POST', `/account_connectors/${id}`, { parameters: { secret: 'another' } });
    for (const app of [0, 1]) expect((await send(address, { body: '{}', headers }, app)).status).toBe(401);
    const open = await makeInbox({ signature: 'none' });
    expect((await send(open.address, { body: '[1]' })).status).toBe(200);
  });
});

test('refusals: each has a status and a code, and nothing is stored', async () => {
  const { id, address } = await makeInbox({
    signature: 'none',
    event_id_path: 'data.id',
    max_events: 2,
    max_body_kilobytes: 1,
  });
  const event = (key: unknown) => JSON.stringify({ data: { id: key } });
  const table: [Sent, number, string][] = [
    [{ body: 'a=b' }, 400, 'webhook_body_invalid'],
    [{ body: '\ufeff{}' }, 400, 'webhook_body_invalid'],
    [{ body: '{"data":{}}' }, 400, 'webhook_id_missing'],
    [{ body: event('x'.repeat(300)) }, 400, 'webhook_id_missing'],
    [{ body: event('x'.repeat(2000)) }, 413, 'body_too_large'],
    [{ body: event(1), headers: { 'content-encoding': 'gzip' } }, 415, 'unsupported_media_type'],
  ];
  for (const [sent, status, code] of table) {
    const answer = await send(address, sent);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  }
  for (const wrong of [address.slice(0, -1), address.replace(id, Bun.randomUUIDv7()), `${address}/x`]) {
    expect((await send(wrong, { body: event(1) })).status).toBe(404);
  }
  // These two differ in digits that a double does not have.
  const big = (digit: number) => `{"data":{"id":1234567890123456789${digit}}}`;
  expect((await send(address, { body: big(1) })).body.status).toBe('stored');
  expect((await send(address, { body: big(2) })).body.status).toBe('stored');
  const full = await send(address, { body: event(3) });
  expect([full.status, full.body.code, full.headers.get('retry-after')]).toEqual([429, 'webhook_inbox_full', '60']);
  expect((await call('GET', `/account_connectors/${id}/webhook`)).body).toMatchObject({
    stored_events: 2,
    received_events: 2,
  });
  const audit = await call('GET', '/audit_log?kind=refusal&limit=50');
  const entry = audit.body.find(({ code }: { code: string }) => code === 'webhook_inbox_full');
  expect(entry).toMatchObject({
    resource: { type: 'account_connector', id },
    action: expect.not.stringContaining(address.slice(-20)),
  });
});

describe('GET /account_connectors/{account_connector_id}/webhook and POST /account_connectors/{account_connector_id}/webhook/rotate', () => {
  test('200: the address before it ends at once or after the overlap; 400: another connector', async () => {
    const { id, path, address } = await makeInbox({ signature: 'none' });
    const kept = await call('POST', `${path}/rotate`, { overlap_hours: 1 });
    expect(kept.body.address).not.toBe(address);
    expect(kept.body.previous_address_until).not.toBeNull();
    for (const one of [address, kept.body.address]) expect((await send(one, { body: '{}' })).status).toBe(200);
    const { body } = await call('POST', `${path}/rotate`, {});
    expect((await send(kept.body.address, { body: '{}' }, 1)).status).toBe(404);
    expect((await send(body.address, { body: '{}' })).status).toBe(200);
    const other = await api.otherAccount();
    expect((await other.call('GET', path)).status).toBe(404);
    const viewer = api.as(await api.keyWith(['connections.run']));
    expect((await viewer('GET', path)).status).toBe(403);
    const demo = await make.source();
    expect((await call('GET', `/account_connectors/${demo.id}/webhook`)).body.code).toBe('not_a_webhook_source');
    await call('DELETE', `/account_connectors/${id}`);
    expect((await send(body.address, { body: '{}' })).status).toBe(404);
  });
});

test('a reader beside two processes that receive at once skips nothing and sees no event twice', async () => {
  const { id, address } = await makeInbox({ signature: 'none', event_id_path: 'n' });
  const inbox = inboxOf(deps, id);
  const read: string[] = [];
  let after = '0';
  const readOn = async () => {
    const { last_position: up_to } = await inbox.standing();
    for (
      let events = await inbox.read({ after, up_to });
      events.length > 0;
      events = await inbox.read({ after, up_to })
    ) {
      read.push(...events.map((one) => one.id));
      after = events.at(-1)!.position;
    }
    after = up_to;
  };
  const state = { isSending: true };
  // Every event goes to both processes, and one of them stores it.
  const sending = Promise.all(
    Array.from({ length: 200 }, (_, n) => send(address, { body: JSON.stringify({ n: n % 100 }) }, n < 100 ? 0 : 1)),
  ).finally(() => (state.isSending = false));
  while (state.isSending) await readOn();
  await readOn();
  const outcomes = (await sending).map(({ body }) => body.status);
  expect(outcomes.filter((one) => one === 'stored').length).toBe(100);
  expect(outcomes.filter((one) => one === 'repeated').length).toBe(100);
  expect(read.length).toBe(100);
  expect(new Set(read).size).toBe(100);
});

test('runs load each event once, by type too; events are deleted once every stream has loaded them', async () => {
  const source = await makeInbox({
    signature: 'none',
    event_id_path: 'id',
    event_type_path: 'type',
    headers: ['X-Topic'],
    streams_by_type: true,
    retention_days: 0,
  });
  const post = (id: number, type: string) =>
    send(source.address, {
      body: ` {"id":${id},"type":"${type}","big":12345678901234567890.10} `,
      headers: { 'x-topic': 't' },
    });
  for (const id of [1, 2, 3]) await post(id, id === 2 ? 'order.paid' : 'order.made');
  const { body: task } = await call('POST', `/account_connectors/${source.id}/discover`);
  await until(async () => (await call('GET', `/tasks/${task}`)).body.status === 'succeeded');
  const destination = await make.connector('destination', 'postgres', postgresParameters(database.url));
  const stream = (name: string, destination_table: string) => ({
    name,
    destination_table,
    sync_mode: 'incremental',
    destination_sync_mode: 'append_dedup',
  });
  const connection = await make.connection({
    source_id: source.id,
    destination_id: destination.id,
    destination_schema: 'public',
    streams: [stream('events', 'all_events'), stream('events_order.paid', 'paid')],
  });
  const stored = async () => {
    await releaseWebhookEvents(deps);
    const [inbox] = await deps.db
      .select()
      .from(webhookInboxes)
      .where(eq(webhookInboxes.account_connector_id, source.id));
    const rows = await deps.db.$count(webhookEvents, eq(webhookEvents.account_connector_id, source.id));
    expect(inbox?.stored_events).toBe(rows);
    return rows;
  };
  const run = async () => {
    await call('POST', `/connections/${connection.id}/run`);
    await until(async () => (await call('GET', `/connections/${connection.id}/runs`)).body[0].finished_at !== null);
    return (await call('GET', `/connections/${connection.id}/runs`)).body[0];
  };
  expect(await stored()).toBe(3);
  expect(await run()).toMatchObject({ status: 'succeeded', rows_loaded: 4 });
  expect(await stored()).toBe(0);
  await post(4, 'order.made');
  await post(5, 'order.paid');
  expect(await stored()).toBe(2);
  expect(await run()).toMatchObject({ status: 'succeeded', rows_loaded: 3 });
  expect(await stored()).toBe(0);
  const rows =
    await sql`select id, type, headers->>'x-topic' as topic, body->>'big' as big from all_events order by id`;
  expect(rows.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5']);
  expect(rows[0]).toEqual({ id: '1', type: 'order.made', topic: 't', big: '12345678901234567890.10' });
  expect((await sql`select id from paid order by id`).map(({ id }) => id)).toEqual(['2', '5']);
  await deps.db.update(accountConnectors).set({ status: 'disabled' }).where(eq(accountConnectors.id, source.id));
  expect((await post(6, 'order.made')).status).toBe(200);
});

test('an event that the destination cannot store is kept aside with the reason, and holds up no other', async () => {
  const source = await makeInbox({ signature: 'none', event_id_path: 'id' });
  const bodies = ['{"id":"good"}', String.raw`{"id":"nul","text":"\u0000"}`, String.raw`{"id":"half","text":"\ud800"}`];
  for (const body of [...bodies, '{"id":"last"}']) expect((await send(source.address, { body })).status).toBe(200);
  const { body: task } = await call('POST', `/account_connectors/${source.id}/discover`);
  await until(async () => (await call('GET', `/tasks/${task}`)).body.status === 'succeeded');
  const destination = await make.connector('destination', 'postgres', postgresParameters(database.url));
  const connection = await make.connection({
    source_id: source.id,
    destination_id: destination.id,
    destination_schema: 'kept_events',
  });
  expect(connection.rejected_rows_policy).toBe('keep');
  await call('POST', `/connections/${connection.id}/run`);
  const run = async () => (await call('GET', `/connections/${connection.id}/runs`)).body[0];
  await until(async () => (await run()).finished_at !== null);
  expect(await run()).toMatchObject({
    status: 'succeeded',
    rows_loaded: 2,
    rows_rejected: 2,
    warnings: [{ code: 'rows_rejected' }],
  });
  const loaded = await sql`select id from kept_events.events order by id`;
  expect(loaded.map(({ id }) => id)).toEqual(['good', 'last']);
  const kept = await sql`select reason, "row" ->> 'id' as id from kept_events._rejected order by id`;
  expect(kept.map(({ id }) => id)).toEqual(['half', 'nul']);
  for (const { reason } of kept) expect(reason).toContain('body');
});

test('destinations that cannot keep rejected rows, and explicit settings, fail as before', async () => {
  const source = await makeInbox({ signature: 'none' });
  const { body: task } = await call('POST', `/account_connectors/${source.id}/discover`);
  await until(async () => (await call('GET', `/tasks/${task}`)).body.status === 'succeeded');
  const postgresTarget = await make.connector('destination', 'postgres', postgresParameters(database.url));
  const fileTarget = await make.connector('destination', 'file', { path: 'events', format: 'jsonl' });
  const policy = async (destination_id: string, body: object = {}) => {
    const streams = [{ name: 'events', sync_mode: 'incremental', destination_sync_mode: 'append' }];
    const schema = crypto.randomUUID();
    const ends = { source_id: source.id, destination_id, destination_schema: `s${schema.slice(0, 8)}` };
    return (await make.connection({ ...ends, streams, ...body })).rejected_rows_policy;
  };
  expect(await policy(fileTarget.id)).toBe('fail');
  expect(await policy(postgresTarget.id, { rejected_rows_policy: 'fail' })).toBe('fail');
});
