import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accounts, events, roles } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

const t = await testDeps();
const api = testApi(t);
const { db } = t.deps;
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

let created = 0;
const newRole = async (fields: object = {}) => {
  const answer = await api.call('POST', '/roles', {
    name: `Role ${++created}`,
    permissions: ['cases.update'],
    ...fields,
  });
  expect(answer.status).toBe(201);
  return answer.body;
};
const systemRole = async (name: string) => (await db.select().from(roles).where(eq(roles.name, name)))[0]!;
const member = async (permissions: Parameters<typeof api.keyWith>[0] = []) => {
  const call = api.as(await api.keyWith(permissions));
  return { call, id: (await call('GET', '/users/me')).body.id as string };
};
const roleEvents = async (role_id: string) =>
  (await db.select().from(events).orderBy(events.occurred_at, events.id)).filter(
    (event) => event.resource.id === role_id,
  );

describe('GET /roles', () => {
  test('200: system roles first, then by name; only those of the account', async () => {
    const fresh = await api.otherAccount();
    for (const name of ['beta', 'Alpha']) await fresh.call('POST', '/roles', { name, permissions: ['billing.read'] });
    const { status, body } = await fresh.call('GET', '/roles');
    expect(status).toBe(200);
    const names = body.map((role: { name: string }) => role.name).filter((name: string) => !name.startsWith('role '));
    expect(names).toEqual(['Administrator', 'Billing', 'Creator', 'Viewer', 'Alpha', 'beta']);
    expect(body[0]).toMatchObject({ is_system: true, account_id: null, users_count: 0, user_ids: null });
  });
  test('401', async () => expect((await api.anonymous('GET', '/roles')).status).toBe(401));
});

describe('POST /roles', () => {
  test('201: stores each permission once', async () => {
    const role = await newRole({
      description: 'Runs',
      permissions: ['connections.run', 'cases.update', 'connections.run'],
    });
    expect(role).toMatchObject({
      account_id: t.account_id,
      description: 'Runs',
      is_system: false,
      permissions: ['connections.run', 'cases.update'],
      users_count: 0,
      user_ids: [],
    });
    expect(await roleEvents(role.id)).toMatchObject([{ event: 'role_created', payload: { role_name: role.name } }]);
  });
  test('400 duplicate_name, ignoring case, also for the names of system roles', async () => {
    const role = await newRole();
    for (const name of [role.name.toUpperCase(), 'administrator']) {
      const answer = await api.call('POST', '/roles', { name, permissions: ['cases.update'] });
      expect(answer).toMatchObject({ status: 400, body: { code: 'duplicate_name', field: 'name' } });
    }
    const other = await api.otherAccount();
    expect((await other.call('POST', '/roles', { name: role.name, permissions: ['cases.update'] })).status).toBe(201);
  });
  test('one of several parallel creates of a name succeeds', async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => api.call('POST', '/roles', { name: 'Race', permissions: ['cases.update'] })),
    );
    expect(answers.map((answer) => answer.status).toSorted()).toEqual([201, 400, 400, 400, 400, 400]);
  });
  test('400 cannot_grant_unheld_permission; no user can grant cross_account.read', async () => {
    const { call } = await member(['roles.manage', 'cases.update']);
    const wide = await call('POST', '/roles', { name: 'Wide', permissions: ['cases.update', 'users.manage'] });
    expect(wide).toMatchObject({
      status: 400,
      body: { code: 'cannot_grant_unheld_permission', permissions: ['users.manage'] },
    });
    const staff = await api.call('POST', '/roles', { name: 'Staff', permissions: ['cross_account.read'] });
    expect(staff).toMatchObject({ status: 400, body: { code: 'cannot_grant_unheld_permission' } });
  });
  test('402 when the plan has no custom roles', async () => {
    const other = await api.otherAccount();
    await db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, other.account_id));
    const answer = await other.call('POST', '/roles', { name: 'X', permissions: ['cases.update'] });
    expect(answer).toMatchObject({ status: 402, body: { code: 'feature_not_in_plan', limit: 'custom_roles' } });
  });
  test('403, 401', async () => {
    const body = { name: 'X', permissions: ['cases.update'] };
    const { call } = await member(['users.manage']);
    expect(await call('POST', '/roles', body)).toMatchObject({
      status: 403,
      body: { required_permission: 'roles.manage' },
    });
    expect((await api.anonymous('POST', '/roles', body)).status).toBe(401);
  });
  test.each([
    [{ permissions: ['cases.update'] }, ['body', 'name'], 'missing'],
    [{ name: 'X', permissions: [] }, ['body', 'permissions'], 'too_short'],
    [{ name: 'X', permissions: ['root'] }, ['body', 'permissions', 0], 'enum'],
    [{ name: 'x'.repeat(101), permissions: ['cases.update'] }, ['body', 'name'], 'string_too_long'],
    [{ name: 'X', permissions: ['cases.update'], is_system: true }, ['body', 'is_system'], 'extra_forbidden'],
  ])('422: %j', async (body, loc, type) => {
    const answer = await api.call('POST', '/roles', body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0]).toMatchObject({ loc, type });
  });
});

describe('GET /roles/{role_id}', () => {
  test('200: with the members of the account only', async () => {
    const role = await newRole();
    const [one, two] = [await member(), await member()];
    for (const { id } of [one, two]) await api.call('POST', `/roles/${role.id}/users/${id}`);
    const { body } = await api.call('GET', `/roles/${role.id}`);
    expect(body).toMatchObject({ users_count: 2, user_ids: [one.id, two.id].toSorted() });
    const viewer = await systemRole('Viewer');
    const other = await api.otherAccount();
    await other.call('POST', '/users', { email: 'v@example.org', full_name: 'V' });
    expect((await api.call('GET', `/roles/${viewer.id}`)).body.users_count).toBe(0);
    expect((await other.call('GET', `/roles/${viewer.id}`)).body.users_count).toBe(1);
  });
  test('404, 401', async () => {
    const other = await api.otherAccount();
    const foreign = await other.call('POST', '/roles', { name: 'Foreign', permissions: ['cases.update'] });
    for (const id of [UNKNOWN, 'x', foreign.body.id]) {
      expect(await api.call('GET', `/roles/${id}`)).toMatchObject({ status: 404, body: { detail: 'Role not found' } });
    }
    expect((await api.anonymous('GET', `/roles/${UNKNOWN}`)).status).toBe(401);
  });
});

describe('POST /roles/{role_id}', () => {
  test('200: members have the new permissions from their next request on', async () => {
    const role = await newRole();
    const { call, id } = await member();
    await api.call('POST', `/roles/${role.id}/users/${id}`);
    const changed = await api.call('POST', `/roles/${role.id}`, { permissions: ['billing.read'], description: null });
    expect(changed).toMatchObject({ status: 200, body: { permissions: ['billing.read'], name: role.name } });
    expect((await call('GET', '/users/me')).body.permissions).toEqual(['billing.read']);
    const [, updated] = await roleEvents(role.id).then((all) => all.filter((event) => event.event !== 'role_assigned'));
    expect(updated).toMatchObject({
      event: 'role_updated',
      payload: { changed_fields: ['permissions'], before: { permissions: ['cases.update'] } },
    });
  });
  test('200: an update that changes nothing leaves the timestamp and emits no event; its own name is no duplicate', async () => {
    const role = await newRole();
    const again = await api.call('POST', `/roles/${role.id}`, { name: role.name, permissions: role.permissions });
    expect(again).toMatchObject({ status: 200, body: { updated_at: role.updated_at } });
    expect(await roleEvents(role.id)).toHaveLength(1);
    expect((await api.call('POST', `/roles/${role.id}`, { name: role.name.toUpperCase() })).body.name).toBe(
      role.name.toUpperCase(),
    );
  });
  test('400 system_role', async () => {
    const { id } = await systemRole('Viewer');
    expect(await api.call('POST', `/roles/${id}`, { name: 'X' })).toMatchObject({
      status: 400,
      body: { code: 'system_role' },
    });
  });
  test('400 duplicate_name', async () => {
    const [one, two] = [await newRole(), await newRole()];
    for (const name of [one.name, 'Viewer']) {
      const answer = await api.call('POST', `/roles/${two.id}`, { name });
      expect(answer).toMatchObject({ status: 400, body: { code: 'duplicate_name' } });
    }
  });
  test('400 cannot_grant_unheld_permission for added permissions; existing ones can stay', async () => {
    const role = await newRole({ permissions: ['users.manage', 'cases.update'] });
    const { call } = await member(['roles.manage', 'billing.read']);
    const more = await call('POST', `/roles/${role.id}`, { permissions: ['users.manage', 'connections.run'] });
    expect(more).toMatchObject({
      status: 400,
      body: { code: 'cannot_grant_unheld_permission', permissions: ['connections.run'] },
    });
    expect((await call('POST', `/roles/${role.id}`, { permissions: ['users.manage', 'billing.read'] })).status).toBe(
      200,
    );
  });
  test('403, 404, 401, 422', async () => {
    const { call } = await member();
    expect((await call('POST', `/roles/${UNKNOWN}`, { name: 'X' })).status).toBe(403);
    expect((await api.call('POST', `/roles/${UNKNOWN}`, { name: 'X' })).status).toBe(404);
    expect((await api.anonymous('POST', `/roles/${UNKNOWN}`, { name: 'X' })).status).toBe(401);
    expect((await api.call('POST', `/roles/${UNKNOWN}`, {})).status).toBe(422);
  });
});

describe('DELETE /roles/{role_id}', () => {
  test('204', async () => {
    const role = await newRole();
    expect(await api.call('DELETE', `/roles/${role.id}`)).toMatchObject({ status: 204, body: null });
    expect((await api.call('GET', `/roles/${role.id}`)).status).toBe(404);
    expect((await roleEvents(role.id)).map((event) => event.event)).toEqual(['role_created', 'role_deleted']);
  });
  test('400 system_role', async () => {
    const { id } = await systemRole('Billing');
    expect(await api.call('DELETE', `/roles/${id}`)).toMatchObject({ status: 400, body: { code: 'system_role' } });
  });
  test('400 role_in_use until the last member is removed or deleted', async () => {
    const role = await newRole();
    const { id } = await member();
    await api.call('POST', `/roles/${role.id}/users/${id}`);
    const answer = await api.call('DELETE', `/roles/${role.id}`);
    expect(answer).toMatchObject({ status: 400, body: { code: 'role_in_use', user_ids: [id] } });
    await api.call('DELETE', `/users/${id}`);
    expect((await api.call('DELETE', `/roles/${role.id}`)).status).toBe(204);
  });
  test('403, 404, 401', async () => {
    const { call } = await member();
    expect((await call('DELETE', `/roles/${UNKNOWN}`)).status).toBe(403);
    expect((await api.call('DELETE', `/roles/${UNKNOWN}`)).status).toBe(404);
    expect((await api.anonymous('DELETE', `/roles/${UNKNOWN}`)).status).toBe(401);
  });
});
