import { describe, expect, test } from 'bun:test';
import { and, eq, inArray, sql } from 'drizzle-orm';
import { apiKeys, events, users } from '../../db/schema/index.ts';
import { bootstrap } from '../../server/process/bootstrap.ts';
import { openSession } from '../../server/resources/users/sessions.ts';
import { announceExpiringKeys } from '../../server/worker/expiry-notices.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { rpc, rpcQuery } from '../support/rpc.ts';

const t = await testDeps();
const api = testApi(t);
const { db } = t.deps;

const member = async (permissions: Parameters<typeof api.keyWith>[0] = []) => {
  const key = await api.keyWith(permissions);
  const { body } = await api.as(key)('GET', '/users/me');
  return { key, call: api.as(key), id: body.id as string };
};
const hoursUntil = (instant: string) => (Date.parse(instant) - Date.now()) / 3_600_000;
const setEnd = (user_id: string, interval: string) =>
  db
    .update(apiKeys)
    .set({ expires_at: sql`now() + ${interval}::interval` })
    .where(eq(apiKeys.user_id, user_id));
const liveKeys = async (user_id: string) =>
  (await db.select().from(apiKeys).where(eq(apiKeys.user_id, user_id))).filter(
    (key) => key.revoked_at === null && Date.parse(key.expires_at) > Date.now(),
  );
const eventsOf = (user_id: string) =>
  db.select().from(events).where(eq(events.user_id, user_id)).orderBy(events.occurred_at, events.id);

describe('users.rotateKey', () => {
  test('returns a key for 90 days; the previous one ends after the grace period', async () => {
    const { key, call, id } = await member();
    await setEnd(id, '30 days');
    const { status, result } = await rpc(call, 'users.rotateKey', { grace_hours: 2 });
    expect(status).toBe(200);
    expect(hoursUntil(result.expires_at)).toBeCloseTo(90 * 24, 1);
    expect(hoursUntil(result.previous.expires_at)).toBeCloseTo(2, 1);
    for (const one of [key, result.api_key]) expect((await api.as(one)('GET', '/users/me')).body.id).toBe(id);
    const [event] = await eventsOf(id);
    expect(event).toMatchObject({ event: 'api_key_rotated', payload: { user_id: id, prefix: result.prefix } });
    const stored = JSON.stringify([await db.select().from(apiKeys), await db.select().from(events)]);
    expect(stored).not.toContain(result.api_key);
  });
  test('has a grace period of 24 hours by default, which never extends the life of a key', async () => {
    const { call, id } = await member();
    await setEnd(id, '30 days');
    expect(hoursUntil((await rpc(call, 'users.rotateKey')).result.previous.expires_at)).toBeCloseTo(24, 1);
    await setEnd(id, '90 minutes');
    const again = await rpc(call, 'users.rotateKey', { grace_hours: 168 });
    expect(hoursUntil(again.result.previous.expires_at)).toBeCloseTo(1.5, 1);
  });
  test('without grace, the previous key responds 401 at once', async () => {
    const { key, call } = await member();
    const { result } = await rpc(call, 'users.rotateKey', { grace_hours: 0 });
    expect((await api.as(key)('GET', '/users/me')).status).toBe(401);
    expect((await api.as(result.api_key)('GET', '/users/me')).status).toBe(200);
  });
  test('keeps at most two live keys: the key of the call and the new one', async () => {
    const { key, call, id } = await member();
    const second = (await rpc(call, 'users.rotateKey')).result;
    const third = (await rpc(call, 'users.rotateKey')).result;
    expect((await liveKeys(id)).map((one) => one.prefix).toSorted()).toEqual(
      [key.slice(0, 8), third.prefix].toSorted(),
    );
    expect((await api.as(second.api_key)('GET', '/users/me')).status).toBe(401);
  });
  test('leaves two keys after parallel rotations with both live keys', async () => {
    const { call, id } = await member();
    const second = api.as((await rpc(call, 'users.rotateKey')).result.api_key);
    const answers = await Promise.all([call, second, call, second].map((one) => rpc(one, 'users.rotateKey')));
    expect(answers.map((answer) => answer.status)).toContain(200);
    expect(answers.filter((answer) => answer.status >= 500)).toEqual([]);
    expect(await liveKeys(id)).toHaveLength(2);
  });
  test.each([-1, 169, 1.5, '3'])('422 for a grace of %p hours', async (grace_hours) => {
    const { status, error } = await rpc(api.call, 'users.rotateKey', { grace_hours });
    expect(status).toBe(422);
    expect(error.code).toBe('validation_error');
  });
  test('does not exist on REST; 401 without a key', async () => {
    expect((await api.call('POST', '/users/me/rotate_key')).status).toBe(404);
    expect((await rpc(api.anonymous, 'users.rotateKey')).status).toBe(401);
  });
});

describe('users.listKeys', () => {
  test('lists the keys of the caller, newest first, never the keys themselves', async () => {
    const { call } = await member();
    const { result } = await rpc(call, 'users.rotateKey');
    const listed = (await rpcQuery(call, 'users.listKeys')).result;
    expect(listed.map((key: { status: string }) => key.status)).toEqual(['live', 'live']);
    expect(listed[0]).toMatchObject({ id: result.id, is_current: false });
    expect(listed[1].is_current).toBeTrue();
    expect(Object.keys(listed[0])).not.toContain('hash');
  });
  test('lists keys of other users only for user managers', async () => {
    const { call, id } = await member();
    expect((await rpcQuery(api.call, 'users.listKeys', { user_id: id })).result).toHaveLength(1);
    expect((await rpcQuery(call, 'users.listKeys', { user_id: t.user_id })).status).toBe(403);
    const other = await api.otherAccount();
    expect((await rpcQuery(other.call, 'users.listKeys', { user_id: id })).status).toBe(404);
  });
});

describe('users.revokeKey', () => {
  test('ends a key at once, and only once', async () => {
    const { call, id } = await member();
    const { result } = await rpc(call, 'users.rotateKey');
    for (const _ of [1, 2]) expect((await rpc(call, 'users.revokeKey', { key_id: result.id })).status).toBe(200);
    expect((await api.as(result.api_key)('GET', '/users/me')).status).toBe(401);
    expect((await eventsOf(id)).map((event) => event.event)).toEqual(['api_key_rotated', 'api_key_revoked']);
  });
  test('400 key_in_use for the key of the call', async () => {
    const { call } = await member();
    const [own] = (await rpcQuery(call, 'users.listKeys')).result;
    expect(await rpc(call, 'users.revokeKey', { key_id: own.id })).toMatchObject({
      status: 400,
      error: { code: 'key_in_use' },
    });
  });
  test('403 for keys of other users, 404 for those of other accounts', async () => {
    const { call, id } = await member();
    const [theirs] = (await rpcQuery(api.call, 'users.listKeys')).result;
    expect((await rpc(call, 'users.revokeKey', { key_id: theirs.id })).status).toBe(403);
    const [own] = (await rpcQuery(api.call, 'users.listKeys', { user_id: id })).result;
    const other = await api.otherAccount();
    expect((await rpc(other.call, 'users.revokeKey', { key_id: own.id })).status).toBe(404);
    expect((await rpc(api.call, 'users.revokeKey', { key_id: own.id })).status).toBe(200);
    expect((await call('GET', '/users/me')).status).toBe(401);
  });
});

describe('the expiry of a key', () => {
  const emitted = async (id: string) =>
    (await eventsOf(id)).map(({ event, payload }) => [event, (payload as { days_remaining: number }).days_remaining]);

  test('is announced 14, 7 and 1 days before and on expiry, each once, by any number of workers', async () => {
    const { id } = await member();
    const ends = ['15 days', '13.5 days', '6.5 days', '20 hours', '-1 minute'];
    for (const end of ends) {
      await setEnd(id, end);
      await Promise.all(Array.from({ length: 4 }, () => announceExpiringKeys(t.deps)));
      await announceExpiringKeys(t.deps);
    }
    expect(await emitted(id)).toEqual([
      ['api_key_expiring', 14],
      ['api_key_expiring', 7],
      ['api_key_expiring', 1],
      ['api_key_expired', 0],
    ]);
  });
  test('is announced once when the job did not run for a long time', async () => {
    const { id } = await member();
    await setEnd(id, '12 hours');
    await announceExpiringKeys(t.deps);
    expect(await emitted(id)).toEqual([['api_key_expiring', 1]]);
  });
  test('is not announced for revoked keys, rotated keys, and inactive users', async () => {
    const [revoked, rotated, disabled] = [await member(), await member(), await member()];
    await setEnd(revoked.id, '3 days');
    await db.update(apiKeys).set({ revoked_at: sql`now()` }).where(eq(apiKeys.user_id, revoked.id));
    await rpc(rotated.call, 'users.rotateKey');
    await setEnd(disabled.id, '3 days');
    await db.update(users).set({ status: 'disabled' }).where(eq(users.id, disabled.id));
    await announceExpiringKeys(t.deps);
    const ids = [revoked.id, rotated.id, disabled.id];
    const found = await db
      .select({ id: events.id })
      .from(events)
      .where(and(inArray(events.user_id, ids), inArray(events.event, ['api_key_expiring', 'api_key_expired'])));
    expect(found).toEqual([]);
  });
  test('is announced again after the operator extends the key', async () => {
    const { secrets, config } = t.deps;
    await setEnd(t.user_id, '-1 minute');
    await announceExpiringKeys(t.deps);
    await bootstrap(db, { secrets, config });
    expect((await api.call('GET', '/users/me')).body.api_key.days_remaining).toBeGreaterThan(88);
    await setEnd(t.user_id, '5.5 days');
    await announceExpiringKeys(t.deps);
    expect((await emitted(t.user_id)).slice(-2)).toEqual([
      ['api_key_expired', 0],
      ['api_key_expiring', 6],
    ]);
  });
  test('is announced for every key, also when there are more than one batch holds', async () => {
    const rows = Array.from({ length: 230 }, (_, n) => ({
      account_id: t.account_id,
      user_id: t.user_id,
      prefix: `many${n}`,
      hash: `hash ${n}`,
      expires_at: new Date(Date.now() + 86_400_000 * 3).toISOString(),
    }));
    await db.insert(apiKeys).values(rows);
    const counts = await Promise.all([announceExpiringKeys(t.deps), announceExpiringKeys(t.deps)]);
    const rest = await announceExpiringKeys(t.deps);
    expect(counts[0] + counts[1] + rest).toBe(230);
    expect(await announceExpiringKeys(t.deps)).toBe(0);
  });
});

describe('a key of a program', () => {
  const create = (call: typeof api.call, body: object) => call('POST', '/api_keys', { name: 'Deployment', ...body });

  test('POST /api_keys 201, 400: has a name, scopes and an expiry, and ends no other key', async () => {
    const { key, call, id } = await member(['connections.run', 'connections.update']);
    const { status, body } = await create(call, {
      scopes: ['connections.run', 'connections.run'],
      expires_in_days: 10,
    });
    expect(status).toBe(201);
    expect(hoursUntil(body.expires_at)).toBeCloseTo(240, 1);
    await create(call, { name: 'Another' });
    await rpc(call, 'users.rotateKey', { grace_hours: 24 });
    expect(await liveKeys(id)).toHaveLength(4);
    expect((await api.as(key)('GET', '/users/me')).status).toBe(200);
    const { body: listed } = await call('GET', '/users/me/api_keys');
    expect(listed.find((one: { id: string }) => one.id === body.id)).toMatchObject({
      name: 'Deployment',
      scopes: ['connections.run'],
      status: 'live',
      last_used_at: null,
    });
    for (const wrong of [
      { expires_in_days: 0 },
      { expires_in_days: 366 },
      { scopes: [] },
      { scopes: ['all'] },
      { name: '' },
    ]) {
      expect((await create(call, wrong)).status).toBe(422);
    }
    await db.insert(apiKeys).values(
      Array.from({ length: 50 }, (_, n) => ({
        account_id: t.account_id,
        user_id: id,
        prefix: 'p',
        name: `${n}`,
        hash: `${id} ${n}`,
        expires_at: body.expires_at,
      })),
    );
    expect((await create(call, {})).body.code).toBe('too_many_keys');
  });

  test('may do what both its scopes and the roles of its user allow, at that moment', async () => {
    const { call, id } = await member(['roles.manage', 'billing.read']);
    const { body } = await create(call, { scopes: ['roles.manage', 'users.manage'] });
    const program = api.as(body.api_key);
    expect((await program('GET', '/users/me')).body.permissions).toEqual(['roles.manage']);
    expect((await program('GET', '/billing/plans')).status).toBe(403);
    expect((await program('POST', '/users', { email: 'x@example.test', full_name: 'X' })).status).toBe(403);
    await db.execute(sql`delete from user_roles where user_id = ${id}`);
    expect((await program('GET', '/users/me')).body.permissions).toEqual([]);
  });

  test('creates no key with more than its own scopes, and is followed by one with the same', async () => {
    const { call, id } = await member(['connections.run', 'connections.update']);
    const { body } = await create(call, { scopes: ['connections.run'], expires_in_days: 7 });
    const program = api.as(body.api_key);
    for (const scopes of [null, ['connections.run', 'connections.update']]) {
      expect((await create(program, { scopes })).body.code).toBe('scope_exceeds_key');
    }
    expect((await create(program, { scopes: ['connections.run'] })).status).toBe(201);
    const { result } = await rpc(program, 'users.rotateKey', { grace_hours: 0 });
    expect(hoursUntil(result.expires_at)).toBeCloseTo(7 * 24, 1);
    const next = await api.as(result.api_key)('GET', '/users/me');
    expect(next.body).toMatchObject({ id, permissions: ['connections.run'] });
    expect((await program('GET', '/users/me')).status).toBe(401);
    expect((await call('GET', '/users/me')).status).toBe(200);
  });
});

describe('a service account', () => {
  test('POST /service_accounts 201, 400; GET /service_accounts 200: has roles and keys, and no session', async () => {
    const role = (await api.call('POST', '/roles', { name: 'Runner', permissions: ['connections.run'] })).body;
    const made = await api.call('POST', '/service_accounts', { name: 'Deployment', role_ids: [role.id] });
    expect(made.status).toBe(201);
    const { id } = made.body;
    expect((await api.call('POST', '/service_accounts', { name: 'X', role_ids: [id] })).body.code).toBe(
      'invalid_reference',
    );
    const created = await api.call('POST', '/api_keys', { name: 'ci', user_id: id });
    expect(created.status).toBe(201);
    const program = api.as(created.body.api_key);
    expect((await program('GET', '/users/me')).body).toMatchObject({ id, permissions: ['connections.run'] });
    const { body: accounts } = await api.call('GET', '/service_accounts');
    expect(accounts).toMatchObject([
      { id, name: 'Deployment', is_active: true, live_keys: 1, roles: [{ name: 'Runner' }] },
    ]);
    const { body: people } = await api.call('GET', '/users');
    expect(people.map((one: { id: string }) => one.id)).not.toContain(id);
    await expect(
      openSession(t.deps, created.body.api_key, { request_id: 'r', address: '', user_agent: null }),
    ).rejects.toMatchObject({ status: 403, code: 'is_service_account' });
    expect((await api.call('POST', `/users/${id}/invitation`)).body.code).toBe('is_service_account');
    await api.call('POST', `/users/${id}`, { is_active: false });
    expect((await program('GET', '/users/me')).status).toBe(401);
    await api.call('POST', `/users/${id}`, { is_active: true });
    expect((await program('GET', '/users/me')).status).toBe(200);
    expect((await api.call('DELETE', `/users/${id}`)).status).toBe(204);
    expect((await program('GET', '/users/me')).status).toBe(401);
    expect((await api.call('GET', '/service_accounts')).body).toEqual([]);
  });

  test('gets keys only from callers with its permissions; people get none from others', async () => {
    const role = (await api.call('POST', '/roles', { name: 'Biller', permissions: ['billing.read'] })).body;
    const { id } = (await api.call('POST', '/service_accounts', { name: 'Bills', role_ids: [role.id] })).body;
    const manager = await member(['users.manage']);
    expect((await manager.call('POST', '/api_keys', { name: 'x', user_id: id })).body.code).toBe('permission_denied');
    expect((await manager.call('POST', '/service_accounts', { name: 'x', role_ids: [role.id] })).body.code).toBe(
      'cannot_grant_unheld_permission',
    );
    const viewer = await member();
    expect((await viewer.call('POST', '/api_keys', { name: 'x', user_id: id })).status).toBe(403);
    expect((await api.call('POST', '/api_keys', { name: 'x', user_id: viewer.id })).body.code).toBe(
      'not_a_service_account',
    );
    const other = await api.otherAccount();
    expect((await other.call('POST', '/api_keys', { name: 'x', user_id: id })).status).toBe(404);
  });

  test('is not the last administrator', async () => {
    const other = await api.otherAccount();
    const { body: roles } = await other.call('GET', '/roles');
    const administrator = roles.find((one: { name: string }) => one.name === 'Administrator').id as string;
    const { body: me } = await other.call('GET', '/users/me');
    await other.call('POST', `/roles/${administrator}/users/${me.id}`);
    await other.call('POST', '/service_accounts', { name: 'Root', role_ids: [administrator] });
    const { status, body } = await other.call('DELETE', `/roles/${administrator}/users/${me.id}`);
    expect([status, body.code]).toEqual([400, 'last_administrator']);
  });
});
