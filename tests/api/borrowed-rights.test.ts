import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { connections, roles, triggers, userRoles, users } from '../../db/schema/index.ts';
import type { Permission } from '../../server/api/permissions.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf, uniqueName } from '../support/resources.ts';
import { rpc, rpcQuery } from '../support/rpc.ts';

const service = await testDeps();
const { db } = service.deps;
const api = testApi(service);
const { call } = api;
const make = makerOf(call);

/** A caller with some permissions, and with one more. */
const callers = async (some: Permission[], more: Permission) => ({
  without: api.as(await api.keyWith(some)),
  with: api.as(await api.keyWith([...some, more])),
});
const refusal = (required_permission: string | string[]) => ({
  status: 403,
  body: { code: 'permission_denied', required_permission },
});

describe('a trigger acts with the permissions of its editor', () => {
  test.each([
    ['connections.run', { type: 'run_connection' }],
    ['connections.run', { type: 'rerun_run' }],
    ['connections.update', { type: 'pause_connection' }],
  ] as const)('%s for %j', async (needed, action) => {
    const as = await callers(['triggers.update', 'triggers.create'], needed);
    const body = { name: uniqueName('trigger'), rule: 'event == "user_added"', actions: [action] };
    expect(await as.without('POST', '/automation/triggers', body)).toMatchObject(refusal(needed));
    const { id } = (await call('POST', '/automation/triggers', body)).body;
    const path = `/automation/triggers/${id}`;
    const [before] = await db.select().from(triggers).where(eq(triggers.id, id));
    for (const change of [{ rule: 'event == "user_removed"' }, { enabled: true }, { threshold: 2 }, { name: 'x' }]) {
      expect(await as.without('POST', path, change)).toMatchObject(refusal(needed));
    }
    expect((await db.select().from(triggers).where(eq(triggers.id, id)))[0]).toEqual(before);
    expect((await as.without('POST', path, { enabled: false })).status).toBe(200);
    expect((await as.with('POST', path, { enabled: true, rule: 'event == "user_removed"' })).status).toBe(200);
  });
});

test('a connection that runs immediately needs connections.run', async () => {
  const as = await callers(['connections.create'], 'connections.run');
  const [source_id, destination_id] = [(await make.source()).id, (await make.destination()).id];
  const body = (run_immediately: boolean) => ({
    name: uniqueName('borrowed'),
    source_id,
    destination_id,
    run_immediately,
  });
  const count = await db.$count(connections);
  expect(await as.without('POST', '/connections', body(true))).toMatchObject(refusal('connections.run'));
  expect(await db.$count(connections)).toBe(count);
  expect((await as.without('POST', '/connections', body(false))).status).toBe(201);
  expect((await as.with('POST', '/connections', body(true))).status).toBe(201);
});

describe('a user can be changed by those alone who have all permissions of the user', () => {
  const roleWith = async (permissions: Permission[]) => {
    const [role] = await db
      .insert(roles)
      .values({ account_id: service.account_id, name: uniqueName('role'), permissions })
      .returning();
    return role!.id;
  };
  const userWith = async (permissions: Permission[]) => {
    const [user] = await db
      .insert(users)
      .values({
        account_id: service.account_id,
        email: `${Bun.randomUUIDv7()}@example.test`,
        full_name: 'Target',
        status: 'active',
      })
      .returning();
    const role_id = await roleWith(permissions);
    await db.insert(userRoles).values({ user_id: user!.id, role_id });
    return { id: user!.id, role_id };
  };
  const changes: [string, (as: typeof call, target: { id: string; role_id: string }) => ReturnType<typeof call>][] = [
    ['strip', (as, { id }) => as('POST', `/users/${id}`, { role_ids: [] })],
    ['disable', (as, { id }) => as('POST', `/users/${id}`, { is_active: false })],
    ['rename', (as, { id }) => as('POST', `/users/${id}`, { full_name: 'Other' })],
    ['remove a role', (as, { id, role_id }) => as('DELETE', `/roles/${role_id}/users/${id}`)],
    ['shrink a role', (as, { role_id }) => as('POST', `/roles/${role_id}`, { permissions: ['cases.update'] })],
    ['delete', (as, { id }) => as('DELETE', `/users/${id}`)],
  ];

  test.each(changes)('%s', async (_, change) => {
    const as = await callers(['users.manage', 'roles.manage', 'cases.update'], 'billing.read');
    const refused = await change(as.without, await userWith(['cases.update', 'billing.read']));
    expect(refused).toMatchObject(refusal(['billing.read']));
    const done = await change(as.with, await userWith(['cases.update', 'billing.read']));
    expect([200, 204]).toContain(done.status);
  });

  test('revoke a key', async () => {
    const as = await callers(['users.manage'], 'billing.read');
    const target = api.as(await api.keyWith(['billing.read']));
    const { id } = (await target('GET', '/users/me')).body;
    const key_id = (await rpcQuery(call, 'users.listKeys', { user_id: id })).result[0].id;
    expect((await rpc(as.without, 'users.revokeKey', { key_id })).error.code).toBe('permission_denied');
    expect((await rpc(as.with, 'users.revokeKey', { key_id })).status).toBe(200);
  });
});
