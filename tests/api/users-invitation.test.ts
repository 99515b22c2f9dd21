import { describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { events, users } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { rpc } from '../support/rpc.ts';

const t = await testDeps();
const api = testApi(t);
const { db } = t.deps;

let created = 0;
const invited = async () => {
  const { body } = await api.call('POST', '/users', { email: `guest${++created}@example.org`, full_name: 'Guest' });
  return { id: body.id as string, token: tokenOf(body.invite_link) };
};
const tokenOf = (link: string) => link.split('#token=')[1]!;
const accept = (token: string) => rpc(api.anonymous, 'users.acceptInvitation', { token });
const REFUSED = { status: 400, error: { code: 'invalid_invitation' } };

describe('users.acceptInvitation', () => {
  test('activates the user and returns a first key, without needing a key', async () => {
    const { id, token } = await invited();
    const { status, result } = await accept(token);
    expect(status).toBe(200);
    expect(result.user).toMatchObject({ id, status: 'active', is_active: true });
    expect((await api.as(result.api_key)('GET', '/users/me')).body.id).toBe(id);
    const rows = await db.select().from(events).where(eq(events.user_id, id)).orderBy(events.occurred_at, events.id);
    expect(rows.map((row) => row.event)).toEqual(['user_added', 'role_assigned', 'user_updated', 'api_key_created']);
    expect(rows.at(-1)!.actor).toMatchObject({ type: 'user', id });
    expect(JSON.stringify(rows)).not.toContain(result.api_key);
  });
  test('works once, also for parallel requests', async () => {
    const { token } = await invited();
    const answers = await Promise.all(Array.from({ length: 8 }, () => accept(token)));
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    expect(await accept(token)).toMatchObject(REFUSED);
  });
  test('expires after 7 days', async () => {
    const { id, token } = await invited();
    const [row] = await db.select().from(users).where(eq(users.id, id));
    expect((Date.parse(row!.invitation_expires_at!) - Date.now()) / 86_400_000).toBeCloseTo(7, 2);
    await db.update(users).set({ invitation_expires_at: sql`now()` }).where(eq(users.id, id));
    expect(await accept(token)).toMatchObject(REFUSED);
  });
  test('is refused when the user was disabled or deleted in the meantime', async () => {
    const [disabled, removed] = [await invited(), await invited()];
    await api.call('POST', `/users/${disabled.id}`, { is_active: false });
    await api.call('DELETE', `/users/${removed.id}`);
    for (const { token } of [disabled, removed]) expect(await accept(token)).toMatchObject(REFUSED);
  });
  test('gives the permissions of the moment it was created: it ends when they change, in either direction', async () => {
    const role = async (name: string) =>
      (await api.call('GET', '/roles')).body.find((one: { name: string }) => one.name === name).id as string;
    const [promoted, demoted] = [await invited(), await invited()];
    await api.call('POST', `/users/${demoted.id}`, { role_ids: [await role('Creator')] });
    const { result } = await rpc(api.call, 'users.invite', { user_id: demoted.id });
    await api.call('POST', `/users/${promoted.id}`, { role_ids: [await role('Administrator')] });
    await api.call('POST', `/users/${demoted.id}`, { role_ids: [await role('Viewer')] });
    for (const token of [promoted.token, tokenOf(result.invite_link)]) {
      expect(await accept(token)).toMatchObject(REFUSED);
    }
  });
  test('refuses an invalid token', async () => {
    expect(await accept('nobody-made-this')).toMatchObject(REFUSED);
    for (const input of [{}, { token: 5 }, { token: '' }, { token: 'a', x: 1 }]) {
      expect((await rpc(api.anonymous, 'users.acceptInvitation', input)).status).toBe(422);
    }
  });
});

describe('users.invite', () => {
  test('a new link replaces the previous one', async () => {
    const { id, token } = await invited();
    const { result } = await rpc(api.call, 'users.invite', { user_id: id });
    expect(await accept(token)).toMatchObject(REFUSED);
    expect((await accept(tokenOf(result.invite_link))).status).toBe(200);
  });
  test('lets a user with a lost key sign in again, with at most two live keys', async () => {
    const { id, token } = await invited();
    const keys = [(await accept(token)).result.api_key];
    for (const _ of [1, 2]) {
      const { result } = await rpc(api.call, 'users.invite', { user_id: id });
      keys.push((await accept(tokenOf(result.invite_link))).result.api_key);
    }
    const statuses = await Promise.all(keys.map(async (key) => (await api.as(key)('GET', '/users/me')).status));
    expect(statuses).toEqual([401, 200, 200]);
  });
  test('is refused for users with more permissions than the caller, whom the link would impersonate', async () => {
    const manager = api.as(await api.keyWith(['users.manage']));
    const answer = await rpc(manager, 'users.invite', { user_id: t.user_id });
    expect(answer).toMatchObject({ status: 400, error: { code: 'cannot_grant_unheld_permission' } });
  });
  test('400 user_disabled, 403, 404', async () => {
    const { id } = await invited();
    await api.call('POST', `/users/${id}`, { is_active: false });
    expect(await rpc(api.call, 'users.invite', { user_id: id })).toMatchObject({
      status: 400,
      error: { code: 'user_disabled' },
    });
    const unprivileged = api.as(await api.keyWith([]));
    expect((await rpc(unprivileged, 'users.invite', { user_id: id })).status).toBe(403);
    const other = await api.otherAccount();
    expect((await rpc(other.call, 'users.invite', { user_id: id })).status).toBe(404);
  });
});
