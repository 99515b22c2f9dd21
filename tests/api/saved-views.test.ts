import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { auditEvents, savedViews, users } from '../../db/schema/index.ts';
import { type Call, testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { uniqueName } from '../support/resources.ts';

/** 401, 404 of unknown ids and the shape of bodies: permissions and every-operation tests. */
const service = await testDeps();
const { db } = service.deps;
const api = testApi(service);

const member = async (permissions: Parameters<typeof api.keyWith>[0] = []) => {
  const call = api.as(await api.keyWith(permissions));
  return { call, id: (await call('GET', '/users/me')).body.id as string };
};
const save = async (call: Call, fields: object = {}) => {
  const body = { page: 'connections', name: uniqueName('view'), query: 'state=failing', ...fields };
  const answer = await call('POST', '/saved_views', body);
  expect(answer.status).toBe(201);
  return answer.body;
};
const namesFor = async (call: Call, search = '') =>
  (await call('GET', `/saved_views${search}`)).body.map(({ name }: { name: string }) => name);

describe('GET /saved_views', () => {
  test('200: own views, then the shared ones, by name; none that others keep for themselves', async () => {
    const { account_id, call } = await api.otherAccount();
    const reader = api.as(await api.keyWith([], { account_id }));
    for (const name of ['b', 'A']) await save(reader, { name });
    await save(call, { name: 'shared', is_shared: true });
    await save(call, { name: 'of the administrator' });
    await save(reader, { name: 'cases', page: 'cases', query: 'status=resolved' });
    expect(await namesFor(reader, '?page=connections')).toEqual(['A', 'b', 'shared']);
    expect(await namesFor(reader)).toEqual(['A', 'b', 'cases', 'shared']);
    expect(await namesFor(api.call)).not.toContain('shared');
  });
  test('422 for an unknown list', async () =>
    expect((await api.call('GET', '/saved_views?page=runs')).status).toBe(422));
});

describe('POST /saved_views', () => {
  test('201: filters without a value, and a view, are no part of it; the change is in the audit log', async () => {
    const { call, id } = await member();
    const view = await save(call, { query: '?state=failing&q=&tag=a b&view=x' });
    expect(view).toMatchObject({
      page: 'connections',
      query: 'state=failing&tag=a+b',
      is_shared: false,
      created_by: { id },
    });
    const [entry] = await db
      .select()
      .from(auditEvents)
      .where(and(eq(auditEvents.resource_id, view.id), eq(auditEvents.kind, 'change')));
    expect(entry).toMatchObject({ resource_type: 'saved_view', operation: 'create' });
  });
  test('400 duplicate_name, ignoring case: of own views, and of shared ones, of one list', async () => {
    const [one, two] = [await member(['connections.update']), await member(['connections.update'])];
    const { name } = await save(one.call);
    const body = { page: 'connections', name: name.toUpperCase(), query: 'tag=x' };
    expect(await one.call('POST', '/saved_views', body)).toMatchObject({
      status: 400,
      body: { code: 'duplicate_name', field: 'name' },
    });
    await save(one.call, { name, page: 'events' });
    await save(two.call, { name });
    await save(one.call, { name, is_shared: true });
    expect((await two.call('POST', '/saved_views', { ...body, is_shared: true })).body.code).toBe('duplicate_name');
  });
  test('403: sharing needs connections.update', async () => {
    const { call } = await member(['cases.update']);
    const body = { page: 'cases', name: 'x', query: 'status=open', is_shared: true };
    expect(await call('POST', '/saved_views', body)).toMatchObject({
      status: 403,
      body: { required_permission: 'connections.update' },
    });
  });
  test('400 too_many_views: 100 of a user, also when they are created at once; shared ones count for the account', async () => {
    const { account_id, call } = await api.otherAccount();
    const [user] = await db.select().from(users).where(eq(users.account_id, account_id));
    const rows = (is_shared: boolean) =>
      Array.from({ length: 99 }, (_, at) => ({
        account_id,
        created_by: user!.id,
        page: 'connections' as const,
        name: `view ${at}`,
        query: 'tag=x',
        is_shared,
      }));
    for (const is_shared of [false, true]) {
      await db.insert(savedViews).values(rows(is_shared));
      const create = (name: string) =>
        call('POST', '/saved_views', { page: 'cases', name, query: 'status=open', is_shared });
      const answers = await Promise.all(['a', 'b', 'c'].map(create));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 400, 400]);
      expect(answers.find(({ status }) => status === 400)!.body).toMatchObject({ code: 'too_many_views', limit: 100 });
    }
    const other = api.as(await api.keyWith([], { account_id }));
    await save(other);
  });
  test.each([
    [{ query: '' }, 'query'],
    [{ query: 'view=x&q=' }, 'query'],
    [{ query: `tag=${'x'.repeat(2000)}` }, 'query'],
    [{ query: `tag=${'ü'.repeat(400)}` }, 'query'],
    [{ name: ' ' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ page: 'runs' }, 'page'],
  ])('422: %j', async (fields, at) => {
    const body = { page: 'connections', name: 'x', query: 'tag=x', ...fields };
    const answer = await api.call('POST', '/saved_views', body);
    expect([answer.status, answer.body.detail[0].loc]).toEqual([422, ['body', at]]);
  });
});

describe('POST /saved_views/{saved_view_id}', () => {
  test('200: renames and overwrites; what was read can be written, and a change of nothing keeps the time stamp', async () => {
    const { call } = await member();
    const view = await save(call);
    const path = `/saved_views/${view.id}`;
    const changed = await call('POST', path, { name: 'Renamed', query: 'tag=sales&sort=name' });
    expect(changed).toMatchObject({ status: 200, body: { name: 'Renamed', query: 'tag=sales&sort=name' } });
    expect((await call('POST', path, changed.body)).body).toEqual(changed.body);
  });
  test('404: a view that another user keeps, and one of another account', async () => {
    const { id } = await save((await member()).call);
    const foreign = await save((await api.otherAccount()).call, { is_shared: true });
    for (const one of [id, foreign.id]) {
      expect(await api.call('POST', `/saved_views/${one}`, { name: 'x' })).toMatchObject({
        status: 404,
        body: { detail: 'View not found' },
      });
    }
  });
  test('403: a shared view is changed with connections.update alone', async () => {
    const creator = await member(['connections.update']);
    const view = await save(creator.call, { is_shared: true });
    const path = `/saved_views/${view.id}`;
    expect((await (await member()).call('POST', path, { name: 'x' })).status).toBe(403);
    const editor = await member(['connections.update']);
    expect((await editor.call('POST', path, { query: 'tag=new' })).body.query).toBe('tag=new');
    const own = await save((await member()).call);
    expect((await (await member()).call('POST', `/saved_views/${own.id}`, { is_shared: true })).status).toBe(404);
  });
  test('400 view_of_another_user: only its creator stops sharing a view', async () => {
    const creator = await member(['connections.update']);
    const view = await save(creator.call, { is_shared: true });
    const path = `/saved_views/${view.id}`;
    expect(await api.call('POST', path, { is_shared: false })).toMatchObject({
      status: 400,
      body: { code: 'view_of_another_user' },
    });
    expect((await creator.call('POST', path, { is_shared: false })).body.is_shared).toBe(false);
    expect(await namesFor(api.call)).not.toContain(view.name);
  });
  test('400 duplicate_name, also by sharing', async () => {
    const { call } = await member(['connections.update']);
    const shared = await save(call, { is_shared: true });
    const own = await save(call, { name: shared.name });
    const path = `/saved_views/${own.id}`;
    expect((await call('POST', path, { is_shared: true })).body.code).toBe('duplicate_name');
    const { name } = await save(call);
    expect((await call('POST', path, { name })).body.code).toBe('duplicate_name');
  });
  test('422 without a field', async () => {
    const { id } = await save(api.call);
    expect((await api.call('POST', `/saved_views/${id}`, {})).status).toBe(422);
  });
});

describe('DELETE /saved_views/{saved_view_id}', () => {
  test('204; 404 for the view of another user; 403 for a shared one', async () => {
    const { call } = await member();
    const own = await save(call);
    const shared = await save(api.call, { is_shared: true });
    expect((await api.call('DELETE', `/saved_views/${own.id}`)).status).toBe(404);
    expect((await call('DELETE', `/saved_views/${shared.id}`)).status).toBe(403);
    expect((await call('DELETE', `/saved_views/${own.id}`)).status).toBe(204);
    expect((await api.call('DELETE', `/saved_views/${shared.id}`)).status).toBe(204);
    expect((await call('DELETE', `/saved_views/${own.id}`)).status).toBe(404);
  });
});

test('a deleted user leaves the views that they shared, with their name, and no others', async () => {
  const { call, id } = await member(['connections.update']);
  const [own, shared] = [await save(call), await save(call, { is_shared: true })];
  expect((await api.call('DELETE', `/users/${id}`)).status).toBe(204);
  const left = await db.select().from(savedViews).where(eq(savedViews.created_by, id));
  expect(left.map((view) => view.id)).toEqual([shared.id]);
  expect(await namesFor(api.call)).not.toContain(own.name);
  const listed = (await api.call('GET', '/saved_views')).body.find((view: { id: string }) => view.id === shared.id);
  expect(listed.created_by.id).toBe(id);
});
