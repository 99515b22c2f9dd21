import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accounts, apiKeys, events, roles, users } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { until } from '../support/until.ts';

const t = await testDeps();
const api = testApi(t);
const { db } = t.deps;
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

let created = 0;
const newUser = async (fields: object = {}) => {
  const answer = await api.call('POST', '/users', {
    email: `user${++created}@example.org`,
    full_name: `User ${created}`,
    ...fields,
  });
  expect(answer.status).toBe(201);
  return answer.body;
};
const eventsOf = async (user_id: string) => {
  const rows = await db.select().from(events).where(eq(events.user_id, user_id)).orderBy(events.occurred_at, events.id);
  return rows.map((row) => row.event);
};
const roleNamed = async (name: string) => (await db.select().from(roles).where(eq(roles.name, name)))[0]!;

describe('GET /users', () => {
  test('200: newest first, with the caller marked', async () => {
    const user = await newUser();
    const { status, body } = await api.call('GET', '/users');
    expect(status).toBe(200);
    expect(body[0]).toMatchObject({ id: user.id, is_me: false, roles: [{ name: 'Viewer' }] });
    expect(body.find((one: { is_me: boolean }) => one.is_me).id).toBe(t.user_id);
    expect(Object.keys(body[0])).not.toContain('invitation_hash');
  });
  test('200: never users of another account', async () => {
    const other = await api.otherAccount();
    const { body } = await other.call('GET', '/users');
    expect(body).toHaveLength(1);
    expect(body[0].account_id).toBe(other.account_id);
  });
  test('401 without a key', async () => expect((await api.anonymous('GET', '/users')).status).toBe(401));
  test('422 for an unknown parameter', async () => expect((await api.call('GET', '/users?x=1')).status).toBe(422));
});

describe('POST /users', () => {
  test('201: invited as Viewer, with a link that only this response shows', async () => {
    const user = await newUser({ email: 'Ada@Example.org', timezone: 'Europe/Berlin' });
    expect(user).toMatchObject({
      email: 'ada@example.org',
      status: 'invited',
      is_active: false,
      timezone: 'Europe/Berlin',
    });
    expect(user.roles.map((role: { name: string }) => role.name)).toEqual(['Viewer']);
    expect(user.invited_by).toBe(t.user_id);
    expect(user.invite_link).toMatch(/#token=[0-9a-f-]{36}\.[\w-]{43}$/);
    expect((await api.call('GET', `/users/${user.id}`)).body.invite_link).toBeNull();
    const [row] = await db.select().from(users).where(eq(users.id, user.id));
    expect(JSON.stringify(row)).not.toContain(user.invite_link.split('=')[1]);
    expect(await eventsOf(user.id)).toEqual(['user_added', 'role_assigned']);
  });
  test('201 with the given roles, and without a link when none is requested', async () => {
    const role = await roleNamed('Creator');
    const user = await newUser({ role_ids: [role.id, role.id.toUpperCase()], send_invitation: false });
    expect(user.roles).toEqual([{ id: role.id, name: 'Creator' }]);
    expect(user.invite_link).toBeNull();
  });
  test('400 email_taken, ignoring case', async () => {
    const user = await newUser();
    const answer = await api.call('POST', '/users', { email: user.email.toUpperCase(), full_name: 'Other' });
    expect(answer).toMatchObject({ status: 400, body: { code: 'email_taken', field: 'email', user_id: user.id } });
  });
  test('one of several parallel creates of an address succeeds, the others respond 400', async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => api.call('POST', '/users', { email: 'race@example.org', full_name: 'Race' })),
    );
    expect(answers.map((answer) => answer.status).toSorted()).toEqual([201, 400, 400, 400, 400, 400]);
  });
  test('400 invalid_reference for an unknown role and for a role of another account', async () => {
    const other = await api.otherAccount();
    const foreign = await other.call('POST', '/roles', { name: 'Foreign', permissions: ['cases.update'] });
    for (const id of [UNKNOWN, foreign.body.id]) {
      const answer = await api.call('POST', '/users', { email: 'no@example.org', full_name: 'No', role_ids: [id] });
      expect(answer).toMatchObject({
        status: 400,
        body: { code: 'invalid_reference', field: 'role_ids', role_ids: [id] },
      });
    }
  });
  test('400 cannot_grant_unheld_permission', async () => {
    const manager = api.as(await api.keyWith(['users.manage', 'billing.read']));
    const roleIds = [(await roleNamed('Administrator')).id];
    const answer = await manager('POST', '/users', { email: 'no@example.org', full_name: 'No', role_ids: roleIds });
    expect(answer).toMatchObject({ status: 400, body: { code: 'cannot_grant_unheld_permission' } });
    expect(answer.body.permissions).toContain('roles.manage');
    expect(answer.body.permissions).not.toContain('billing.read');
    const billing = [(await roleNamed('Billing')).id];
    expect(
      (await manager('POST', '/users', { email: 'b@example.org', full_name: 'B', role_ids: billing })).status,
    ).toBe(201);
  });
  test('400 for dates that do not match the range', async () => {
    const answer = await api.call('POST', '/users?start_date=2026-01-01', { email: 'no@example.org', full_name: 'No' });
    expect(answer).toMatchObject({ status: 400, body: { code: 'date_range_conflict' } });
  });
  test('402 at the limit of the plan: of parallel creates at limit − 1, one succeeds', async () => {
    const other = await api.otherAccount();
    await db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, other.account_id));
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => other.call('POST', '/users', { email: `p${n}@example.org`, full_name: 'P' })),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1);
    const refused = answers.find((answer) => answer.status === 402);
    expect(refused?.body).toMatchObject({
      code: 'plan_limit_reached',
      limit: 'max_users',
      limit_value: 2,
      current_value: 2,
    });
  });
  test('403 and 401', async () => {
    const body = { email: 'no@example.org', full_name: 'No' };
    const creator = api.as(await api.keyWith(['connections.create']));
    expect(await creator('POST', '/users', body)).toMatchObject({
      status: 403,
      body: { required_permission: 'users.manage' },
    });
    expect((await api.anonymous('POST', '/users', body)).status).toBe(401);
  });
  test.each([
    [{ full_name: 'A' }, ['body', 'email'], 'missing'],
    [{ email: 'no address', full_name: 'A' }, ['body', 'email'], 'value_error'],
    [{ email: 'a@example.org', full_name: ' ' }, ['body', 'full_name'], 'string_too_short'],
    [{ email: 'a@example.org', full_name: 'A', role_ids: ['x'] }, ['body', 'role_ids', 0], 'uuid_parsing'],
    [{ email: 'a@example.org', full_name: 'A', timezone: 'Mars/Base' }, ['body', 'timezone'], 'value_error'],
    [{ email: 'a@example.org', full_name: 'A', is_admin: true }, ['body', 'is_admin'], 'extra_forbidden'],
  ])('422: %j', async (body, loc, type) => {
    const answer = await api.call('POST', '/users', body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0]).toMatchObject({ loc, type });
  });
});

describe('GET /users/{user_id}', () => {
  test('200', async () => {
    const user = await newUser();
    const { status, body } = await api.call('GET', `/users/${user.id}`);
    expect(status).toBe(200);
    expect(body).toEqual({ ...user, invite_link: null });
  });
  test('404 for an unknown, malformed, deleted or foreign id', async () => {
    const other = await api.otherAccount();
    const foreign = (await other.call('GET', '/users/me')).body.id;
    const gone = await newUser();
    await api.call('DELETE', `/users/${gone.id}`);
    for (const id of [UNKNOWN, 'me2', '%20', gone.id, foreign]) {
      expect(await api.call('GET', `/users/${id}`)).toMatchObject({ status: 404, body: { detail: 'User not found' } });
    }
  });
  test('401', async () => expect((await api.anonymous('GET', `/users/${t.user_id}`)).status).toBe(401));
});

describe('/users/me is not a user id', () => {
  test('GET returns the caller, unsupported methods respond 405', async () => {
    const { status, body } = await api.call('GET', '/users/me');
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: t.user_id, is_me: true, account: { id: t.account_id } });
    expect((await api.call('POST', '/users/me', { full_name: 'X' })).status).toBe(405);
    expect((await api.call('DELETE', '/users/me')).status).toBe(405);
    expect((await api.anonymous('GET', '/users/me')).status).toBe(401);
  });
  test('the key of the call is shown by its prefix only', async () => {
    const { body } = await api.call('GET', '/users/me');
    expect(JSON.stringify(body)).not.toContain(t.api_key);
    expect(body.api_key.days_remaining).toBeWithin(88, 91);
  });
  test('using a key stores the time, and is no change of the user', async () => {
    const own = eq(users.id, t.user_id);
    const [before] = await db.update(users).set({ last_api_request_at: null }).where(own).returning();
    await db.update(apiKeys).set({ last_used_at: null }).where(eq(apiKeys.user_id, t.user_id));
    await api.call('GET', '/users/me');
    const look = async () => (await db.select().from(users).where(own))[0]!;
    await until(async () => (await look()).last_api_request_at !== null);
    expect((await look()).updated_at).toBe(before!.updated_at);
  });
});
