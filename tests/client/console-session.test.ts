import { afterAll, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { apiKeys, sessions } from '../../db/schema/index.ts';
import { readProviders } from '../../server/platform/provider-settings.ts';
import { signIn } from '../support/browser.ts';
import { startConsole } from '../support/console.ts';
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
  await service.deps.db
    .update(apiKeys)
    .set({ expires_at: sql`now()` })
    .where(eq(apiKeys.id, (await keyOf(key)).id));
  await page.getByRole('button', { name: 'Save' }).click();
  const dialog = page.getByRole('dialog', { name: 'Sign in' });
  await dialog.waitFor();
  expect(await dialog.getByRole('status').innerText()).toInclude('Your API key has expired');
  const fresh = sql`now() + interval '1 day'`;
  await service.deps.db
    .update(apiKeys)
    .set({ expires_at: fresh })
    .where(eq(apiKeys.id, (await keyOf(key)).id));
  await signIn({ page }, key);
  expect(await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe(
    'Typed before the key expired',
  );
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Typed before the key expired' }).waitFor();
  expect(complaints).toEqual([]);
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
