import { afterAll, describe, expect, test } from 'bun:test';
import { and, desc, eq, isNull, sql } from 'drizzle-orm';
import { accounts, auditEvents, sessions, userIdentities, users } from '../../db/schema/index.ts';
import { flushRefusals } from '../../server/api/audit/refusals.ts';
import { createApp } from '../../server/http/app.ts';
import { type ProviderSettings, readProviders } from '../../server/platform/provider-settings.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { glewlwydMissing, OTHER_CLIENT, startGlewlwyd } from '../support/glewlwyd.ts';
import { CLIENT, type ProviderPerson, startSignInProvider } from '../support/sign-in-provider.ts';

const OTHER_ACCOUNT = '0197f000-0000-7000-8000-000000000001';
const ADA: ProviderPerson = { sub: 'ada', email: 'Ada@example.org', email_verified: true, name: 'Ada Lovelace' };

process.env.TEST_CLIENT_SECRET = CLIENT.secret;
process.env.TEST_WRONG_SECRET = 'another-secret-0123456789';

const callback = (id: string) => `http://localhost/console/sign-in/${id}/callback`;
const IDS = ['main', 'plain', 'linked', 'tenants', 'closed', 'wrong-secret', 'public'];
const provider = await startSignInProvider(IDS.map(callback));
afterAll(() => provider.close());
const glewlwyd = await startGlewlwyd(callback('glewlwyd'));

const common = { name: 'Test', issuer: provider.issuer, client_id: CLIENT.id, client_secret: 'env:TEST_CLIENT_SECRET' };
const groups = { groups_claim: 'groups', roles: { admins: ['Administrator'], makers: ['Creator'] } };
const PROVIDERS: Partial<ProviderSettings>[] = [
  { id: 'main', ...groups },
  { id: 'plain', default_roles: ['Viewer'] },
  { id: 'linked', link_by_email: true },
  { id: 'tenants', account_claim: 'tenant', accounts: { other: OTHER_ACCOUNT, gone: Bun.randomUUIDv7() } },
  { id: 'closed', create_users: false, email_domains: ['example.org'] },
  { id: 'wrong-secret', client_secret: 'env:TEST_WRONG_SECRET' },
  { id: 'no-secret', client_secret: 'env:TEST_MISSING_SECRET' },
  { id: 'wrong-issuer', issuer: provider.issuer.replace('127.0.0.1', 'localhost') },
  { id: 'away', issuer: 'http://127.0.0.1:1' },
  { id: 'glewlwyd', issuer: glewlwyd.issuer, ...groups },
  { id: 'not-allowed', issuer: 'http://127.0.0.1:2' },
];

const { port } = new URL(provider.issuer);
const context = await testDeps({
  config: {
    PUBLIC_URL: 'http://localhost',
    OIDC_PROVIDERS: readProviders(JSON.stringify(PROVIDERS.map((one) => ({ ...common, ...one })))),
    EGRESS_ALLOW: [`127.0.0.1:${port}`, `localhost:${port}`, '127.0.0.1:1', new URL(glewlwyd.issuer).host],
  },
});
const { deps } = context;
const app = createApp(deps);
await deps.db.insert(accounts).values({ id: OTHER_ACCOUNT, name: 'Other' });
const CONSOLE = { 'x-requested-by': 'console', 'sec-fetch-site': 'same-origin' };

/** Cookies of one browser by host. */
function browser() {
  const jars = new Map<string, Map<string, string>>();
  const jarOf = (url: string) => {
    const { host } = new URL(url);
    const jar = jars.get(host) ?? new Map<string, string>();
    jars.set(host, jar);
    return jar;
  };
  const cookiesFor = (url: string) => [...jarOf(url)].map(([name, value]) => `${name}=${value}`).join('; ');
  const send = async (url: string, init: RequestInit = {}) => {
    const headers = { cookie: cookiesFor(url), ...(init.headers as Record<string, string>) };
    const request = new Request(url, { ...init, headers, redirect: 'manual' });
    const answer = url.startsWith('http://localhost') ? await app.handle(request) : await fetch(request);
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === '' || /max-age=0/i.test(cookie)) jarOf(url).delete(name);
      else jarOf(url).set(name, value);
    }
    return answer;
  };
  return { send, cookies: jarOf('http://localhost'), signOutAtProvider: () => void jars.delete(`127.0.0.1:${port}`) };
}
type Browser = ReturnType<typeof browser>;

/** Goes to the provider; returns the address to which it sends the browser back, or that of the sign-in page. */
async function leave(one: Browser, id: string, query = ''): Promise<string> {
  let url = `http://localhost/console/sign-in/${id}${query}`;
  for (let step = 0; step < 10; step += 1) {
    const answer = await one.send(url, { headers: CONSOLE });
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
    url = new URL(location, url).href;
    if (url.startsWith('http://localhost')) return url;
  }
  throw new Error('too many redirects');
}

/** The whole sign-in; returns where it ends. */
async function signIn(person: ProviderPerson | null, id = 'plain', { one = browser(), query = '' } = {}) {
  provider.person = person;
  const back = await leave(one, id, query);
  if (!back.includes('/callback')) return { one, back, code: codeIn(back), location: back };
  const answer = await one.send(back);
  const location = answer.headers.get('location')!;
  return { one, back, code: codeIn(location), location, answer };
}

const codeIn = (location: string) => new URL(location, 'http://localhost').searchParams.get('sign_in_error');

// oxlint-disable-next-line typescript/no-explicit-any -- answers of every shape
type Json = any;

async function call(
  one: Browser,
  name: string,
  input?: object,
): Promise<{ status: number; body: Json; code?: string }> {
  const isQuery = input === undefined;
  const headers = { ...CONSOLE, ...(!isQuery && { 'content-type': 'application/json' }) };
  const answer = await one.send(`http://localhost/trpc/${name}`, {
    method: isQuery ? 'GET' : 'POST',
    headers,
    ...(!isQuery && { body: JSON.stringify(input) }),
  });
  const body = (await answer.json()) as Json;
  return { status: answer.status, body: body.result?.data ?? body.error?.data, code: body.error?.data.code };
}

const rolesOf = async (one: Browser) => (await call(one, 'users.me')).body.roles.map(({ name }: Json) => name);
const person = (sub: string, more: object = {}): ProviderPerson => ({
  sub,
  email: `${sub}@example.org`,
  email_verified: true,
  ...more,
});
const userBy = async (email: string) =>
  (
    await deps.db
      .select()
      .from(users)
      .where(and(eq(users.email, email), isNull(users.deleted_at)))
  )[0];

describe('a sign-in by a provider', () => {
  test('creates the user at the first time and opens a session with the cookie of all sessions', async () => {
    const { one, location, answer } = await signIn(ADA, 'plain', { query: '?to=/connections%3Fa%3D1' });
    expect(location).toBe('/connections?a=1');
    const cookie = answer!.headers.getSetCookie().find((each) => each.startsWith('session='))!;
    for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=604800']) {
      expect(cookie).toInclude(attribute);
    }
    const me = await call(one, 'users.me');
    expect(me.body).toMatchObject({ email: 'ada@example.org', full_name: 'Ada Lovelace', api_key: null });
    expect(await rolesOf(one)).toEqual(['Viewer']);
    const again = await signIn({ ...ADA, email: 'ada.king@example.org' });
    expect((await call(again.one, 'users.me')).body.id).toBe(me.body.id);
    const [stored] = await deps.db.select().from(sessions).where(eq(sessions.provider, 'plain'));
    expect(stored!.id_token).toStartWith('v1.');
    const [entry] = await deps.db.select().from(auditEvents).where(eq(auditEvents.kind, 'sign_in'));
    expect(entry).toMatchObject({
      actor_id: me.body.id,
      account_id: context.account_id,
      api_key_id: null,
      details: { provider: 'plain', issuer: provider.issuer, subject: 'ada' },
    });
  });

  test('is in the audit log as a use of the client secret', async () => {
    await signIn(ADA);
    const uses = await deps.db.select().from(auditEvents).where(eq(auditEvents.resource_id, 'OIDC_PROVIDERS'));
    const { host } = new URL(provider.issuer);
    expect(uses.filter(({ details }) => details?.host === host)).toMatchObject([
      { kind: 'secret_use', action: 'sign_in', actor_type: 'system' },
    ]);
  });

  test('lists sessions of keys and of providers, and ends one', async () => {
    const { one } = await signIn(person('lister'));
    const { one: second } = await signIn(person('lister'));
    const { body } = await call(one, 'users.listSessions?input={}');
    expect(body).toMatchObject([{ provider: 'plain', key_prefix: null }, { provider: 'plain' }]);
    const other = body.find((each: Json) => !each.is_current);
    expect((await call(one, 'users.endSession', { session_id: other.id })).status).toBe(200);
    expect((await call(second, 'users.me')).code).toBe('session_ended');
    expect((await call(one, 'users.me')).status).toBe(200);
  });

  test('ends after SESSION_MAX_HOURS, when it is idle, and with its user', async () => {
    const { one } = await signIn(person('ending'));
    const mine = eq(sessions.hash, deps.secrets.hmac('session', one.cookies.get('session')!));
    const [stored] = await deps.db.select().from(sessions).where(mine);
    expect(Date.parse(stored!.expires_at) - Date.parse(stored!.created_at)).toBe(168 * 3_600_000);
    await deps.db.update(sessions).set({ last_used_at: sql`now() - interval '25 hours'` }).where(mine);
    expect((await call(one, 'users.me')).code).toBe('session_ended');
    await deps.db.update(sessions).set({ last_used_at: sql`now()` }).where(mine);
    await deps.db.update(users).set({ status: 'disabled' }).where(eq(users.email, 'ending@example.org'));
    expect((await call(one, 'users.me')).code).toBe('session_ended');
  });

  test('gives the roles of the groups, and groups that are gone take them away', async () => {
    const { one } = await signIn(person('eve', { groups: ['admins', 'others'] }), 'main');
    expect(await rolesOf(one)).toEqual(['Administrator']);
    await signIn(person('eve', { groups: ['makers'] }), 'main');
    expect(await rolesOf(one)).toEqual(['Creator']);
    expect((await signIn(person('eve'), 'main')).code).toBe('sign_in_no_role');
    expect(await rolesOf(one)).toEqual([]);
    const [refusal] = await deps.db
      .select()
      .from(auditEvents)
      .where(eq(auditEvents.code, 'sign_in_no_role'))
      .orderBy(desc(auditEvents.seq));
    expect(refusal).toMatchObject({
      kind: 'refusal',
      action: 'sign_in',
      actor_type: 'user',
      details: { provider: 'main' },
    });
  });

  test('signs out here, and names the page where the provider ends its session', async () => {
    const { one } = await signIn(person('leaver'));
    const answer = await one.send('http://localhost/console/session', { method: 'DELETE', headers: CONSOLE });
    const { sign_out_url } = (await answer.json()) as { sign_out_url: string };
    const url = new URL(sign_out_url);
    expect(url.origin).toBe(provider.issuer);
    expect(url.searchParams.get('post_logout_redirect_uri')).toBe('http://localhost/console');
    expect(url.searchParams.get('id_token_hint')).toContain('.');
    expect((await call(one, 'users.me')).status).toBe(401);
    expect((await fetch(url, { redirect: 'manual' })).status).toBeLessThan(400);
  });

  test('takes over an existing user by its verified address only where the provider may', async () => {
    const mail = { email: 'invited@example.org', full_name: 'Invited', status: 'invited' as const };
    await deps.db.insert(users).values({ ...mail, account_id: context.account_id });
    expect((await signIn(person('invited'))).code).toBe('sign_in_email_taken');
    const { one } = await signIn(person('invited'), 'linked');
    expect((await call(one, 'users.me')).body).toMatchObject({ full_name: 'Invited', status: 'active' });
  });

  test('selects the account by a claim', async () => {
    const { one } = await signIn(person('tenant', { tenant: 'other' }), 'tenants');
    expect((await call(one, 'users.me')).body.account.id).toBe(OTHER_ACCOUNT);
    expect((await signIn(person('tenant'), 'plain')).code).toBe('sign_in_account_changed');
  });
});

describe.skipIf(glewlwydMissing !== null)('a provider of another make', () => {
  const CONSOLE_SIGN_IN = 'http://localhost/console/sign-in/glewlwyd';

  /** `change`: what happens to the address of the provider on the way there. */
  async function signInThere(username: string, { one = browser(), query = '', change = (url: string) => url } = {}) {
    let url = change((await one.send(`${CONSOLE_SIGN_IN}${query}`)).headers.get('location')!);
    for (let step = 0; step < 5 && !url.startsWith('http://localhost'); step += 1) {
      const isLogin = new URL(url).pathname === '/login.html';
      url = isLogin
        ? await glewlwyd.logIn(one.send, url, username)
        : new URL((await one.send(url)).headers.get('location')!, url).href;
    }
    const location = (await one.send(url)).headers.get('location')!;
    return { one, back: url, code: codeIn(location), location };
  }

  test('signs people in with the roles of their groups, and takes those that are gone', async () => {
    await glewlwyd.setPerson('lovelace', ['admins', 'others']);
    const { one, location } = await signInThere('lovelace', { query: '?to=/connections' });
    expect(location).toBe('/connections');
    const me = await call(one, 'users.me');
    expect(me.body).toMatchObject({ email: 'lovelace@example.org', full_name: 'lovelace', api_key: null });
    expect(await rolesOf(one)).toEqual(['Administrator']);
    await glewlwyd.setPerson('lovelace', ['makers']);
    const again = await signInThere('lovelace');
    expect((await call(again.one, 'users.me')).body.id).toBe(me.body.id);
    expect(await rolesOf(one)).toEqual(['Creator']);
    await glewlwyd.setPerson('lovelace', []);
    expect((await signInThere('lovelace')).code).toBe('sign_in_no_role');
    expect(await rolesOf(one)).toEqual([]);
  });

  test('signs them out here and there', async () => {
    await glewlwyd.setPerson('hopper', ['makers']);
    const { one } = await signInThere('hopper');
    const answer = await one.send('http://localhost/console/session', { method: 'DELETE', headers: CONSOLE });
    const { sign_out_url } = (await answer.json()) as { sign_out_url: string };
    const page = (await one.send(sign_out_url)).headers.get('location')!;
    expect(new URL(page).searchParams.get('prompt')).toBe('end_session');
    expect(await glewlwyd.logOut(one.send, page)).toBe('http://localhost/console');
    expect((await call(one, 'users.me')).status).toBe(401);
  });

  test('opens no session for another nonce, the code of another client, a replayed one, or without a date', async () => {
    await glewlwyd.setPerson('turing', ['makers']);
    const nonce = await signInThere('turing', { change: (url) => url.replace(/nonce=[^&]*/, 'nonce=0123456789') });
    expect([nonce.code, nonce.one.cookies.size]).toEqual(['sign_in_token_invalid', 0]);
    const client = `client_id=${OTHER_CLIENT}`;
    const other = await signInThere('turing', { change: (url) => url.replace(`client_id=${CLIENT.id}`, client) });
    expect([other.code, other.one.cookies.size]).toEqual(['sign_in_provider_misconfigured', 0]);
    const { one, back } = await signInThere('turing');
    expect(codeIn((await one.send(back)).headers.get('location')!)).toBe('sign_in_not_started');
    // Glewlwyd answers every auth_time with 0.
    const confirmed = await signInThere('turing', { one, query: '?confirm=1' });
    expect(confirmed.code).toBe('sign_in_not_recent');
    expect((await call(one, 'users.me')).status).toBe(200);
  });
});

describe('step-up', () => {
  test('a session whose sign-in is old signs in again before it creates a key', async () => {
    const { one } = await signIn(person('stepper'));
    expect((await call(one, 'users.createKey', { name: 'fresh' })).status).toBe(200);
    const mine = eq(sessions.provider, 'plain');
    await deps.db.update(sessions).set({ confirmed_until: sql`now()` }).where(mine);
    const stale = await call(one, 'users.createKey', { name: 'stale' });
    expect(stale).toMatchObject({ code: 'confirmation_required' });
    expect(stale.body.sign_in_path).toBe('/console/sign-in/plain?confirm=1');
    const before = one.cookies.get('session');
    one.signOutAtProvider();
    const other = await signIn(person('somebody-else'), 'plain', { one, query: '?confirm=1' });
    expect(other).toMatchObject({
      code: 'sign_in_other_user',
      location: expect.stringContaining('/console/confirmed?'),
    });
    expect((await call(one, 'users.createKey', { name: 'stale' })).code).toBe('confirmation_required');
    one.signOutAtProvider();
    const { location } = await signIn(person('stepper'), 'plain', { one, query: '?confirm=1' });
    expect(location).toBe('/console/confirmed');
    expect(one.cookies.get('session')).not.toBe(before);
    expect((await call(one, 'users.createKey', { name: 'fresh again' })).status).toBe(200);
    expect((await call(one, 'users.rotateKey', {})).code).toBe('no_api_key');
  });

  test('is refused for a sign-in that the provider does not date', async () => {
    const { one } = await signIn(person('dated'));
    provider.forged = { auth_time: Math.floor(Date.now() / 1000) - 3600 };
    const { code } = await signIn(person('dated'), 'plain', { one, query: '?confirm=1' });
    provider.forged = {};
    expect(code).toBe('sign_in_not_recent');
  });
});

describe('opens no session', () => {
  const count = () => deps.db.$count(sessions);
  const in_an_hour = Math.floor(Date.now() / 1000) + 3600;

  test.each([
    ['the token is for another client', { aud: 'another' }, 'sign_in_token_invalid'],
    ['the token is for further services', { aud: [CLIENT.id, 'another'], azp: CLIENT.id }, 'sign_in_token_invalid'],
    ['the token is of another issuer', { iss: 'https://elsewhere.example' }, 'sign_in_token_invalid'],
    ['the nonce is another', { nonce: 'another' }, 'sign_in_token_invalid'],
    ['the token has expired', { exp: in_an_hour - 7200 }, 'sign_in_token_expired'],
    ['the clock of the provider is ahead', { nbf: in_an_hour, iat: in_an_hour }, 'sign_in_token_expired'],
  ])('when %s', async (_, forged, code) => {
    const before = await count();
    provider.forged = forged;
    const refused = await signIn(person('forged'));
    provider.forged = {};
    expect(refused.code).toBe(code);
    expect(refused.one.cookies.size).toBe(0);
    expect(await count()).toBe(before);
  });

  test.each([
    ['a declined sign-in', null, 'plain', 'sign_in_denied'],
    ['no address', { sub: 'x' }, 'plain', 'sign_in_email_missing'],
    ['an unverified address', person('x', { email_verified: false }), 'plain', 'sign_in_email_unverified'],
    [
      'an address of another domain',
      person('x', { email: 'x@elsewhere.example' }),
      'closed',
      'sign_in_domain_not_allowed',
    ],
    ['a person without user', person('x'), 'closed', 'sign_in_user_unknown'],
    ['the address of another user', person('y', { email: 'other@example.org' }), 'plain', 'sign_in_email_taken'],
    ['no account', person('x'), 'tenants', 'sign_in_account_unknown'],
    ['an account that does not exist', person('x', { tenant: 'gone' }), 'tenants', 'sign_in_account_unknown'],
    ['too many groups', person('x', { _claim_names: { groups: 'src1' } }), 'main', 'sign_in_groups_unknown'],
    ['groups of another kind', person('x', { groups: [1] }), 'main', 'sign_in_groups_unknown'],
    ['a wrong client secret', person('x'), 'wrong-secret', 'sign_in_provider_misconfigured'],
    ['no client secret', person('x'), 'no-secret', 'sign_in_provider_misconfigured'],
    ['a provider of another issuer', person('x'), 'wrong-issuer', 'sign_in_provider_misconfigured'],
    ['a provider at an address over http', person('x'), 'not-allowed', 'sign_in_provider_misconfigured'],
    ['a provider that is away', person('x'), 'away', 'sign_in_provider_unreachable'],
    ['an unknown provider', person('x'), 'none', 'sign_in_provider_unknown'],
  ])('for %s', async (_, who, id, code) => {
    if (code === 'sign_in_email_taken') {
      const other = {
        account_id: OTHER_ACCOUNT,
        email: 'other@example.org',
        full_name: 'Other',
        status: 'active' as const,
      };
      await deps.db.insert(users).values(other);
    }
    // Otherwise the groups would stand in userinfo.
    if (code === 'sign_in_groups_unknown') provider.forged = { ...who };
    const before = await count();
    const refused = await signIn(who, id);
    provider.forged = {};
    expect(refused).toMatchObject({ code });
    expect(refused.one.cookies.has('session')).toBe(false);
    expect(await count()).toBe(before);
    expect(await userBy('x@example.org')).toBeUndefined();
  });

  test('for a disabled user; a deleted one is created again', async () => {
    const first = await signIn(person('former'));
    const { id } = (await call(first.one, 'users.me')).body;
    await deps.db.update(users).set({ status: 'disabled' }).where(eq(users.id, id));
    expect((await signIn(person('former'))).code).toBe('user_disabled');
    const { one: admin } = await signIn(person('eve', { groups: ['admins'] }), 'main');
    expect((await call(admin, 'users.delete', { user_id: id })).status).toBe(200);
    expect(await deps.db.$count(userIdentities, eq(userIdentities.user_id, id))).toBe(0);
    const { one } = await signIn(person('former'));
    expect((await call(one, 'users.me')).body.id).not.toBe(id);
  });

  test('for a response that is replayed, of another browser, or with another state', async () => {
    provider.person = person('replayed');
    const one = browser();
    const back = await leave(one, 'plain');
    expect((await browser().send(back)).headers.get('location')).toContain('sign_in_not_started');
    const pending = one.cookies.get('sign-in')!;
    const forged = back.replace(/state=[^&]*/, 'state=another');
    expect(codeIn((await one.send(forged)).headers.get('location')!)).toBe('sign_in_not_started');
    one.cookies.set('sign-in', pending);
    expect((await one.send(back)).headers.get('location')).toBe('/console');
    expect(codeIn((await one.send(back)).headers.get('location')!)).toBe('sign_in_not_started');
    one.cookies.set('sign-in', pending);
    expect(codeIn((await one.send(back)).headers.get('location')!)).toBe('sign_in_code_refused');
  });

  test('and leads to no other site', async () => {
    const elsewhere = ['https:', '', '/..', '/.', '/a/..', '/%2e'].map((start) => `${start}//elsewhere.example`);
    for (const to of [...elsewhere, '/\\elsewhere.example', '/..\\\\elsewhere.example']) {
      const { location } = await signIn(person('wanderer'), 'plain', { query: `?to=${encodeURIComponent(to)}` });
      expect(location).toBe('/console');
    }
  });

  test('and each refusal is in the audit log', async () => {
    await flushRefusals(deps);
    const rows = await deps.db.select().from(auditEvents).where(eq(auditEvents.action, 'sign_in'));
    const codes = new Set(rows.filter(({ kind }) => kind === 'refusal').map(({ code }) => code));
    for (const code of ['sign_in_token_invalid', 'sign_in_code_refused', 'sign_in_email_taken', 'user_disabled']) {
      expect(codes).toContain(code);
    }
  });
});

test('GET /console/providers lists the buttons without settings', async () => {
  const answer = await app.handle(new Request('http://localhost/console/providers'));
  const listed = (await answer.json()) as Json[];
  expect(listed[0]).toEqual({ id: 'main', name: 'Test' });
});

test.each([
  ['{}', 'must be a JSON list or the path of a file'],
  ['[{"id": "A"}]', 'is invalid at 0.id: must be lower-case'],
  [
    JSON.stringify([{ ...common, id: 'a', client_secret: 'plain text' }]),
    'must be env:NAME, file:/path or vault:path#field',
  ],
  [JSON.stringify([{ ...common, id: 'a', unknown: 1 }]), 'Unrecognized key'],
  [JSON.stringify([{ ...common, id: 'a', roles: { a: ['Viewer'] } }]), 'needs groups_claim for roles'],
])('the setting %s is refused', (setting, message) => {
  expect(() => readProviders(setting)).toThrow(message);
});

describe('SCIM', () => {
  async function scim(
    method: string,
    path: string,
    body?: object,
    key = context.api_key,
  ): Promise<{ status: number; body: Json }> {
    const answer = await app.handle(
      new Request(`http://localhost/scim/v2/${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/scim+json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
    const text = await answer.text();
    if (text) expect(answer.headers.get('content-type')).toBe('application/scim+json');
    return { status: answer.status, body: text ? JSON.parse(text) : null };
  }
  const newUser = (name: string) => ({
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    userName: `${name}@example.org`,
    externalId: name,
    name: { givenName: name, familyName: 'Example' },
    active: true,
  });
  const created = async (name: string) => (await scim('POST', 'Users', newUser(name))).body;
  const patch = (path: string, ...Operations: object[]) =>
    scim('PATCH', path, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations });
  const groupId = async (name: string) =>
    (await scim('GET', `Groups?filter=${encodeURIComponent(`displayName eq "${name}"`)}`)).body.Resources[0]
      .id as string;
  const roleNames = async (id: string) =>
    (
      await deps.db.execute<{ name: string }>(
        sql`select name from roles join user_roles on role_id = id where user_id = ${id} order by name`,
      )
    ).map(({ name }) => name);

  test('creates, finds, renames and deletes users', async () => {
    const { status, body } = await scim('POST', 'Users', newUser('Emmy'));
    expect([status, body]).toMatchObject([
      201,
      { userName: 'emmy@example.org', active: true, displayName: 'Emmy Example', meta: { resourceType: 'User' } },
    ]);
    expect(body.meta.location).toBe(`http://localhost/scim/v2/Users/${body.id}`);
    const found = await scim('GET', `Users?filter=${encodeURIComponent('userName eq "EMMY@example.org"')}`);
    expect(found.body).toMatchObject({ totalResults: 1, startIndex: 1, Resources: [{ id: body.id }] });
    expect(
      (await scim('GET', `Users?filter=${encodeURIComponent('username Eq "nobody@x.org"')}`)).body.totalResults,
    ).toBe(0);
    const all = await scim('GET', 'Users?count=1&startIndex=2');
    expect(all.body).toMatchObject({ itemsPerPage: 1, startIndex: 2 });
    expect(all.body.totalResults).toBeGreaterThan(1);
    await patch(`Users/${body.id}`, { op: 'Replace', path: 'name.familyName', value: 'Noether' });
    expect((await scim('GET', `Users/${body.id}`)).body.displayName).toBe('Emmy Noether');
    const put = await scim('PUT', `Users/${body.id}`, { ...newUser('emmy'), displayName: 'E. Noether' });
    expect([put.status, put.body.displayName]).toEqual([200, 'E. Noether']);
    const [entry] = await deps.db
      .select()
      .from(auditEvents)
      .where(and(eq(auditEvents.action, 'PUT /scim/v2/Users/{id}'), eq(auditEvents.kind, 'change')));
    expect(entry).toMatchObject({ resource_type: 'user', resource_id: body.id });
    expect((await scim('DELETE', `Users/${body.id}`)).status).toBe(204);
    expect((await scim('GET', `Users/${body.id}`)).status).toBe(404);
  });

  test.each([
    { name: 'Okta', operation: { op: 'replace', value: { active: false } } },
    { name: 'Entra', operation: { op: 'Replace', path: 'active', value: 'False' } },
  ])('a user whom $name deactivates loses session and key at once', async ({ name, operation }) => {
    const { id, userName } = await created(`leaver-${name}`);
    const { one } = await signIn(person(userName.split('@')[0], { email: userName }), 'linked');
    expect((await call(one, 'users.me')).body.id).toBe(id);
    const key = await call(one, 'users.createKey', { name: 'nightly' });
    const withKey = () => scim('GET', 'ServiceProviderConfig', undefined, key.body.api_key);
    expect((await withKey()).status).toBe(403);
    const { status, body } = await patch(`Users/${id}`, operation);
    expect([status, body.active]).toEqual([200, false]);
    expect((await call(one, 'users.me')).code).toBe('session_ended');
    expect((await withKey()).status).toBe(401);
    await patch(`Users/${id}`, { op: 'replace', path: 'active', value: true });
    expect((await call(one, 'users.me')).code).toBe('session_ended');
  });

  test('groups give roles by the mapping of the sign-in, and take them away', async () => {
    const [one, two] = [await created('grace'), await created('joan')];
    const [admins, makers] = [await groupId('admins'), await groupId('makers')];
    expect((await scim('GET', 'Groups')).body.Resources.map((group: Json) => group.displayName)).toEqual([
      'admins',
      'makers',
    ]);
    const push = await scim('POST', 'Groups', { displayName: 'makers', members: [{ value: one.id }] });
    expect([push.status, push.body.id, push.body.members]).toEqual([
      201,
      makers,
      [{ value: one.id, display: 'grace Example' }],
    ]);
    await patch(`Groups/${makers}`, { op: 'Add', path: 'members', value: [{ value: two.id }] });
    await patch(`Groups/${admins}`, { op: 'add', value: { members: [{ value: two.id }] } });
    expect([await roleNames(one.id), await roleNames(two.id)]).toEqual([['Creator'], ['Administrator', 'Creator']]);
    const left = await patch(`Groups/${makers}`, { op: 'Remove', path: `members[value eq "${two.id}"]` });
    expect(left.body.members.map(({ value }: Json) => value)).toEqual([one.id]);
    expect(await roleNames(two.id)).toEqual(['Administrator']);
    await scim('PUT', `Groups/${admins}`, { displayName: 'admins', members: [] });
    expect(await roleNames(two.id)).toEqual([]);
    expect((await scim('GET', `Users/${one.id}`)).body.groups).toEqual([{ value: makers, display: 'makers' }]);
    expect((await scim('DELETE', `Groups/${makers}`)).status).toBe(204);
    expect(await roleNames(one.id)).toEqual([]);
  });

  test('gives no role that the key does not hold, and nothing without users.manage', async () => {
    const narrow = await testApi(context).keyWith(['users.manage']);
    const { id } = await created('ambitious');
    const admins = await groupId('admins');
    const member = { displayName: 'admins', members: [{ value: id }] };
    expect((await scim('PUT', `Groups/${admins}`, member, narrow)).status).toBe(400);
    expect(await roleNames(id)).toEqual([]);
    expect((await scim('GET', `Groups/${admins}`)).body.members).toEqual([]);
    const reader = await testApi(context).keyWith(['connections.run']);
    expect(await scim('GET', 'Users', undefined, reader)).toMatchObject({ status: 403, body: { status: '403' } });
    expect((await scim('GET', 'Users', undefined, 'nobody-has-this-key-0123456789')).status).toBe(401);
  });

  test('refuses bad input in the form of SCIM', async () => {
    const { id, userName } = await created('present');
    const admins = await groupId('admins');
    const cases: (readonly [Promise<{ status: number; body: Json }>, number, string | undefined])[] = [
      [scim('POST', 'Users', newUser('present')), 409, 'uniqueness'],
      [scim('POST', 'Users', { userName: 'no address' }), 400, 'invalidValue'],
      [scim('POST', 'Users', {}), 400, 'invalidValue'],
      [patch(`Users/${id}`, { op: 'replace', path: 'userName', value: `other-${userName}` }), 400, 'mutability'],
      [patch(`Users/${id}`, { op: 'replace', path: 'active', value: 'perhaps' }), 400, 'invalidValue'],
      [patch(`Users/${id}`, { op: 'replace', path: 'displayName', value: null }), 400, 'invalidValue'],
      [patch(`Users/${id}`, { op: 'move', path: 'active' }), 400, 'invalidValue'],
      ...['userName sw "a"', 'userName eq "a\0"', 'userName eq "\\u0000"', 'userName eq "\\x"'].map(
        (filter) => [scim('GET', `Users?filter=${encodeURIComponent(filter)}`), 400, 'invalidFilter'] as const,
      ),
      [scim('POST', 'Groups', { displayName: 'strangers' }), 400, 'invalidValue'],
      [patch(`Groups/${admins}`, { op: 'replace', path: 'displayName', value: 'owners' }), 400, 'mutability'],
      [patch(`Groups/${admins}`, { op: 'add', path: 'members', value: [{ value: 'nobody' }] }), 404, undefined],
      [scim('GET', 'Groups/nothing'), 404, undefined],
      [scim('GET', 'Users/nothing'), 404, undefined],
    ];
    for (const [answering, status, scimType] of cases) {
      const answer = await answering;
      expect(answer.body.schemas).toEqual(['urn:ietf:params:scim:api:messages:2.0:Error']);
      expect([answer.status, answer.body.status, answer.body.scimType]).toEqual([status, String(status), scimType]);
    }
    expect((await scim('GET', `Groups/${admins}`)).body.members).toEqual([]);
  });
});
