import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accounts, apiKeys, events, roles, users } from '../../db/schema/index.ts';
import { SYSTEM_ROLES } from '../../server/api/permissions.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

const t = await testDeps();
const api = testApi(t);
const { db } = t.deps;
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

const member = async (permissions: Parameters<typeof api.keyWith>[0] = []) => {
  const call = api.as(await api.keyWith(permissions));
  return { call, id: (await call('GET', '/users/me')).body.id as string };
};
const eventsOf = async (user_id: string) => {
  const rows = await db.select().from(events).where(eq(events.user_id, user_id)).orderBy(events.occurred_at, events.id);
  return rows.map((row) => row.event);
};
const idOfRole = async (name: string) => (await db.select().from(roles).where(eq(roles.name, name)))[0]!.id;

describe('POST /users/{user_id}', () => {
  test('200: each user can change the own profile; null clears a field', async () => {
    const { call, id } = await member();
    const changed = await call('POST', `/users/${id}`, {
      full_name: ' Grace ',
      timezone: 'America/New_York',
      locale: 'en-US',
    });
    expect(changed).toMatchObject({
      status: 200,
      body: { full_name: 'Grace', timezone: 'America/New_York', locale: 'en-US' },
    });
    expect((await call('POST', `/users/${id.toUpperCase()}`, { timezone: null })).body.timezone).toBeNull();
    const [event] = await db.select().from(events).where(eq(events.user_id, id)).orderBy(events.occurred_at, events.id);
    expect(event).toMatchObject({
      event: 'user_updated',
      payload: { changed_fields: ['full_name', 'timezone', 'locale'], after: { full_name: 'Grace' } },
    });
  });
  test('200: own quiet hours keep what is omitted; 400: without an end; 422: not a time of day', async () => {
    const { call, id } = await member();
    const preferences = async () => (await call('GET', '/users/me')).body.notification_preferences;
    const none = { quiet_from: null, quiet_until: null, urgent_severity: 'critical' };
    expect(await preferences()).toEqual(none);
    const change = (notification_preferences: object) => call('POST', `/users/${id}`, { notification_preferences });
    expect((await change(none)).status).toBe(200);
    expect(await eventsOf(id)).toEqual([]);
    const night = { quiet_from: '22:00', quiet_until: '07:00' };
    expect((await change(night)).status).toBe(200);
    expect((await change({ urgent_severity: 'high' })).status).toBe(200);
    expect(await preferences()).toEqual({ ...night, urgent_severity: 'high' });
    for (const wrong of [{ quiet_from: null }, { quiet_from: '07:00' }]) {
      const field = `notification_preferences.${wrong.quiet_from === null ? 'quiet_from' : 'quiet_until'}`;
      expect(await change(wrong)).toMatchObject({ status: 400, body: { code: 'invalid_quiet_hours', field } });
    }
    for (const wrong of [{ quiet_from: '25:00' }, { urgent_severity: 'loud' }, { timezone: 'UTC' }])
      expect((await change(wrong)).status).toBe(422);
    expect(await preferences()).toEqual({ ...night, urgent_severity: 'high' });
    const { call: stranger } = await member();
    expect((await stranger('POST', `/users/${id}`, { notification_preferences: none })).status).toBe(403);
  });
  test('200: an update that changes nothing leaves the timestamp and emits no event', async () => {
    const { id } = await member();
    const { body: before } = await api.call('GET', `/users/${id}`);
    const again = await api.call('POST', `/users/${id}`, {
      full_name: before.full_name,
      email: before.email,
      is_active: true,
    });
    expect(again.status).toBe(200);
    expect(again.body.updated_at).toBe(before.updated_at);
    expect(await eventsOf(id)).toEqual([]);
  });
  test('200: a disabled user gets 401 from the next request on, and can work again when enabled', async () => {
    const { call, id } = await member();
    expect((await api.call('POST', `/users/${id}`, { is_active: false })).body).toMatchObject({
      status: 'disabled',
      is_active: false,
    });
    expect((await call('GET', '/users/me')).status).toBe(401);
    expect((await api.call('POST', `/users/${id}`, { is_active: true })).body.status).toBe('active');
    expect((await call('GET', '/users/me')).status).toBe(200);
    expect(await eventsOf(id)).toEqual(['user_disabled', 'user_enabled']);
  });
  test('200: enabling a user with an unaccepted invitation restores the invited state', async () => {
    const { body: user } = await api.call('POST', '/users', { email: 'open@example.org', full_name: 'Open' });
    await api.call('POST', `/users/${user.id}`, { is_active: false });
    expect((await api.call('POST', `/users/${user.id}`, { is_active: true })).body.status).toBe('invited');
  });
  test('200: role_ids replaces all roles, from the next request on', async () => {
    const { call, id } = await member(['cases.update']);
    const changed = await api.call('POST', `/users/${id}`, { role_ids: [await idOfRole('Billing')] });
    expect(changed.body.roles.map((role: { name: string }) => role.name)).toEqual(['Billing']);
    expect((await call('GET', '/users/me')).body.permissions).toEqual(['billing.read']);
    expect(await eventsOf(id)).toEqual(['role_assigned', 'role_unassigned']);
    expect((await api.call('POST', `/users/${id}`, { role_ids: [] })).body.roles).toEqual([]);
  });
  test('400 immutable_field for another email address', async () => {
    const { id } = await member();
    const answer = await api.call('POST', `/users/${id}`, { email: 'new@example.org' });
    expect(answer).toMatchObject({ status: 400, body: { code: 'immutable_field', field: 'email' } });
  });
  test('400 cannot_disable_self', async () => {
    const answer = await api.call('POST', `/users/${t.user_id}`, { is_active: false });
    expect(answer).toMatchObject({ status: 400, body: { code: 'cannot_disable_self' } });
  });
  test('400 last_administrator, for the caller and for other users', async () => {
    const manager = await member([...SYSTEM_ROLES.Administrator]);
    for (const [call, body] of [
      [api.call, { role_ids: [] }],
      [manager.call, { role_ids: [] }],
      [manager.call, { is_active: false }],
    ] as const) {
      expect(await call('POST', `/users/${t.user_id}`, body)).toMatchObject({
        status: 400,
        body: { code: 'last_administrator' },
      });
    }
    expect((await api.call('GET', '/users/me')).body.roles).toMatchObject([{ name: 'Administrator' }]);
  });
  test('400 cannot_grant_unheld_permission, also for the caller', async () => {
    const { call, id } = await member(['users.manage']);
    const answer = await call('POST', `/users/${id}`, { role_ids: [await idOfRole('Administrator')] });
    expect(answer).toMatchObject({ status: 400, body: { code: 'cannot_grant_unheld_permission' } });
    expect((await call('GET', '/users/me')).body.permissions).toEqual(['users.manage']);
  });
  test('400 invalid_reference', async () => {
    const answer = await api.call('POST', `/users/${t.user_id}`, { role_ids: [UNKNOWN] });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_reference', role_ids: [UNKNOWN] } });
  });
  test('402: enabling over the limit of the plan', async () => {
    const other = await api.otherAccount();
    const disabled = (await other.call('POST', '/users', { email: 'd@example.org', full_name: 'D' })).body.id;
    await other.call('POST', `/users/${disabled}`, { is_active: false });
    await other.call('POST', '/users', { email: 'e@example.org', full_name: 'E' });
    await db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, other.account_id));
    const answer = await other.call('POST', `/users/${disabled}`, { is_active: true });
    expect(answer).toMatchObject({ status: 402, body: { code: 'plan_limit_reached', limit: 'max_users' } });
  });
  test('403: another user, or more than the own profile, needs users.manage; before 404', async () => {
    const { call, id } = await member(['roles.manage']);
    for (const [user, body] of [
      [t.user_id, { full_name: 'X' }],
      [UNKNOWN, { full_name: 'X' }],
      [id, { is_active: true }],
      [id, { full_name: 'X', role_ids: [] }],
    ] as const) {
      const answer = await call('POST', `/users/${user}`, body);
      expect(answer).toMatchObject({ status: 403, body: { required_permission: 'users.manage' } });
    }
  });
  test('404, 401', async () => {
    const other = await api.otherAccount();
    const foreign = (await other.call('GET', '/users/me')).body.id;
    for (const id of [UNKNOWN, 'x', foreign]) {
      expect((await api.call('POST', `/users/${id}`, { full_name: 'X' })).status).toBe(404);
    }
    expect((await api.anonymous('POST', `/users/${t.user_id}`, { full_name: 'X' })).status).toBe(401);
  });
  test.each([
    [{}, ['body'], 'value_error'],
    [{ locale: 'not a tag' }, ['body', 'locale'], 'value_error'],
    [{ is_active: 'yes' }, ['body', 'is_active'], 'bool_parsing'],
  ])('422: %j', async (body, loc, type) => {
    const answer = await api.call('POST', `/users/${t.user_id}`, body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0]).toMatchObject({ loc, type });
  });
});

describe('DELETE /users/{user_id}', () => {
  test('204: the keys of the user end at once, the address is free, the event keeps the name', async () => {
    const { call, id } = await member(['cases.update']);
    const { email } = (await call('GET', '/users/me')).body;
    expect(await api.call('DELETE', `/users/${id}`)).toMatchObject({ status: 204, body: null });
    expect((await call('GET', '/users/me')).status).toBe(401);
    expect((await api.call('DELETE', `/users/${id}`)).status).toBe(404);
    const keys = await db.select().from(apiKeys).where(eq(apiKeys.user_id, id));
    expect(keys.every((key) => key.revoked_at !== null)).toBeTrue();
    const again = await api.call('POST', '/users', { email, full_name: 'Again' });
    expect(again.status).toBe(201);
    expect(again.body.id).not.toBe(id);
    const [event] = await db.select().from(events).where(eq(events.user_id, id));
    expect(event).toMatchObject({ event: 'user_removed', payload: { email } });
    expect((event!.payload as { role_names: string[] }).role_names).toHaveLength(1);
  });
  test('400 cannot_delete_self', async () => {
    expect(await api.call('DELETE', `/users/${t.user_id}`)).toMatchObject({
      status: 400,
      body: { code: 'cannot_delete_self' },
    });
  });
  test('400 last_administrator, and nothing changes', async () => {
    const { call } = await member([...SYSTEM_ROLES.Administrator]);
    expect(await call('DELETE', `/users/${t.user_id}`)).toMatchObject({
      status: 400,
      body: { code: 'last_administrator' },
    });
    expect((await api.call('GET', '/users/me')).status).toBe(200);
    const [row] = await db.select().from(users).where(eq(users.id, t.user_id));
    expect(row!.deleted_at).toBeNull();
  });
  test('403, 404, 401', async () => {
    const { call } = await member();
    expect((await call('DELETE', `/users/${UNKNOWN}`)).status).toBe(403);
    expect((await api.call('DELETE', `/users/${UNKNOWN}`)).status).toBe(404);
    expect((await api.anonymous('DELETE', `/users/${UNKNOWN}`)).status).toBe(401);
  });
});
