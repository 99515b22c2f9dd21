import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { events } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { connectionId, firingsOf } from '../support/firings.ts';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const { trigger, event, fire } = firingsOf(service, call);
const other = await api.otherAccount();
const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const PATH = '/automation/cases';

const noisy = await trigger({ severity: 'critical' });
const open = async (created = noisy, firings = 1) => {
  const group = { connection_id: connectionId() };
  let id = '';
  for (let count = 0; count < firings; count += 1) {
    const row = await event('connection_failed', group);
    id = (await fire({ trigger: created, event: row, group, kind: 'fired' })).case_id!;
  }
  return id;
};
const move = (id: string, status: string, as = call) => as('POST', `${PATH}/${id}?status=${status}`);
const eventsAbout = async (id: string) =>
  (await deps.db.select().from(events).where(eq(events.category, 'automation')).orderBy(events.id))
    .filter(({ payload }) => payload.case_id === id && payload.case_number !== undefined)
    .map((one) => one.event)
    .filter((kind) => kind.startsWith('case_'));

describe('GET /automation/cases', () => {
  test('200: newest first, in pages, with the total count', async () => {
    const ids = [await open(), await open(), await open()];
    const all = await call('GET', PATH);
    expect(all.status).toBe(200);
    expect(all.headers.get('x-total-count')).toBe(String(all.body.length));
    expect(all.body.slice(0, 3).map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
    expect(all.body[0]).toMatchObject({
      timeline: null,
      deliveries: null,
      latest_events: null,
      trigger_name: noisy.name,
    });
    const page = await call('GET', `${PATH}?limit=1&offset=1`);
    expect(page.body.map(({ id }: { id: string }) => id)).toEqual([ids[1]]);
    expect(page.headers.get('x-total-count')).toBe(String(all.body.length));
  });

  test('200: all cases without a limit', async () => {
    const created = await trigger();
    for (let n = 0; n < 101; n += 1) await open(created);
    const all = await call('GET', `${PATH}?trigger_id=${created.id}`);
    expect([all.body.length, all.headers.get('x-total-count')]).toEqual([101, '101']);
  });

  test('200: by state, severity and trigger', async () => {
    const quiet = await trigger({ severity: 'low' });
    const id = await open(quiet);
    await move(id, 'acknowledged');
    const idsOf = async (query: string) =>
      (await call('GET', `${PATH}?${query}`)).body.map((one: { id: string }) => one.id);
    expect(await idsOf('status=acknowledged')).toContain(id);
    expect(await idsOf('status=open')).not.toContain(id);
    expect(await idsOf('severity=low')).toEqual([id]);
    expect(await idsOf(`trigger_id=${quiet.id}`)).toEqual([id]);
    expect(await idsOf(`trigger_id=${quiet.id}&status=open`)).toEqual([]);
    expect(await idsOf('trigger_id=nonsense')).toEqual([]);
  });

  test('200: never cases of another account', async () => {
    await open();
    expect(await other.call('GET', PATH)).toMatchObject({ status: 200, body: [] });
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', PATH)).status).toBe(401);
  });

  test('422: an unknown state or severity, an invalid limit', async () => {
    for (const query of ['status=closed', 'severity=loud', 'limit=1001', 'limit=0', 'offset=-1', 'page=1']) {
      expect((await call('GET', `${PATH}?${query}`)).status).toBe(422);
    }
  });
});

describe('GET /automation/cases/{case_id}', () => {
  test('200: with the latest 20 events, the timeline and the deliveries', async () => {
    const id = await open(noisy, 23);
    const { status, body } = await call('GET', `${PATH}/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id,
      status: 'open',
      severity: 'critical',
      event_count: 23,
      title: `critical: ${noisy.name} on Orders`,
      last_error: 'The source is down',
      reopened_count: 0,
      resolution: null,
      acknowledged_by: null,
      timeline: [{ type: 'opened', actor: { type: 'automation', id: noisy.id, name: noisy.name } }],
    });
    expect(body.latest_events).toHaveLength(20);
    expect(body.latest_events[0].occurred_at >= body.latest_events[19].occurred_at).toBe(true);
    expect(body.deliveries).toHaveLength(23);
    expect(body.deliveries[0]).toMatchObject({
      action_index: 0,
      type: 'call_webhook',
      status: 'pending',
      reason: 'opened',
      attempts: 0,
    });
    expect(body.deliveries[1]).toMatchObject({ status: 'suppressed', reason: 'joined' });
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', `${PATH}/${UNKNOWN}`)).status).toBe(401);
  });

  test('404: unknown, malformed, of another account', async () => {
    const id = await open();
    for (const one of [UNKNOWN, 'nonsense']) expect((await call('GET', `${PATH}/${one}`)).status).toBe(404);
    expect((await other.call('GET', `${PATH}/${id}`)).status).toBe(404);
  });
});

describe('POST /automation/cases/{case_id}', () => {
  test('200: acknowledged, with the user and the time', async () => {
    const id = await open();
    const { status, body } = await move(id, 'acknowledged');
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'acknowledged', acknowledged_by: { id: service.user_id } });
    expect(Date.parse(body.acknowledged_at)).toBeGreaterThan(Date.now() - 60_000);
    expect(body.timeline.at(-1)).toMatchObject({ type: 'acknowledged', actor: { type: 'user', id: service.user_id } });
  });

  test('200: every allowed transition, each with its event', async () => {
    const id = await open();
    const ways = [
      'acknowledged',
      'open',
      'suppressed',
      'open',
      'acknowledged',
      'suppressed',
      'resolved',
      'open',
      'resolved',
    ];
    for (const status of ways) expect(await move(id, status)).toMatchObject({ status: 200, body: { status } });
    const { body } = await call('GET', `${PATH}/${id}`);
    expect(body).toMatchObject({ reopened_count: 1, resolution: 'manual', resolved_by: { id: service.user_id } });
    expect(await eventsAbout(id)).toEqual([
      'case_opened',
      ...ways.map((status) => (status === 'open' ? 'case_reopened' : `case_${status}`)),
    ]);
  });

  test('200: setting the current state changes nothing', async () => {
    const id = await open();
    const first = await move(id, 'acknowledged');
    expect((await move(id, 'acknowledged')).body).toEqual(first.body);
    expect(await eventsAbout(id)).toEqual(['case_opened', 'case_acknowledged']);
  });

  test.each([
    ['resolved', 'acknowledged'],
    ['resolved', 'suppressed'],
    ['suppressed', 'acknowledged'],
  ])('400: invalid_transition from %s to %s', async (from, to) => {
    const id = await open();
    await move(id, from);
    const answer = await move(id, to);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'invalid_transition', status: from });
    expect((await call('GET', `${PATH}/${id}`)).body.status).toBe(from);
  });

  test('401: without a key', async () => {
    expect((await move(UNKNOWN, 'open', anonymous)).status).toBe(401);
  });

  test('403: without cases.update', async () => {
    const id = await open();
    const answer = await move(id, 'resolved', api.as(await api.keyWith(['triggers.update'])));
    expect(answer.status).toBe(403);
    expect(answer.body).toMatchObject({ required_permission: 'cases.update' });
  });

  test('404: unknown, malformed, of another account', async () => {
    const id = await open();
    for (const one of [UNKNOWN, 'nonsense']) expect((await move(one, 'resolved')).status).toBe(404);
    expect((await move(id, 'resolved', other.call)).status).toBe(404);
  });

  test('422: no state, or an unknown one', async () => {
    const id = await open();
    expect((await call('POST', `${PATH}/${id}`)).body.detail).toMatchObject([
      { loc: ['query', 'status'], type: 'missing' },
    ]);
    expect((await move(id, 'closed')).body.detail).toMatchObject([{ loc: ['query', 'status'], type: 'enum' }]);
  });
});
