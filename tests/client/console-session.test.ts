import { afterAll, describe, expect, test } from 'bun:test';
import { eq, type SQL, sql } from 'drizzle-orm';
import { createApiClient } from '../../client/api.ts';
import { apiKeys, sessions } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { readProviders } from '../../server/platform/provider-settings.ts';
import { signIn } from '../support/browser.ts';
import { keepUndo, noticed, startConsole, undoOf } from '../support/console.ts';
import { BASE_PATH, startPathProxy } from '../support/path-proxy.ts';
import { makerOf } from '../support/resources.ts';
import { CLIENT, startSignInProvider } from '../support/sign-in-provider.ts';
import { until } from '../support/until.ts';

const site = await startConsole();
const { service, api } = site;
const make = makerOf(api.call);
const ALL = ['connections.update', 'connections.run', 'sources.update'] as const;

const keyOf = async (key: string) => {
  const [row] = await service.deps.db
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.hash, service.deps.secrets.hmac('api_key', key)));
  return row!;
};

test('a key signs in, a wrong one is refused with code and request id, and signing out ends it', async () => {
  const { page, complaints, context } = await site.browser();
  await page.goto('/console/profile');
  await page.getByRole('textbox', { name: 'API key' }).fill('nobody-has-this-key-0123456789');
  await page.getByRole('button', { name: 'Sign in' }).click();
  const alert = page.getByRole('alert');
  await alert.waitFor();
  expect(await alert.innerText()).toMatch(/The API key is not valid[\s\S]*invalid_token[\s\S]*Request/);
  expect(await page.getByRole('textbox', { name: 'API key' }).inputValue()).toBe('nobody-has-this-key-0123456789');
  await signIn({ page }, service.api_key);
  // Back at the page that was requested.
  expect(page.url()).toEndWith('/console/profile');
  await page.getByRole('heading', { name: 'Profile' }).waitFor();
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ name: 'session', httpOnly: true, sameSite: 'Strict' });
  expect(await page.evaluate('document.cookie')).toBe('');
  expect(await page.evaluate('JSON.stringify(localStorage) + JSON.stringify(sessionStorage)')).not.toInclude(
    service.api_key,
  );
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('textbox', { name: 'API key' }).waitFor();
  await page.reload();
  await page.getByRole('textbox', { name: 'API key' }).waitFor();
  expect(complaints).toEqual([]);
}, 60_000);

test('an expired key leads to sign-in with the reason; the page returns with all input', async () => {
  const key = await api.keyWith([...ALL]);
  const connection = await make.connection({ name: 'Before' });
  const { page, complaints } = await site.signedIn(`/console/connections/${connection.id}?tab=settings`, { key });
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Typed before the key expired');
  const { id } = await keyOf(key);
  const expire = (expires_at: SQL) => service.deps.db.update(apiKeys).set({ expires_at }).where(eq(apiKeys.id, id));
  // It expires under this request: the form would cover the button as soon as any other one is refused.
  await page.route(
    '**/connections.update*',
    async (route) => {
      await expire(sql`now()`);
      await route.continue();
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Save' }).click();
  const dialog = page.getByRole('dialog', { name: 'Sign in' });
  await dialog.waitFor();
  expect(await dialog.getByRole('status').innerText()).toInclude('Your API key has expired');
  await expire(sql`now() + interval '1 day'`);
  await signIn({ page }, key);
  expect(await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe(
    'Typed before the key expired',
  );
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Typed before the key expired' }).waitFor();
  expect(complaints).toEqual([]);
  await page.context().clearCookies();
  await page.getByRole('link', { name: 'Sources', exact: true }).first().click();
  await dialog.getByText('Your session has ended').waitFor();
}, 60_000);

test('a rotated key is shown once, signs the console in, and the old one can be revoked immediately', async () => {
  const key = await api.keyWith([]);
  const { page, complaints } = await site.signedIn('/console/profile', { key });
  await page.getByText(/\d+ days? left/).waitFor();
  await page.getByRole('button', { name: 'Rotate' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('combobox', { name: 'Current key' }).click();
  await page.getByRole('option', { name: 'Revoke immediately' }).click();
  await dialog.getByRole('button', { name: 'Rotate key' }).click();
  const confirmation = page.getByRole('dialog', { name: 'Confirm with your API key' });
  await confirmation.getByLabel('API key').fill(key);
  await confirmation.getByRole('button', { name: 'Confirm' }).click();
  await confirmation.waitFor({ state: 'detached' });
  const field = dialog.getByRole('textbox', { name: 'API key' });
  await field.waitFor();
  const made = await field.inputValue();
  expect(made).toMatch(/^dpm_/);
  expect((await api.as(key)('GET', '/users/me')).status).toBe(401);
  expect((await api.as(made)('GET', '/users/me')).status).toBe(200);
  await dialog.getByRole('button', { name: 'I saved my key' }).click();
  await page.getByText(made.slice(0, 16)).first().waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Profile' }).waitFor();
  expect(await page.getByText(made).count()).toBe(0);
  expect(complaints).toEqual([]);
}, 60_000);

test('an invitation is accepted by its link: the key is shown once and signs in', async () => {
  const { body } = await api.call('POST', '/users', { email: 'grace@example.org', full_name: 'Grace Hopper' });
  const { page, complaints } = await site.browser();
  await page.goto(body.invite_link);
  await page.getByRole('button', { name: 'Accept invitation' }).click();
  const field = page.getByRole('textbox', { name: 'Your API key' });
  await field.waitFor();
  expect(await field.inputValue()).toMatch(/^dpm_/);
  await page.getByRole('button', { name: /sign in/ }).click();
  await page.locator('#main').waitFor();
  await page.getByText('Grace Hopper').first().waitFor();
  expect(new URL(page.url()).hash).toBe('');
  await page.goto(body.invite_link);
  await page.reload();
  await page.getByRole('button', { name: 'Accept invitation' }).click();
  await page.getByText('invalid_invitation').waitFor();
  expect(complaints).toEqual([]);
}, 60_000);

test('an unreachable service is announced, keeps unsaved input, and recovers by itself', async () => {
  const connection = await make.connection({ name: 'Reachable' });
  const { page, context } = await site.signedIn(`/console/connections/${connection.id}?tab=settings`);
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Typed without a connection');
  await context.setOffline(true);
  const banner = page.getByText('Can’t reach the service.');
  await banner.waitFor({ timeout: 20_000 });
  await context.setOffline(false);
  await banner.waitFor({ state: 'detached' });
  expect(await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe(
    'Typed without a connection',
  );
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Typed without a connection' }).waitFor();
}, 60_000);

test('a picture is uploaded, an invalid file is rejected with the reason, and all times are in the time zone', async () => {
  const { page } = await site.signedIn('/console/profile');
  await keepUndo(page);
  const name = page.getByRole('textbox', { name: 'Name', exact: true });
  const former = await name.inputValue();
  await name.fill('Someone else');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await undoOf(page, 'Profile saved').click();
  await noticed(page, 'Undone: Profile saved');
  expect((await site.api.call('GET', '/users/me')).body.full_name).toBe(former);
  await page.reload();
  await page.getByRole('combobox', { name: 'Time zone' }).fill('Tokyo');
  await page.getByRole('option', { name: 'Asia/Tokyo' }).click();
  await page.getByRole('button', { name: 'Save changes' }).click();
  await page.getByText(/^Expires .*(GMT\+9|JST)/).waitFor();
  const input = page.locator('input[type=file]');
  await input.setInputFiles({ name: 'portrait.png', mimeType: 'image/png', buffer: Buffer.from('no picture') });
  await page.getByText('Upload failed').waitFor();
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  await input.setInputFiles({ name: 'portrait.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') });
  await until(async () => (await page.locator('.avatar img').count()) >= 2);
}, 60_000);

test('buttons without permission are disabled', async () => {
  const connection = await make.connection();
  const { page } = await site.signedIn(`/console/connections/${connection.id}`, { key: await api.keyWith([]) });
  expect(await page.getByRole('button', { name: 'Run now' }).isDisabled()).toBeTrue();
}, 60_000);

test('a person signs in with a provider, and again before a key is created', async () => {
  // Another site than the console's, so that cookies are not sent along.
  const provider = await startSignInProvider([`${site.address}/console/sign-in/main/callback`], 'localhost');
  afterAll(() => provider.close());
  process.env.TEST_CLIENT_SECRET = CLIENT.secret;
  const { config, egress } = service.deps;
  const settings = { id: 'main', name: 'Example ID', issuer: provider.issuer, client_id: CLIENT.id };
  const client_secret = 'env:TEST_CLIENT_SECRET';
  config.PUBLIC_URL = site.address;
  config.OIDC_PROVIDERS = readProviders(JSON.stringify([{ ...settings, client_secret, default_roles: ['Creator'] }]));
  egress.allow = [new URL(provider.issuer).host];
  const { page, complaints, context } = await site.browser();
  await page.goto('/console/profile');
  await page.getByRole('link', { name: 'Sign in with Example ID' }).click();
  await page.getByText('Your provider did not sign you in').waitFor();
  provider.person = { sub: 'ada', email: 'ada@example.org', email_verified: true, name: 'Ada Lovelace' };
  await page.getByRole('link', { name: 'Sign in with Example ID' }).click();
  await page.getByRole('link', { name: 'Connections' }).waitFor();
  const cookies = await context.cookies(site.address);
  expect(cookies).toMatchObject([{ name: 'session', httpOnly: true, sameSite: 'Strict' }]);
  await page.goto('/console/profile');
  await service.deps.db.update(sessions).set({ confirmed_until: sql`now()` });
  await page.getByRole('button', { name: 'Create key' }).click();
  const form = page.getByRole('dialog', { name: 'Create API key' });
  await form.getByRole('textbox', { name: 'Name' }).fill('nightly');
  await form.getByRole('button', { name: 'Create key' }).click();
  const [tab] = await Promise.all([
    context.waitForEvent('page'),
    page.getByRole('dialog', { name: 'Sign in again' }).getByRole('link', { name: 'Sign in' }).click(),
  ]);
  await tab.getByText('Close this tab').waitFor();
  await page.getByRole('dialog', { name: 'The new API key' }).waitFor();
  await tab.close();
  expect(complaints.filter((one) => !one.startsWith(`request to ${provider.issuer}`))).toEqual([]);
  await page.getByRole('button', { name: 'I saved the key' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL((url) => url.origin === provider.issuer);
}, 60_000);

describe('below a path', () => {
  const app = { url: '' };
  const proxies = [true, false].map((removes) => startPathProxy(() => app.url, { removes }));
  const [removing, passing] = proxies as [(typeof proxies)[0], (typeof proxies)[0]];
  const config = { ...service.deps.config, PUBLIC_URL: passing.url, BASE_PATH };
  const deps = { ...service.deps, config };
  const listening = createApp(deps).listen({ hostname: '127.0.0.1', port: 0 });
  app.url = `http://127.0.0.1:${listening.server!.port}`;
  afterAll(async () => {
    await Promise.all([...proxies.map((one) => one.close()), listening.server?.stop(true)]);
  });
  const headers = { authorization: `Bearer ${service.api_key}` };

  for (const [name, { origin, url }] of Object.entries({ removing, passing })) {
    test(`REST, tRPC, the command line and the documents work behind a proxy ${name} it`, async () => {
      const events = await fetch(`${url}/automation/events?limit=1&offset=1`, { headers });
      const before = /<([^>]+)>; rel="prev"/.exec(events.headers.get('link') ?? '')?.[1];
      expect(before).toStartWith(`${BASE_PATH}/automation/events?`);
      expect((await fetch(origin + before!, { headers })).status).toBe(200);
      const api_client = createApiClient(url, service.api_key);
      expect(await api_client.users.me.query()).toMatchObject({ email: 'admin@localhost' });
      expect(await Array.fromAsync(['/healthz', '/cli'], async (path) => (await fetch(url + path)).status)).toEqual([
        200, 200,
      ]);
      const document = (await (await fetch(`${url}/openapi.json`)).json()) as { servers: { url: string }[] };
      expect(document.servers).toEqual([{ url: BASE_PATH }]);
      for (const page of [
        '',
        '/',
        '/docs',
        '/docs/api',
        '/docs/api/connections',
        '/docs/guides/getting-started',
        '/console/connections',
      ]) {
        const html = await (await fetch(url + page)).text();
        const own = [...html.matchAll(/ (?:href|src)="(\/[^"]*)"/g)].map(([, link]) => link!);
        expect(own.length, page).toBeGreaterThan(1);
        expect(own.filter((link) => !link.startsWith(`${BASE_PATH}/`))).toEqual([]);
        expect((await fetch(origin + own[0]!)).status, own[0]).toBe(200);
      }
      const unknown = await fetch(`${url}/nothing`);
      expect([unknown.status, await unknown.json()]).toEqual([404, { detail: 'Not Found', code: 'not_found' }]);
    }, 60_000);
  }

  test('addresses that others call contain it', async () => {
    const invited = { email: 'below@example.org', full_name: 'Below A. Path' };
    const post = async (path: string, body: object) => {
      const sent = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
      const response = await fetch(passing.url + path, { ...sent, body: JSON.stringify(body) });
      return (await response.json()) as Record<string, string>;
    };
    expect((await post('/users', invited)).invite_link).toStartWith(`${BASE_PATH}/invitation#token=`);
    const inbox = { name: 'Inbox', connector_type: 'source', connector_name: 'webhook' };
    const parameters = { signature: 'secret_header', secret: 'a-secret-of-the-sender-0123456789' };
    const { id } = await post('/account_connectors', { ...inbox, parameters });
    const shown = await fetch(`${passing.url}/account_connectors/${id}/webhook`, { headers });
    const { address } = (await shown.json()) as { address: string };
    expect(address).toStartWith(`${passing.url}/webhooks/`);
    const sent = { method: 'POST', headers: { 'x-webhook-secret': parameters.secret }, body: '{"id":1}' };
    expect(await (await fetch(address, sent)).json()).toEqual({ status: 'stored' });
  }, 60_000);

  test('the console stays below it, from the sign-in with a provider to the sign-out', async () => {
    const provider = await startSignInProvider([`${passing.url}/console/sign-in/main/callback`], 'localhost');
    afterAll(() => provider.close());
    process.env.TEST_CLIENT_SECRET = CLIENT.secret;
    const settings = { id: 'main', name: 'Example ID', issuer: provider.issuer, client_id: CLIENT.id };
    const client_secret = 'env:TEST_CLIENT_SECRET';
    config.OIDC_PROVIDERS = readProviders(JSON.stringify([{ ...settings, client_secret, default_roles: ['Creator'] }]));
    deps.egress.allow = [new URL(provider.issuer).host];
    provider.person = { sub: 'below', email: 'joan@example.org', email_verified: true, name: 'Joan Clarke' };
    const { page, complaints, context } = await site.browser({ address: passing.origin });
    const failed: string[] = [];
    page.on('response', (one) => {
      if (one.url().startsWith(passing.origin) && one.status() >= 404) failed.push(`${one.status()} ${one.url()}`);
    });
    await page.goto(`${BASE_PATH}/console/profile`);
    await page.getByRole('link', { name: 'Sign in with Example ID' }).click();
    await page.getByRole('heading', { name: 'Profile' }).waitFor();
    expect(page.url()).toBe(`${passing.url}/console/profile`);
    expect(await context.cookies(passing.url)).toMatchObject([{ name: 'session', path: BASE_PATH }]);
    expect(await context.cookies(passing.origin)).toEqual([]);
    await page.getByRole('link', { name: 'Connections' }).click();
    await page.getByRole('heading', { name: 'Connections', exact: true }).waitFor();
    expect(page.url()).toBe(`${passing.url}/console/connections`);
    await page.getByRole('link', { name: 'Profile' }).click();
    expect(failed).toEqual([]);
    expect(complaints.filter((one) => !one.startsWith(`request to ${provider.issuer}`))).toEqual([]);
    const ended = page.waitForRequest((request) => request.url().startsWith(`${provider.issuer}/session/end?`));
    await page.getByRole('button', { name: 'Sign out' }).click();
    const query = new URL((await ended).url()).searchParams;
    expect(query.get('post_logout_redirect_uri')).toBe(`${passing.url}/console`);
  }, 180_000);
});
