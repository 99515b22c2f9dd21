import { describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { apiKeys, users } from '../../db/schema/index.ts';
import { ExpandedUserSchema } from '../../server/resources/users/schema.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

const context = await testDeps();
const api = testApi(context);
const { db } = context.deps;

describe('GET /users/me', () => {
  test("200 returns the user, the permissions, and the key's metadata without the key", async () => {
    const { status, body } = await api.call('GET', '/users/me');
    expect(status).toBe(200);
    expect(ExpandedUserSchema.strict().safeParse(body).error).toBeUndefined();
    expect(body).toMatchObject({ id: context.user_id, account_id: context.account_id, is_me: true, is_active: true });
    expect(body.permissions).toContain('connections.create');
    expect(body.permissions).not.toContain('cross_account.read');
    expect(body.api_key.days_remaining).toBeWithin(88, 91);
    expect(JSON.stringify(body)).not.toContain(context.api_key);
  });

  test('200 for a user without permissions: all users may read', async () => {
    const { status, body } = await api.as(await api.keyWith([]))('GET', '/users/me');
    expect(status).toBe(200);
    expect(body.permissions).toEqual([]);
  });

  test('401 token_expired when the key has expired', async () => {
    const key = await api.keyWith([]);
    await ofKey(key, { expires_at: sql`now() - interval '1 second'` });
    expect(await api.as(key)('GET', '/users/me')).toMatchObject({ status: 401, body: { code: 'token_expired' } });
  });

  test('401 as soon as the key is revoked', async () => {
    const key = await api.keyWith([]);
    expect((await api.as(key)('GET', '/users/me')).status).toBe(200);
    await ofKey(key, { revoked_at: sql`now()` });
    expect(await api.as(key)('GET', '/users/me')).toMatchObject({ status: 401, body: { code: 'invalid_token' } });
  });

  test.each([
    ['disabled', { status: 'disabled' }],
    ['deleted', { deleted_at: sql`now()` }],
  ])('401 for the key of a %s user', async (_, change) => {
    const key = await api.keyWith([]);
    const { id } = (await api.as(key)('GET', '/users/me')).body;
    await db
      .update(users)
      .set(change as never)
      .where(eq(users.id, id));
    expect(await api.as(key)('GET', '/users/me')).toMatchObject({ status: 401, body: { code: 'invalid_token' } });
  });

  test('401 for a mistyped key', async () => {
    const key = await api.keyWith([]);
    const typo = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
    expect(await api.as(typo)('GET', '/users/me')).toMatchObject({ status: 401, body: { code: 'invalid_token' } });
  });

  test('405 for another method, never the user named "me"', async () => {
    expect((await api.call('PUT', '/users/me')).status).toBe(405);
  });
});

const ofKey = (key: string, change: Record<string, unknown>) =>
  db
    .update(apiKeys)
    .set(change)
    .where(eq(apiKeys.hash, context.deps.secrets.hmac('api_key', key)));
