import { describe, expect, test } from 'bun:test';
import { and, eq, inArray } from 'drizzle-orm';
import { apiKeys, events, roles, userRoles, users } from '../../db/schema/index.ts';
import { makeApiKey } from '../../server/platform/api-keys.ts';
import type { Permission } from '../../server/api/permissions.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

const t = await testDeps();
const api = testApi(t);
const { db, secrets } = t.deps;
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

const idOfRole = async (name: string) => (await db.select().from(roles).where(eq(roles.name, name)))[0]!.id;
const member = async (permissions: Permission[] = []) => {
  const call = api.as(await api.keyWith(permissions));
  return { call, id: (await call('GET', '/users/me')).body.id as string };
};
const newRole = async (permissions: Permission[]) =>
  (await api.call('POST', '/roles', { name: `Role ${Bun.randomUUIDv7()}`, permissions })).body.id as string;

/** A user with the Administrator role in the first account. */
async function newAdministrator(status: 'active' | 'disabled' | 'invited' = 'active') {
  const email = `${Bun.randomUUIDv7()}@example.test`;
  const account = { account_id: t.account_id };
  const [user] = await db
    .insert(users)
    .values({ ...account, email, full_name: 'Second', status })
    .returning();
  await db.insert(userRoles).values({ user_id: user!.id, role_id: await idOfRole('Administrator') });
  const key = makeApiKey();
  const expires_at = new Date(Date.now() + 86_400_000).toISOString();
  const hash = secrets.hmac('api_key', key);
  await db.insert(apiKeys).values({ ...account, user_id: user!.id, prefix: key.slice(0, 8), hash, expires_at });
  return { id: user!.id, call: api.as(key) };
}

async function activeAdministrators(): Promise<number> {
  const found = await db
    .select({ id: users.id, deleted_at: users.deleted_at })
    .from(users)
    .innerJoin(userRoles, eq(userRoles.user_id, users.id))
    .where(
      and(
        eq(userRoles.role_id, await idOfRole('Administrator')),
        eq(users.status, 'active'),
        eq(users.account_id, t.account_id),
      ),
    );
  return found.filter((user) => user.deleted_at === null).length;
}

describe('POST /roles/{role_id}/users/{user_id}', () => {
  test('200: the role applies from the next request on; a second request changes nothing', async () => {
    const role_id = await newRole(['billing.read']);
    const { call, id } = await member();
    for (const _ of [1, 2]) {
      const answer = await api.call('POST', `/roles/${role_id}/users/${id}`);
      expect(answer).toMatchObject({ status: 200, body: { id: role_id, user_ids: [id], users_count: 1 } });
    }
    expect((await call('GET', '/users/me')).body.permissions).toEqual(['billing.read']);
    const emitted = await db.select().from(events).where(eq(events.user_id, id));
    expect(emitted).toMatchObject([{ event: 'role_assigned', payload: { role_id, user_id: id } }]);
  });
  test('400 cannot_grant_unheld_permission, for other users and for the caller', async () => {
    const { call, id } = await member(['roles.manage']);
    const role_id = await idOfRole('Administrator');
    for (const user of [id, (await member()).id]) {
      const answer = await call('POST', `/roles/${role_id}/users/${user}`);
      expect(answer).toMatchObject({ status: 400, body: { code: 'cannot_grant_unheld_permission' } });
    }
  });
  test('404 for the role and for the user, also of other accounts', async () => {
    const other = await api.otherAccount();
    const role = await newRole(['cases.update']);
    const foreign = (await other.call('GET', '/users/me')).body.id;
    for (const [role_id, user_id, detail] of [
      [UNKNOWN, t.user_id, 'Role not found'],
      ['x', t.user_id, 'Role not found'],
      [role, UNKNOWN, 'User not found'],
      [role, foreign, 'User not found'],
    ]) {
      const answer = await api.call('POST', `/roles/${role_id}/users/${user_id}`);
      expect(answer).toMatchObject({ status: 404, body: { detail } });
    }
    expect((await other.call('POST', `/roles/${role}/users/${foreign}`)).status).toBe(404);
  });
  test('403, 401, 422', async () => {
    const { call } = await member(['users.manage']);
    expect((await call('POST', `/roles/${UNKNOWN}/users/${UNKNOWN}`)).status).toBe(403);
    expect((await api.anonymous('POST', `/roles/${UNKNOWN}/users/${UNKNOWN}`)).status).toBe(401);
    expect((await api.call('POST', `/roles/${UNKNOWN}/users/${UNKNOWN}?x=1`)).status).toBe(422);
  });
  test('a role deleted in parallel is either deleted or granted', async () => {
    for (let round = 0; round < 5; round += 1) {
      const role_id = await newRole(['cases.update']);
      const { id } = await member();
      const [given, deleted] = await Promise.all([
        api.call('POST', `/roles/${role_id}/users/${id}`),
        api.call('DELETE', `/roles/${role_id}`),
      ]);
      expect([
        [200, 400],
        [404, 204],
      ]).toContainEqual([given.status, deleted.status]);
    }
  });
});

describe('DELETE /roles/{role_id}/users/{user_id}', () => {
  test('204', async () => {
    const role_id = await newRole(['billing.read']);
    const { call, id } = await member();
    await api.call('POST', `/roles/${role_id}/users/${id}`);
    expect((await api.call('DELETE', `/roles/${role_id}/users/${id}`)).status).toBe(204);
    expect((await call('GET', '/users/me')).body.permissions).toEqual([]);
    const emitted = await db.select().from(events).where(eq(events.user_id, id)).orderBy(events.occurred_at);
    expect(emitted.map((event) => event.event)).toEqual(['role_assigned', 'role_unassigned']);
  });
  test('404 for the role, the user, and a user without the role', async () => {
    const role = await newRole(['cases.update']);
    for (const path of [`${UNKNOWN}/users/${t.user_id}`, `${role}/users/${UNKNOWN}`, `${role}/users/${t.user_id}`]) {
      expect((await api.call('DELETE', `/roles/${path}`)).status).toBe(404);
    }
  });
  test('400 last_administrator; disabled, invited and deleted users do not count', async () => {
    await newAdministrator('disabled');
    await newAdministrator('invited');
    const gone = await newAdministrator();
    await api.call('DELETE', `/users/${gone.id}`);
    const answer = await api.call('DELETE', `/roles/${await idOfRole('Administrator')}/users/${t.user_id}`);
    expect(answer).toMatchObject({ status: 400, body: { code: 'last_administrator' } });
    expect(await activeAdministrators()).toBe(1);
  });
  test('403, 401', async () => {
    const { call } = await member();
    expect((await call('DELETE', `/roles/${UNKNOWN}/users/${UNKNOWN}`)).status).toBe(403);
    expect((await api.anonymous('DELETE', `/roles/${UNKNOWN}/users/${UNKNOWN}`)).status).toBe(401);
  });
});

const administrator = await idOfRole('Administrator');

describe('an account keeps an administrator when two remove each other in parallel', () => {
  test.each<[string, (call: typeof api.call, other: string) => ReturnType<typeof api.call>]>([
    ['take the role away', (call, other) => call('DELETE', `/roles/${administrator}/users/${other}`)],
    ['set other roles', (call, other) => call('POST', `/users/${other}`, { role_ids: [] })],
    ['disable', (call, other) => call('POST', `/users/${other}`, { is_active: false })],
    ['remove', (call, other) => call('DELETE', `/users/${other}`)],
  ])('%s', async (_, act) => {
    for (let round = 0; round < 4; round += 1) {
      const [one, two] = [await newAdministrator(), await newAdministrator()];
      // Only these two are left.
      await db.update(users).set({ status: 'disabled' }).where(eq(users.id, t.user_id));
      const answers = await Promise.all([act(one.call, two.id), act(two.call, one.id)]);
      expect(await activeAdministrators()).toBe(1);
      expect(answers.filter((answer) => answer.status < 300)).toHaveLength(1);
      const refused = answers.find((answer) => answer.status >= 300)!;
      expect(refused.status === 401 || refused.status === 403 || refused.body.code === 'last_administrator').toBeTrue();
      await db.update(users).set({ status: 'active' }).where(eq(users.id, t.user_id));
      await db.delete(userRoles).where(inArray(userRoles.user_id, [one.id, two.id]));
    }
  });
});
