import { afterAll, expect, test } from 'bun:test';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { faultsOf } from '../support/browser.ts';
import { startConsole } from '../support/console.ts';
import { startHttpServer } from '../support/http-server.ts';
import { shoot } from '../support/screenshots.ts';

const server = startHttpServer();
afterAll(() => server.close());
const { url } = server;
const site = await startConsole({ EGRESS_ALLOW: [new URL(url).host] });
const { page, complaints } = await site.signedIn('/console/sources');
const form = page.locator('form');
const box = (name: string) => form.getByRole('textbox', { name, exact: true });
const select = async (name: string, option: string) => {
  await form.getByRole('combobox', { name }).click();
  await page.getByRole('option', { name: option, exact: true }).click();
};

const text = (title: string, more: object = {}) => ({ type: 'string', title, ...more });
const SPECIFICATION = {
  type: 'object',
  title: 'Scope',
  // Of the whole configuration, beside its own settings.
  oneOf: [
    { title: 'Orders of a day', required: ['day'], properties: { scope: { const: 'day' }, day: text('Day') } },
    { title: 'All orders', properties: { scope: { const: 'all' } } },
  ],
  required: ['shop', 'credentials', 'start_date'],
  properties: {
    region: text('Region', { enum: ['eu', 'us'], order: 4 }),
    shop: text('Shop', { order: 0, pattern: '^[a-z]+$', description: 'As in <a href="https://x">the address</a>' }),
    credentials: {
      type: 'object',
      title: 'Authentication',
      order: 1,
      oneOf: [
        {
          title: 'API token',
          required: ['auth_type', 'token'],
          properties: { auth_type: { const: 'token' }, token: text('Access token', { airbyte_secret: true }) },
        },
        {
          title: 'OAuth',
          required: ['auth_type', 'client_id', 'client_secret'],
          properties: {
            auth_type: { type: 'string', enum: ['oauth'] },
            client_id: text('Client ID'),
            client_secret: text('Client secret', { airbyte_secret: true }),
          },
        },
      ],
    },
    start_date: text('Start date', { format: 'date', order: 2 }),
    page_size: { type: 'integer', title: 'Page size', minimum: 1, maximum: 100, default: 50, order: 3 },
    archived: { type: 'boolean', title: 'Archived items', order: 5 },
    tags: { type: 'array', title: 'Tags', items: { type: 'string' }, order: 6 },
    reports: {
      type: 'array',
      title: 'Reports',
      order: 7,
      items: {
        required: ['name'],
        properties: { name: text('Report'), key: text('Report key', { airbyte_secret: true }) },
      },
    },
    internal: text('Internal', { airbyte_hidden: true }),
  },
};

/** In both schemes, on a phone and on a wide screen: no faults, and nothing scrolls sideways. */
async function look(name: string): Promise<void> {
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [size, width] of [
      ['phone', 390],
      ['wide', 1600],
    ] as const) {
      await page.setViewportSize({ width, height: 900 });
      const sideways = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      expect([name, size, sideways]).toEqual([name, size, 0]);
      expect(await faultsOf(page, scheme === 'light' ? 'all' : 'colors')).toEqual([]);
      await shoot(page, `${name}-${size}-${scheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 860 });
}

const stored = async (id: string) => {
  const { body } = await site.api.call('GET', `/account_connectors/source/${id}`);
  return (body as { parameters: Record<string, unknown> }).parameters;
};

test('a source of a custom connector is set up and changed in the fields that its manifest declares', async () => {
  server.on('/orders', () => Response.json([{ id: 1 }]));
  const api_token = "{{ config['credentials'].get('token') or config['credentials']['client_secret'] }}";
  const requester = { authenticator: { type: 'BearerAuthenticator', api_token } };
  const orders = streamOf('orders', { url, properties: { id: { type: 'integer' } }, requester });
  const manifest = manifestOf([orders], { spec: { type: 'Spec', connection_specification: SPECIFICATION } });
  await site.api.call('POST', '/custom_connectors', { name: 'shop', manifest: JSON.stringify(manifest) });
  await page.goto('/console/sources/new');
  await page.getByRole('searchbox', { name: 'Search connectors' }).fill('shop');
  await page.locator('button.connector-card', { hasText: 'Custom connector' }).click();

  await box('Access token').waitFor();
  const names = await form.locator('label').allInnerTexts();
  const own = names.map((name) => name.replace(/\s*\*$/, '')).filter((name) => name !== '');
  expect(own.slice(1, 8)).toEqual([
    'Shop',
    'Authentication',
    'Access token',
    'Start date',
    'Page size',
    'Region',
    'Archived items',
  ]);
  expect(own).not.toContain('Internal');
  expect(own).not.toContain('Configuration');
  expect(own).not.toContain('Secrets');
  await form.getByText('As in the address', { exact: true }).waitFor();

  await page.getByRole('button', { name: 'Test and save' }).click();
  await form.getByText('Enter a value for Access token').waitFor();
  await form.getByText('Enter a value for Start date').waitFor();
  await box('Shop').fill('Shop 1');
  await form.getByText('Invalid format').waitFor();
  await look('specification-refused');

  await select('Authentication', 'OAuth');
  await box('Client ID').waitFor();
  expect(await box('Access token').count()).toBe(0);
  await select('Authentication', 'API token');
  await box('Shop').fill('acme');
  await box('Access token').fill('the-first-token');
  await form.getByLabel('Start date').fill('2026-01-31');
  await box('Page size').fill('20');
  await select('Region', 'us');
  await form.getByRole('switch', { name: 'Archived items' }).check({ force: true });
  await form.getByLabel('Tags').fill('new');
  await form.getByLabel('Tags').press('Enter');
  await form.getByRole('button', { name: 'Add entry' }).click();
  await box('Report').fill('first');
  await form.getByRole('button', { name: 'Add entry' }).click();
  await box('Report').nth(1).fill('second');
  await box('Report key').nth(1).fill('the-report-key');
  await form.getByRole('button', { name: 'Remove entry 1' }).click();
  await box('Day').fill('monday');
  await select('Scope', 'All orders');
  await look('specification');
  await page.getByRole('button', { name: 'Test and save' }).click();
  await page.getByRole('heading', { name: 'Shop', exact: true, level: 1 }).waitFor();
  const id = new URL(page.url()).pathname.split('/').at(-1)!;
  expect((await stored(id))['config']).toEqual({
    shop: 'acme',
    credentials: { auth_type: 'token' },
    start_date: '2026-01-31',
    page_size: 20,
    region: 'us',
    archived: true,
    tags: ['new'],
    reports: [{ name: 'second' }],
    scope: 'all',
  });
  expect(server.seen.at(-1)?.headers['authorization']).toBe('Bearer the-first-token');

  // What changes where requests go needs the secrets again.
  await box('Shop').waitFor();
  expect(await box('Shop').inputValue()).toBe('acme');
  expect(await box('Access token').getAttribute('placeholder')).toBe('Stored. Type to replace');
  await box('Shop').fill('other');
  await form.getByText('Enter again: Configuration changed').waitFor();
  await box('Access token').fill('the-second-token');
  await look('specification-stored');
  await page.getByRole('button', { name: 'Test and save' }).click();
  await form.getByText('Enter again').waitFor({ state: 'detached' });
  await box('Access token').and(page.getByPlaceholder('Stored. Type to replace')).waitFor();
  expect(await stored(id)).toMatchObject({ config: { shop: 'other', page_size: 20 } });
  expect(server.seen.at(-1)?.headers['authorization']).toBe('Bearer the-second-token');
  expect(complaints).toEqual([]);
}, 180_000);
