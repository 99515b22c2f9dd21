import { describe, expect, test } from 'bun:test';
import { emit, type NewEvent, SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { VARIABLES_OF } from '../../server/events/variables.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { until } from '../support/until.ts';

const server = await testDeps();
const api = testApi(server);
const CONNECTION = Bun.randomUUIDv7();

const happen = (event: NewEvent['event'], more: Partial<NewEvent> = {}) =>
  server.deps.db.transaction((tx) =>
    emit(tx, {
      account_id: server.account_id,
      event,
      actor: SYSTEM_ACTOR,
      resource: { type: 'connection', id: CONNECTION, name: 'Orders' },
      summary: `It was ${event}`,
      ...more,
    }),
  );

await happen('connection_failed', { connection_id: CONNECTION, payload: { retry_count: 1 } });
await happen('connection_succeeded', { connection_id: CONNECTION });
await happen('plan_limit_reached');

describe('GET /automation/events', () => {
  test('200: newest first, with every documented field', async () => {
    const answer = await api.call('GET', '/automation/events');
    expect(answer.status).toBe(200);
    expect(answer.body.slice(0, 3).map((event: { event: string }) => event.event)).toEqual([
      'plan_limit_reached',
      'connection_succeeded',
      'connection_failed',
    ]);
    expect(answer.headers.get('x-total-count')).toBe(String(answer.body.length));
    const { id, occurred_at, payload: _, ...failed } = answer.body[2];
    expect(id).toBeString();
    expect(occurred_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(failed).toEqual({
      account_id: server.account_id,
      event: 'connection_failed',
      category: 'run',
      severity: 'high',
      actor: { type: 'system', id: null, name: null },
      resource: { type: 'connection', id: CONNECTION, name: 'Orders' },
      connection_id: CONNECTION,
      connection_run_id: null,
      stream_run_id: null,
      account_connector_id: null,
      user_id: null,
      summary: 'It was connection_failed',
      matched_trigger_ids: [],
      case_ids: [],
      processing_status: 'received',
      causation_depth: 0,
    });
  });

  test('200: the payload has every variable that rules can use, null where the event has none', async () => {
    const [, , failed] = (await api.call('GET', '/automation/events')).body;
    expect(new Set(Object.keys(failed.payload))).toEqual(new Set(VARIABLES_OF.connection_failed));
    expect(failed.payload).toMatchObject({
      event: 'connection_failed',
      severity: 'high',
      occurred_at: failed.occurred_at,
      account_id: server.account_id,
      actor_type: 'system',
      actor_id: null,
      connection_id: CONNECTION,
      retry_count: 1,
      rows_loaded_zscore: null,
      changed_fields: null,
    });
    const rule = 'event == "connection_failed" && retry_count == 1 && rows_loaded == null';
    const again = await api.call('POST', '/automation/evaluate_automator_rule', { rule, event: failed.payload });
    expect(again.body).toMatchObject({ is_valid: true, result: true, unknown_variables: [] });
  });

  test('200: pages keep the total', async () => {
    const all = await api.call('GET', '/automation/events');
    const page = await api.call('GET', '/automation/events?limit=1&offset=1');
    expect(page.body).toEqual([all.body[1]]);
    expect(page.headers.get('x-total-count')).toBe(all.headers.get('x-total-count'));
    expect((await api.call('GET', '/automation/events?offset=100000')).body).toEqual([]);
  });

  test.each([
    ['event=connection_failed', ['connection_failed']],
    [`connection_id=${CONNECTION}`, ['connection_succeeded', 'connection_failed']],
    [`connection_id=${CONNECTION}&severity=high`, ['connection_failed']],
    ['category=billing', ['plan_limit_reached']],
    ['severity=critical', []],
    ['connection_id=nothing', []],
  ])('200: filters %s', async (query, kinds) => {
    const answer = await api.call('GET', `/automation/events?${query}`);
    expect(answer.body.map((event: { event: string }) => event.event)).toEqual(kinds);
    expect(answer.headers.get('x-total-count')).toBe(String(kinds.length));
  });

  test('200: only events of the account', async () => {
    const { call } = await api.otherAccount();
    expect((await call('GET', '/automation/events')).body).toEqual([]);
  });

  test('200: one hundred by default', async () => {
    for (let at = 0; at < 101; at += 1) await happen('user_logged_in');
    const answer = await api.call('GET', '/automation/events');
    expect(answer.body.length).toBe(100);
    expect(Number(answer.headers.get('x-total-count'))).toBeGreaterThan(103);
    expect((await api.call('GET', '/automation/events?limit=1000')).body.length).toBeGreaterThan(103);
  });

  test.each([
    ['limit=0'],
    ['limit=1001'],
    ['limit=x'],
    ['offset=-1'],
    ['offset=100001'],
    ['event=nothing'],
    ['severity=bad'],
    ['extra=1'],
  ])('422: %s', async (query) => {
    const answer = await api.call('GET', `/automation/events?${query}`);
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0].loc).toEqual(['query', query.split('=')[0]]);
  });

  test('401 without a key, 200 for a user without any permission', async () => {
    expect((await api.anonymous('GET', '/automation/events')).status).toBe(401);
    expect((await api.as(await api.keyWith([]))('GET', '/automation/events')).status).toBe(200);
  });
});

describe('GET /automation/events with after, from and to', () => {
  type Shown = { id: string; event: string; occurred_at: string };
  const ids = async (query: string): Promise<string[]> =>
    (await api.call('GET', `/automation/events?${query}`)).body.map(({ id }: Shown) => id);

  test('200: following by after misses no event of a transaction that commits late', async () => {
    const [{ id: start }] = (await api.call('GET', '/automation/events?limit=1')).body;
    const { promise: written, resolve: wrote } = Promise.withResolvers<void>();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const summary = (text: string) => ({ summary: text, connection_id: CONNECTION });
    const slow = server.deps.db.transaction(async (tx) => {
      await emit(tx, {
        account_id: server.account_id,
        event: 'role_created',
        actor: SYSTEM_ACTOR,
        resource: { type: 'role', id: CONNECTION, name: null },
        ...summary('late'),
      });
      wrote();
      await held;
    });
    await written;
    await happen('role_updated', summary('early'));
    const seen: string[] = [];
    let last = start;
    const follow = async () => {
      const { headers, body } = await api.call('GET', `/automation/events?after=${last}`);
      seen.push(...body.map((one: { summary: string }) => one.summary));
      last = body.at(-1)?.id ?? last;
      if (body.length > 0) expect(headers.get('link')).toContain(`after=${last}`);
    };
    await follow();
    expect(seen).toEqual([]);
    release();
    await slow;
    await until(async () => {
      await follow();
      return seen.length === 2;
    });
    expect(seen).toEqual(['late', 'early']);
  });

  test('200: from is inclusive, to is not', async () => {
    const { body } = await api.call('GET', '/automation/events?limit=3');
    const [newest, , third] = body as Shown[];
    const between = await ids(`from=${third!.occurred_at}&to=${newest!.occurred_at}`);
    expect(between).toContain(third!.id);
    expect(between).not.toContain(newest!.id);
  });

  test('400: after is not the id of an event of the account; 422: from is not a time', async () => {
    for (const after of [CONNECTION, 'nonsense']) {
      const answer = await api.call('GET', `/automation/events?after=${after}`);
      expect([answer.status, answer.body.code]).toEqual([400, 'unknown_event']);
    }
    expect((await api.call('GET', '/automation/events?from=yesterday')).status).toBe(422);
  });
});
