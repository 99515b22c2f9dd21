import { describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { apiKeys, events, sessions, users } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { until } from '../support/until.ts';

const context = await testDeps();
const { deps } = context;
const api = testApi(context);
const app = createApp(deps);
const CONSOLE = { 'x-requested-by': 'console', 'sec-fetch-site': 'same-origin', origin: 'http://localhost' };

interface Sent {
  method?: string;
  body?: object;
  headers?: Record<string, string>;
}

function send(path: string, { method = 'GET', body, headers = {} }: Sent = {}) {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  const request = { method, headers: { ...type, ...headers }, ...(body && { body: JSON.stringify(body) }) };
  return app.handle(new Request(`http://localhost${path}`, request));
}

const signIn = (api_key: unknown, headers: Record<string, string> = CONSOLE) =>
  send('/console/session', { method: 'POST', body: { api_key }, headers });

/** A new user with a key, and the cookie of its session. */
async function session() {
  const key = await api.keyWith([]);
  const answer = await signIn(key);
  const cookie = answer.headers.get('set-cookie')!.split(';')[0]!;
  const [row] = await deps.db
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.hash, deps.secrets.hmac('api_key', key)));
  return { key, cookie, row: row! };
}

const me = (cookie: string, headers: Record<string, string> = CONSOLE) =>
  send('/trpc/users.me', { headers: { ...headers, cookie } });
const codeOf = async (answer: Response) => {
  const body = (await answer.json()) as { code?: string; error?: { data: { code: string } } };
  return body.code ?? body.error?.data.code;
};

describe('signing in', () => {
  test('sets a cookie hidden from scripts and other sites, and stores only its hash', async () => {
    const answer = await signIn(context.api_key);
    expect(answer.status).toBe(204);
    const cookie = answer.headers.get('set-cookie')!;
    expect(cookie).toMatch(/^session=[\w-]{43};/);
    for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=2592000']) {
      expect(cookie).toInclude(attribute);
    }
    expect(cookie).not.toInclude('Secure');
    const token = cookie.slice('session='.length, cookie.indexOf(';'));
    expect(JSON.stringify(await deps.db.select().from(sessions))).not.toInclude(token);
    const [user] = await deps.db.select().from(users).where(eq(users.id, context.user_id));
    expect(user!.last_login_at).not.toBeNull();
    const emitted = await deps.db.select().from(events).where(eq(events.event, 'user_logged_in'));
    expect(emitted.at(-1)).toMatchObject({ user_id: context.user_id, payload: { role_names: ['Administrator'] } });
  });

  test('binds the cookie to host and TLS behind TLS', async () => {
    const config = { ...deps.config, PUBLIC_URL: 'https://pipelines.example.org' };
    const secure = createApp({ ...deps, config });
    const answer = await secure.handle(
      new Request('http://localhost/console/session', {
        method: 'POST',
        headers: { ...CONSOLE, origin: 'https://pipelines.example.org', 'content-type': 'application/json' },
        body: JSON.stringify({ api_key: context.api_key }),
      }),
    );
    expect(answer.headers.get('set-cookie')).toMatch(/^__Host-session=.*Secure/);
  });

  test.each([
    ['an unknown key', 'nobody-has-this-key-0123456789', 401, 'invalid_token'],
    ['no key', '', 422, undefined],
    ['a key that is not a string', 5, 422, undefined],
  ])('%s is refused and leaves no cookie', async (_, key, status, code) => {
    const answer = await signIn(key);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('set-cookie')).toBeNull();
    if (code) expect(await codeOf(answer)).toBe(code);
  });

  test('reports an expired key as expired', async () => {
    const key = await api.keyWith([]);
    const hash = deps.secrets.hmac('api_key', key);
    await deps.db.update(apiKeys).set({ expires_at: sql`now()` }).where(eq(apiKeys.hash, hash));
    expect(await codeOf(await signIn(key))).toBe('token_expired');
  });

  test.each([
    ['another site', { ...CONSOLE, 'sec-fetch-site': 'cross-site' }],
    ['another site of the same domain', { ...CONSOLE, 'sec-fetch-site': 'same-site' }],
    ['another origin', { ...CONSOLE, origin: 'https://evil.example' }],
    ['a form, which sets no header', { origin: 'http://localhost', 'sec-fetch-site': 'same-origin' }],
  ])('%s cannot sign in', async (_, headers) => {
    const answer = await signIn(context.api_key, headers);
    expect(answer.status).toBe(403);
    expect(await codeOf(answer)).toBe('cross_site_request');
  });

  test('is limited after repeated failures by address and by prefix, and the right key is never refused', async () => {
    const strict = createApp(deps);
    const attempt = (api_key: string) =>
      strict.handle(
        new Request('http://localhost/console/session', {
          method: 'POST',
          headers: { ...CONSOLE, 'content-type': 'application/json' },
          body: JSON.stringify({ api_key }),
        }),
      );
    for (let time = 0; time < 20; time += 1) expect((await attempt(`${time}-wrong-key-0123456789`)).status).toBe(401);
    const refused = await attempt('another-wrong-key-0123456789');
    expect(refused.status).toBe(429);
    expect((await attempt(context.api_key)).status).toBe(204);
    expect(await refused.json()).toMatchObject({ code: 'too_many_sign_ins', retry_after_seconds: expect.any(Number) });
  });
});

describe('a session', () => {
  test('replaces its key on the tRPC API', async () => {
    const { cookie, row } = await session();
    const answer = await me(cookie);
    expect(answer.status).toBe(200);
    expect(((await answer.json()) as any).result.data.id).toBe(row.user_id);
  });

  test('is not accepted by the REST API', async () => {
    const { cookie } = await session();
    for (const path of ['/users/me', '/connections', '/billing/plans']) {
      expect((await send(path, { headers: { ...CONSOLE, cookie } })).status).toBe(401);
    }
    const answer = await send('/users/me/onboarding-state', {
      method: 'PUT',
      headers: { ...CONSOLE, cookie },
      body: { completed_steps: [] },
    });
    expect(answer.status).toBe(401);
  });

  test('reads network logs, which tRPC cannot carry', async () => {
    const { cookie } = await session();
    const path = `/connection_runs/${Bun.randomUUIDv7()}/network_logs`;
    expect((await send(path, { headers: { ...CONSOLE, cookie } })).status).toBe(404);
    expect((await send(path, { headers: { cookie, 'sec-fetch-site': 'cross-site' } })).status).toBe(401);
  });

  test.each([
    ['from another site', { 'sec-fetch-site': 'cross-site', 'x-requested-by': 'console' }],
    ['from another origin', { origin: 'https://evil.example', 'x-requested-by': 'console' }],
    ['without the header', { 'sec-fetch-site': 'same-origin' }],
  ])('changes nothing %s', async (_, headers) => {
    const { cookie } = await session();
    const answer = await send('/trpc/users.rotateKey', { method: 'POST', body: {}, headers: { ...headers, cookie } });
    expect(answer.status).toBe(401);
    expect(await codeOf(answer)).toBe('not_authenticated');
  });

  test('can change what its user can change, with the header', async () => {
    const { cookie, row } = await session();
    const answer = await send(`/trpc/users.update`, {
      method: 'POST',
      headers: { ...CONSOLE, cookie },
      body: { user_id: row.user_id, full_name: 'Ada King' },
    });
    expect(answer.status).toBe(200);
  });

  test('ends when its key is revoked or expires, or its user is disabled', async () => {
    const revoked = await session();
    await deps.db.update(apiKeys).set({ revoked_at: sql`now()` }).where(eq(apiKeys.id, revoked.row.id));
    expect(await codeOf(await me(revoked.cookie))).toBe('invalid_token');
    const expired = await session();
    await deps.db.update(apiKeys).set({ expires_at: sql`now()` }).where(eq(apiKeys.id, expired.row.id));
    expect(await codeOf(await me(expired.cookie))).toBe('token_expired');
    const disabled = await session();
    await deps.db.update(users).set({ status: 'disabled' }).where(eq(users.id, disabled.row.user_id));
    expect(await codeOf(await me(disabled.cookie))).toBe('invalid_token');
  });

  test('expires, and the next sign-in deletes its row', async () => {
    const { cookie, row } = await session();
    await deps.db
      .update(sessions)
      .set({ created_at: sql`now() - interval '1 day'`, expires_at: sql`now() - interval '1 second'` })
      .where(eq(sessions.api_key_id, row.id));
    expect(await codeOf(await me(cookie))).toBe('session_ended');
    await session();
    expect(await deps.db.select().from(sessions).where(eq(sessions.api_key_id, row.id))).toEqual([]);
  });

  test('ends on sign-out, which only the console can request', async () => {
    const { cookie } = await session();
    const elsewhere = await send('/console/session', {
      method: 'DELETE',
      headers: { cookie, 'sec-fetch-site': 'cross-site' },
    });
    expect(elsewhere.status).toBe(403);
    expect((await me(cookie)).status).toBe(200);
    const answer = await send('/console/session', { method: 'DELETE', headers: { ...CONSOLE, cookie } });
    expect(answer.status).toBe(204);
    expect(answer.headers.get('set-cookie')).toInclude('Max-Age=0');
    expect(await codeOf(await me(cookie))).toBe('session_ended');
  });

  test('yields to a key in the header', async () => {
    const { cookie } = await session();
    const answer = await me(cookie, { ...CONSOLE, authorization: `Bearer ${context.api_key}` });
    expect(((await answer.json()) as any).result.data.id).toBe(context.user_id);
  });
});

describe('a session that stands for its user', () => {
  const procedure = async (cookie: string, name: string, input: object = {}) => {
    const answer = await send(`/trpc/${name}`, { method: 'POST', body: input, headers: { ...CONSOLE, cookie } });
    // oxlint-disable-next-line typescript/no-explicit-any -- answers of every shape
    const body = (await answer.json()) as any;
    return { status: answer.status, result: body.result?.data, code: body.error?.data.code };
  };
  const sessionsOf = async (cookie: string) => {
    const answer = await send('/trpc/users.listSessions?input={}', { headers: { ...CONSOLE, cookie } });
    // oxlint-disable-next-line typescript/no-explicit-any -- answers of every shape
    return ((await answer.json()) as any).result.data;
  };
  const administrator = async () => {
    const answer = await signIn(context.api_key);
    return answer.headers.get('set-cookie')!.split(';')[0]!;
  };

  test('confirms with its API key before it creates a key or an invitation', async () => {
    const { cookie, key } = await session();
    expect(await procedure(cookie, 'users.rotateKey')).toMatchObject({ status: 403, code: 'confirmation_required' });
    const wrong = await procedure(cookie, 'users.confirmSession', { api_key: context.api_key });
    expect(wrong).toMatchObject({ status: 400, code: 'wrong_api_key' });
    expect((await procedure(cookie, 'users.rotateKey')).code).toBe('confirmation_required');
    expect((await procedure(cookie, 'users.confirmSession', { api_key: key })).status).toBe(200);
    expect((await procedure(cookie, 'users.rotateKey')).result.api_key).toBeString();
    const admin = await administrator();
    const guest = { email: 'step-up@example.org', full_name: 'Guest' };
    expect((await procedure(admin, 'users.create', guest)).code).toBe('confirmation_required');
    expect((await procedure(admin, 'users.create', { ...guest, send_invitation: false })).status).toBe(200);
    const invited = await procedure(admin, 'users.invite', { user_id: context.user_id });
    expect(invited.code).toBe('confirmation_required');
  });

  test('stays confirmed for five minutes; a call with the key needs no confirmation', async () => {
    const { cookie, key, row } = await session();
    await procedure(cookie, 'users.confirmSession', { api_key: key });
    const past = { confirmed_until: sql`now() - interval '1 second'` };
    await deps.db.update(sessions).set(past).where(eq(sessions.api_key_id, row.id));
    expect((await procedure(cookie, 'users.rotateKey')).code).toBe('confirmation_required');
    expect((await api.as(key)('POST', '/trpc/users.confirmSession', { api_key: key })).body.error.data.code).toBe(
      'no_session',
    );
    expect((await api.as(key)('POST', '/trpc/users.rotateKey', {})).status).toBe(200);
  });

  test('is listed and can be ended, by its user and by those who may manage the user', async () => {
    const { cookie, key, row } = await session();
    const second = (await signIn(key)).headers.get('set-cookie')!.split(';')[0]!;
    const listed = await sessionsOf(cookie);
    expect(listed.map((one: { is_current: boolean }) => one.is_current).toSorted()).toEqual([false, true]);
    expect(JSON.stringify(listed)).not.toContain('hash');
    const other = listed.find((one: { is_current: boolean }) => !one.is_current);
    const stranger = await session();
    expect((await procedure(stranger.cookie, 'users.endSession', { session_id: other.id })).status).toBe(403);
    expect((await procedure(cookie, 'users.endSession', { session_id: other.id })).status).toBe(200);
    expect((await me(second)).status).toBe(401);
    expect((await me(cookie)).status).toBe(200);
    const [own] = await sessionsOf(cookie);
    expect((await procedure(await administrator(), 'users.endSession', { session_id: own.id })).status).toBe(200);
    expect((await me(cookie)).status).toBe(401);
    expect(await deps.db.$count(sessions, eq(sessions.api_key_id, row.id))).toBe(0);
  });

  test('GET /users/me/sessions 200, DELETE /users/me/sessions/{session_id} 204: is listed and ended with a key', async () => {
    const { cookie, key } = await session();
    const byKey = api.as(key);
    const listed = await byKey('GET', '/users/me/sessions');
    expect(listed.body).toMatchObject([{ is_current: false, key_prefix: expect.any(String) }]);
    const path = `/users/me/sessions/${listed.body[0].id}`;
    expect((await api.as((await session()).key)('DELETE', path)).status).toBe(403);
    expect((await byKey('DELETE', '/users/me/sessions/none')).status).toBe(404);
    expect((await byKey('DELETE', path)).status).toBe(204);
    expect((await me(cookie)).status).toBe(401);
    expect((await byKey('GET', '/users/me/sessions')).body).toEqual([]);
  });

  test('ends when it is idle for too long, and a request keeps it', async () => {
    const { cookie, row } = await session();
    const idle = (hours: number) =>
      deps.db
        .update(sessions)
        .set({ last_used_at: sql`now() - make_interval(hours => ${hours})` })
        .where(eq(sessions.api_key_id, row.id));
    await idle(23);
    expect((await me(cookie)).status).toBe(200);
    await until(async () => {
      const [found] = await deps.db.select().from(sessions).where(eq(sessions.api_key_id, row.id));
      return Date.parse(found!.last_used_at) > Date.now() - 60_000;
    });
    await idle(25);
    const ended = await me(cookie);
    expect([ended.status, await codeOf(ended)]).toEqual([401, 'session_ended']);
  });
});
