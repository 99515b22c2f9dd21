import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { connectionRuns, connections, events, tasks } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const viewer = api.as(await api.keyWith([]));
const other = await api.otherAccount();
const foreign = await makerOf(other.call).connection();

const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const deleted = await make.connection();
await call('DELETE', `/connections/${deleted.id}`);
/** Ids that match no connection of this account. */
const NOT_THERE = [UNKNOWN, 'nonsense', foreign.id, deleted.id];

describe('GET /connections', () => {
  test('200: newest first, with limit and offset and the total in a header', async () => {
    const created = [await make.connection(), await make.connection(), await make.connection()];
    const ids = created.map((one) => one.id).toReversed();
    const all = await call('GET', '/connections');
    expect(all.status).toBe(200);
    expect(all.body.map((one: { id: string }) => one.id).slice(0, 3)).toEqual(ids);
    expect(all.headers.get('x-total-count')).toBe(String(all.body.length));
    const page = await call('GET', '/connections?limit=1&offset=1');
    expect(page.body.map((one: { id: string }) => one.id)).toEqual([ids[1]]);
    expect(page.headers.get('x-total-count')).toBe(String(all.body.length));
  });

  test('200: neither deleted connections nor those of another account; every user can read', async () => {
    const { status, body } = await viewer('GET', '/connections');
    expect(status).toBe(200);
    const ids = body.map((one: { id: string }) => one.id);
    expect(ids).not.toContain(foreign.id);
    expect(ids).not.toContain(deleted.id);
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', '/connections')).status).toBe(401);
  });

  test.each(['limit=0', 'limit=1001', 'limit=many', 'offset=-1'])('422: %s', async (query) => {
    expect((await call('GET', `/connections?${query}`)).status).toBe(422);
  });
});

describe('GET /connections/{connection_id}', () => {
  const healthAfter = async (changes: Partial<typeof connections.$inferInsert>) => {
    const schedule = { type: 'interval', interval_minutes: 60 };
    const { id } = await make.connection({ schedule });
    await deps.db.update(connections).set(changes).where(eq(connections.id, id));
    return (await call('GET', `/connections/${id}`)).body.health;
  };
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();

  test('200: health follows from state, failures, data age and runs', async () => {
    expect(await healthAfter({ consecutive_failures: 0 })).toBe('pending');
    expect(await healthAfter({ status: 'locked' })).toBe('failing');
    expect(await healthAfter({ status: 'auto_disabled' })).toBe('failing');
    expect(await healthAfter({ consecutive_failures: 3 })).toBe('failing');
    expect(await healthAfter({ consecutive_failures: 1 })).toBe('warning');
    expect(await healthAfter({ last_succeeded_at: hoursAgo(3) })).toBe('warning');
    expect(await healthAfter({ last_succeeded_at: hoursAgo(1) })).toBe('pending');
  });

  test('200: a connection that was resumed after a failed run is not healthy', async () => {
    const { id, account_id } = await make.connection();
    const at = hoursAgo(1);
    const run = { number: 1, run_type: 'plain', trigger_type: 'api', status: 'failed' } as const;
    const times = { queued_at: at, created_at: at, finished_at: at };
    await deps.db.insert(connectionRuns).values({ account_id, connection_id: id, ...run, ...times });
    await call('POST', `/connections/${id}`, { status: 'paused' });
    await call('POST', `/connections/${id}`, { status: 'active' });
    expect((await call('GET', `/connections/${id}`)).body).toMatchObject({
      consecutive_failures: 0,
      health: 'warning',
    });
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', `/connections/${UNKNOWN}`)).status).toBe(401);
  });

  test('404: unknown, malformed, deleted, of another account', async () => {
    for (const id of NOT_THERE) {
      const { status, body } = await call('GET', `/connections/${id}`);
      expect([id, status, body.detail]).toEqual([id, 404, 'Connection not found']);
    }
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('GET', `/connections/${UNKNOWN}?expand=all`)).status).toBe(422);
  });
});

describe('DELETE /connections/{connection_id}', () => {
  test('204: deletes it, frees its name and stops its run', async () => {
    const { id, name } = await make.connection({ run_immediately: true });
    const run = (await call('GET', `/connections/${id}`)).body.active_run_id;
    expect(await call('DELETE', `/connections/${id}`)).toMatchObject({ status: 204, body: null });
    expect((await call('GET', `/connections/${id}`)).status).toBe(404);
    expect((await call('GET', `/connections/${id}/runs`)).status).toBe(404);
    expect((await call('POST', `/connections/${run}/rerun`)).status).toBe(404);
    await make.connection({ name });
    const kinds = await deps.db.select().from(events).where(eq(events.connection_id, id));
    expect(kinds.map((one) => one.event)).toEqual(
      expect.arrayContaining(['connection_run_stopped', 'connection_deleted']),
    );
  });

  test('401: without a key', async () => {
    expect((await anonymous('DELETE', `/connections/${UNKNOWN}`)).status).toBe(401);
  });

  test('403: without connections.delete', async () => {
    const { id } = await make.connection();
    const { status, body } = await viewer('DELETE', `/connections/${id}`);
    expect(status).toBe(403);
    expect(body.required_permission).toBe('connections.delete');
    expect((await call('GET', `/connections/${id}`)).status).toBe(200);
  });

  test('404: unknown, malformed, deleted, of another account', async () => {
    for (const id of NOT_THERE) expect((await call('DELETE', `/connections/${id}`)).status).toBe(404);
    expect((await other.call('GET', `/connections/${foreign.id}`)).status).toBe(200);
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('DELETE', `/connections/${UNKNOWN}?force=true`)).status).toBe(422);
  });
});

describe('POST /connections/{connection_id}/update_catalog', () => {
  test('200: repeated requests queue one discovery, plus one beside a running one', async () => {
    const { id, source_id } = await make.connection();
    const ended = { status: 'succeeded', finished_at: new Date().toISOString() } as const;
    await deps.db.update(tasks).set(ended).where(eq(tasks.account_connector_id, source_id));
    const first = await call('POST', `/connections/${id}/update_catalog`);
    const second = await call('POST', `/connections/${id}/update_catalog`);
    expect(first.status).toBe(200);
    expect(second.body).toBe(first.body);
    const [task] = await deps.db.select().from(tasks).where(eq(tasks.id, first.body));
    expect(task).toMatchObject({ kind: 'discover_catalog', connection_id: id, account_connector_id: source_id });
    await deps.db.update(tasks).set({ status: 'running' }).where(eq(tasks.id, first.body));
    const third = await call('POST', `/connections/${id}/update_catalog`);
    expect(third.body).not.toBe(first.body);
  });

  test('400: account_connector_not_ready while the source is not active', async () => {
    const source = await make.connector('source', 'sample', {});
    const { id } = await make.connection({ source_id: source.id });
    await call('POST', `/account_connectors/${source.id}`, { parameters: { check: 'fails' }, test_connection: false });
    await call('POST', `/account_connectors/${source.id}`, { parameters: { token: 'new' }, test_connection: false });
    const { status, body } = await call('POST', `/connections/${id}/update_catalog`);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'account_connector_not_ready', account_connector_id: source.id });
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/connections/${UNKNOWN}/update_catalog`)).status).toBe(401);
  });

  test('403: without connections.update', async () => {
    const { id } = await make.connection({ name: uniqueName('x') });
    expect((await viewer('POST', `/connections/${id}/update_catalog`)).status).toBe(403);
  });

  test('404: unknown, malformed, deleted, of another account', async () => {
    for (const id of NOT_THERE) expect((await call('POST', `/connections/${id}/update_catalog`)).status).toBe(404);
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('POST', `/connections/${UNKNOWN}/update_catalog?x=1`)).status).toBe(422);
  });
});
