import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accounts, connections, schemaChanges, tasks } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf, uniqueName } from '../support/resources.ts';

/** The operations beside the original interface. 401, 403, 404 and 422: permissions and every-operation tests. */
const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call } = api;
const make = makerOf(call);
const other = await api.otherAccount();

describe('GET /connections/{connection_id}/schema_changes and POST /connections/{connection_id}/schema_changes/review', () => {
  test('200: a connection that a breaking change stopped runs again after a review', async () => {
    const { id } = await make.connection();
    await deps.db
      .update(connections)
      .set({ status: 'auto_disabled', schema_change_status: 'breaking' })
      .where(eq(connections.id, id));
    await deps.db.insert(schemaChanges).values({
      account_id: service.account_id,
      connection_id: id,
      stream_name: 'gone',
      subject: 'stream',
      before: true,
      breaking: true,
    });
    const resume = () => call('POST', `/connections/${id}`, { status: 'active' });
    expect((await resume()).body.code).toBe('breaking_change_unreviewed');
    const changes = await call('GET', `/connections/${id}/schema_changes`);
    expect(changes).toMatchObject({
      status: 200,
      body: [{ stream_name: 'gone', change: 'stream_removed', breaking: true }],
    });
    const review = await call('POST', `/connections/${id}/schema_changes/review`, { decision: 'ignore' });
    expect(review).toMatchObject({ status: 200, body: { schema_change_status: 'no_change' } });
    expect((await call('GET', `/connections/${id}/schema_changes`)).body).toEqual([]);
    await resume();
    expect((await call('GET', `/connections/${id}`)).body.status).toBe('active');
  });

  test('400 and 402 of a review are those of an update', async () => {
    const { id } = await make.connection();
    const again = await call('POST', `/connections/${id}/schema_changes/review`, { decision: 'accept' });
    expect([200, 400]).toContain(again.status);
  });
});

describe('GET /connections/{connection_id}/runs/{connection_run_id}', () => {
  test('200: as in the list; 404 under another connection', async () => {
    const { id } = await make.connection();
    const { body: run } = await call('POST', `/connections/${id}/run`);
    const [listed] = (await call('GET', `/connections/${id}/runs`)).body;
    expect(await call('GET', `/connections/${id}/runs/${run}`)).toMatchObject({
      status: 200,
      body: { id: listed.id, number: 1 },
    });
    const elsewhere = (await make.connection()).id;
    expect((await call('GET', `/connections/${elsewhere}/runs/${run}`)).status).toBe(404);
  });
});

describe('GET /account_connectors/{account_connector_id}/catalog', () => {
  test('200: the streams of a source with the options of their fields', async () => {
    const { source_id } = await make.connection();
    const { status, body } = await call('GET', `/account_connectors/${source_id}/catalog`);
    expect(status).toBe(200);
    expect(body[0]).toMatchObject({ name: expect.any(String), fields: expect.any(Array) });
  });
});

describe('POST /account_connectors/{account_connector_id}/discover, GET /account_connectors/{account_connector_id}/discovery and GET /tasks/{task_id}', () => {
  test('200: the task of a discovery, and its state', async () => {
    const { id } = await make.source();
    const { status, body: task_id } = await call('POST', `/account_connectors/${id}/discover`);
    expect(status).toBe(200);
    expect((await call('GET', `/account_connectors/${id}/discovery`)).body.task.id).toBe(task_id);
    const task = { id: task_id, kind: 'discover_catalog', status: 'queued', account_connector_id: id, error: null };
    expect(await call('GET', `/tasks/${task_id}`)).toMatchObject({ status: 200, body: task });
    expect((await other.call('GET', `/tasks/${task_id}`)).status).toBe(404);
    expect(await deps.db.select().from(tasks).where(eq(tasks.id, task_id))).toHaveLength(1);
  });

  test('400: a destination has no streams to discover', async () => {
    const { id } = await make.destination();
    const { status, body } = await call('POST', `/account_connectors/${id}/discover`);
    expect([status, body.code]).toEqual([400, 'discovery_not_supported']);
  });
});

describe('POST /account_connectors/{account_connector_id}/differing_parameters', () => {
  test('200: names what an update would change; 400 for values that an update refuses', async () => {
    const { id } = await make.source({ rows: 5 });
    const path = `/account_connectors/${id}/differing_parameters`;
    expect((await call('POST', path, { parameters: { rows: 5 } })).body).toEqual([]);
    expect(await call('POST', path, { parameters: { rows: 6 } })).toMatchObject({ status: 200, body: ['rows'] });
    expect((await call('POST', path, { parameters: { rows: 'many' } })).status).toBe(400);
  });
});

describe('GET /custom_run_plans/{plan_id}', () => {
  test('200: the plan with the runs of its chunks', async () => {
    const { id } = await make.connection();
    const days = { start_date: '2026-01-01', end_date: '2026-01-02', split: { unit: 'day', size: 1 } };
    const plan = (await call('POST', `/connections/${id}/run/preview`, days)).body;
    const shown = () => call('GET', `/custom_run_plans/${plan.plan_id}`);
    expect(await shown()).toMatchObject({
      status: 200,
      body: { is_launched: false, runs: [], plan: { plan_hash: plan.plan_hash } },
    });
    await call('POST', `/connections/${id}/run/launch-plan`, { plan_id: plan.plan_id });
    expect((await shown()).body).toMatchObject({ is_launched: true, runs: [{ chunk_index: 1 }, { chunk_index: 0 }] });
  });
});

describe('GET /users/me/api_keys, POST /users/me/api_keys and DELETE /users/me/api_keys/{api_key_id}', () => {
  test('201: a new key, with which the old one is listed (200) and revoked (204)', async () => {
    const old = api.as(await api.keyWith([]));
    const made = await old('POST', '/users/me/api_keys', { grace_hours: 1 });
    expect(made.status).toBe(201);
    const fresh = api.as(made.body.api_key);
    const listed = await fresh('GET', '/users/me/api_keys');
    expect(listed).toMatchObject({ status: 200, body: [{ id: made.body.id, is_current: true }, { status: 'live' }] });
    expect((await fresh('DELETE', `/users/me/api_keys/${listed.body[1].id}`)).status).toBe(204);
    expect((await old('GET', '/users/me')).status).toBe(401);
    const own = await fresh('DELETE', `/users/me/api_keys/${made.body.id}`);
    expect([own.status, own.body.code]).toEqual([400, 'key_in_use']);
  });

  test('401: no request with a revoked key passes, however many were on their way', async () => {
    const old = api.as(await api.keyWith([]));
    const fresh = api.as((await old('POST', '/users/me/api_keys', { grace_hours: 1 })).body.api_key);
    const { body: keys } = await fresh('GET', '/users/me/api_keys');
    const many = () => Promise.all(Array.from({ length: 30 }, () => old('GET', '/users/me')));
    const before = many();
    await fresh('DELETE', `/users/me/api_keys/${keys[1].id}`);
    const after = await many();
    expect(new Set(after.map(({ status }) => status))).toEqual(new Set([401]));
    await before;
  });

  test('400: a key that was replaced in the meantime cannot be rotated again (POST /users/me/api_keys)', async () => {
    const caller = api.as(await api.keyWith([]));
    await caller('POST', '/users/me/api_keys', { grace_hours: 0 });
    expect([400, 401]).toContain((await caller('POST', '/users/me/api_keys', { grace_hours: 0 })).status);
  });
});

describe('POST /users/{user_id}/invitation and POST /invitations/accept', () => {
  test('200: a link, which gives a key once; then 400', async () => {
    const { body: user } = await call('POST', '/users', {
      email: `${Bun.randomUUIDv7()}@example.test`,
      full_name: 'Ada',
    });
    const invited = await call('POST', `/users/${user.id}/invitation`);
    expect(invited.status).toBe(200);
    const token = invited.body.invite_link.split('#token=')[1];
    const accepted = await api.anonymous('POST', '/invitations/accept', { token });
    expect(accepted).toMatchObject({ status: 200, body: { user: { id: user.id, status: 'active' } } });
    expect((await api.as(accepted.body.api_key)('GET', '/users/me')).body.id).toBe(user.id);
    const again = await api.anonymous('POST', '/invitations/accept', { token });
    expect([again.status, again.body.code]).toEqual([400, 'invalid_invitation']);
    await call('POST', `/users/${user.id}`, { is_active: false });
    const disabled = await call('POST', `/users/${user.id}/invitation`);
    expect([disabled.status, disabled.body.code]).toEqual([400, 'user_disabled']);
  });
});

describe('POST /account_connector_checks', () => {
  test('200: what a create would accept; 400 for what it would refuse', async () => {
    const check = (body: object) =>
      call('POST', '/account_connector_checks', { name: 'Checked', connector_type: 'source', ...body });
    expect(await check({ connector_name: 'sample', parameters: { rows: 5 } })).toMatchObject({
      status: 200,
      body: { lacks_credentials: false },
    });
    expect((await check({ connector_name: 'unheard' })).body.code).toBe('unknown_connector');
    const wrong = await check({ connector_name: 'sample', parameters: { rows: 'many' } });
    expect(wrong).toMatchObject({ status: 400, body: { field: 'parameters.rows' } });
    const names = (await call('GET', '/account_connectors')).body.map(({ name }: { name: string }) => name);
    expect(names).not.toContain('Checked');
  });
});

describe('POST /connection_checks', () => {
  test('200: the findings of settings; 400 for an unknown source', async () => {
    const { source_id, destination_id } = await make.connection();
    const sides = { source_id, destination_id, table_prefix: 'check_' };
    expect(await call('POST', '/connection_checks', { ...sides, streams: [] })).toMatchObject({ status: 200 });
    const unknown = { ...sides, source_id: Bun.randomUUIDv7(), streams: [] };
    expect((await call('POST', '/connection_checks', unknown)).status).toBe(400);
  });
});

describe('POST /schedules/preview', () => {
  test('200: describes a schedule; 400 for one that never fires', async () => {
    const schedule = { type: 'cron', cron_expression: '0 6 * * *' };
    const { status, body } = await call('POST', '/schedules/preview', { schedule });
    expect([status, body.next_runs.length]).toEqual([200, 5]);
    const never = { schedule: { type: 'cron', cron_expression: '0 0 31 2 *' } };
    expect((await call('POST', '/schedules/preview', never)).status).toBe(400);
  });
});

describe('GET /overview/activity, GET /overview/recent_runs, GET /connection_summaries and GET /automation/rule_language', () => {
  test('200: as over tRPC', async () => {
    expect((await call('GET', '/overview/activity?days=3')).body).toHaveLength(3);
    expect((await call('GET', '/overview/recent_runs?limit=1')).body).toHaveLength(1);
    expect((await call('GET', '/connection_summaries')).body.length).toBeGreaterThan(0);
    expect((await call('GET', '/automation/rule_language')).status).toBe(200);
  });
});

describe('POST /billing/plan', () => {
  test('200: changes the plan of the account; 403 without users.manage', async () => {
    expect(
      (await api.as(await api.keyWith(['billing.read']))('POST', '/billing/plan', { plan_id: 'pro' })).status,
    ).toBe(403);
    expect(await call('POST', '/billing/plan', { plan_id: 'pro' })).toMatchObject({
      status: 200,
      body: { is_current: true },
    });
  });
});

describe('POST /account_connectors/{account_connector_id}', () => {
  test('402: a tunnel on a plan without tunnels', async () => {
    const { call: free, account_id } = await api.otherAccount();
    const source = await makerOf(free).connector('source', 'postgres', {
      host: 'db.example.test',
      database: 'd',
      username: 'u',
      password: 'p',
    });
    await deps.db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, account_id));
    const ssh_tunnel = { host: 'jump.example.test', username: 'tunnel', private_key: 'a key' };
    const answer = await free('POST', `/account_connectors/${source.id}`, { ssh_tunnel, test_connection: false });
    expect([answer.status, answer.body.code]).toEqual([402, 'feature_not_in_plan']);
  });
});

describe('revisions', () => {
  test('POST /connections/{connection_id} with If-Match: 200 for the ETag of a read, 412 for an older one', async () => {
    const { id } = await make.connection();
    const path = `/connections/${id}`;
    const edit = (if_match: string) =>
      call('POST', path, { description: uniqueName('text') }, { 'if-match': if_match });
    const tag = (await call('GET', path)).headers.get('etag')!;
    expect(tag).toBe('"1"');
    const edited = await edit(tag);
    expect([edited.status, edited.headers.get('etag')]).toEqual([200, '"2"']);
    expect(await edit(tag)).toMatchObject({ status: 412, body: { code: 'precondition_failed', revision: 2 } });
    expect((await edit('"7", W/"2"')).status).toBe(200);
    expect((await edit('*')).status).toBe(200);
  });
});

describe('lists', () => {
  test('lead to their next and previous pages', async () => {
    while ((await call('GET', '/connections?limit=1')).headers.get('x-total-count') === '1') await make.connection();
    const { headers } = await call('GET', '/connections?limit=1&offset=1');
    expect(headers.get('link')).toContain('</connections?limit=1&offset=2>; rel="next"');
    expect(headers.get('link')).toContain('</connections?limit=1&offset=0>; rel="prev"');
    expect((await call('GET', '/connections')).headers.get('link')).toBeNull();
  });
});
