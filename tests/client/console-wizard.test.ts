import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { signIn, visit } from '../support/browser.ts';
import { startConsole } from '../support/console.ts';
import { createPlainDatabase } from '../support/database.ts';
import { runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { shoot } from '../support/screenshots.ts';
import { until } from '../support/until.ts';

const site = await startConsole();
const { service, api } = site;
const make = makerOf(api.call);
const warehouse = await createPlainDatabase();
const wide = await createPlainDatabase();
const tables = postgres(wide.url, { max: 1, onnotice: () => {} });
await tables.unsafe(
  Array.from(
    { length: 1000 },
    (_, n) => `create table t_${n} (id int primary key, email varchar(40), changed timestamptz)`,
  ).join(';'),
);
await tables.unsafe('alter table t_99 add updated_at timestamptz not null default now()');
await tables.end();
/** Since PostgreSQL 15, only its owner may create tables in `public`. */
const loader = `loader_${crypto.randomUUID().slice(0, 8)}`;
const admin = postgres(warehouse.url, { max: 1, onnotice: () => {} });
await admin.unsafe(`create role ${loader} login password 'right'; create schema shop authorization ${loader}`);
afterAll(async () => {
  await admin.unsafe(`drop owned by ${loader}; drop role ${loader}`);
  await admin.end();
  await Promise.all([warehouse.drop(), wide.drop()]);
});
const opened = await site.signedIn('/console/connections/new');
const { page, complaints } = opened;

const next = () => page.getByRole('button', { name: 'Next' }).click();
const atStep = (name: string) => page.locator('.steps [aria-current=step]').getByText(name, { exact: true }).waitFor();
const visible = () => page.locator('.wizard-panel:visible');
const choose = (name: string) => visible().locator('label.connector-card').filter({ hasText: name }).first().click();
/** The connection with this name, as the service returns it. */
const connectionNamed = async (name: string) => {
  const { body } = await api.call('GET', '/connections');
  return body.find((one: { name: string }) => one.name === name);
};

const fillPostgres = (url: string) => visible().getByLabel('Connection string', { exact: true }).fill(url);

/** The steps in the console of the first guide, each with what it names: buttons, fields and links. */
function guidedSteps(): string[][] {
  const guide = readFileSync(join(import.meta.dir, '../../server/docs/guides/getting-started.md'), 'utf8');
  const [, section = ''] = guide.split('\n## Create the same in the console\n');
  const lines = section.split('\n## ')[0]!.split('\n');
  const steps = lines.filter((line) => /^\d+\. /.test(line));
  return steps.map((step) => Array.from(step.matchAll(/\*\*(.+?)\*\*/g), ([, name]) => name!));
}

test('the first own pipeline in an empty account, by the steps of the guide alone', async () => {
  const [shop, copy] = await Promise.all([createPlainDatabase(), createPlainDatabase()]);
  const [from, to] = [shop, copy].map(({ url }) => postgres(url, { max: 1, onnotice: () => {} }));
  await from!.unsafe(`
    create table customers (id int primary key, email text);
    create table orders (id int primary key, amount numeric(10, 2));
    insert into customers select n, n || '@example.com' from generate_series(1, 200) n;
    insert into orders select n, n / 4.0 from generate_series(1, 300) n`);
  const began = performance.now();
  await page.context().clearCookies();
  await page.goto('/');
  await signIn({ page }, service.api_key);
  await page.getByText('0 of 5 steps done').waitFor();

  const urls = [shop.url, copy.url];
  const names = ['First source', 'First destination'];
  /** What is done with each thing that the guide names. A thing that the page does not have is waited for in vain. */
  const doing: Record<string, (name: string) => Promise<void>> = {
    'Create a connection': (name) => page.getByRole('link', { name, exact: true }).click(),
    PostgreSQL: (name) => visible().locator('button.connector-card').getByText(name, { exact: true }).first().click(),
    Name: (name) => visible().getByRole('textbox', { name, exact: true }).fill(names.shift()!),
    'Connection string': (name) => visible().getByLabel(name, { exact: true }).fill(urls.shift()!),
    'Test and save': (name) => visible().getByRole('button', { name, exact: true }).click(),
    Next: (name) => page.getByRole('button', { name, exact: true }).click(),
    'Create and run': (name) => page.getByRole('button', { name, exact: true }).click(),
    succeeded: (name) => page.locator('.page-title').getByText(name).waitFor(),
  };
  const steps = guidedSteps();
  expect(steps).toHaveLength(6);
  for (const step of steps) for (const name of step) await doing[name]!(name);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`the first own pipeline: ${steps.length} steps, ${steps.flat().length} actions, ${seconds} s`);

  const rows = async (table: string) => (await to!`select count(*)::int as n from ${to!(table)}`)[0]!.n;
  expect([await rows('customers'), await rows('orders')]).toEqual([200, 300]);
  await visit(page, '/');
  await page.getByText('4 of 5 steps done').waitFor();
  expect(complaints).toEqual([]);

  // The next test begins with an empty account, too.
  const { id, source, destination } = await connectionNamed('First source to First destination');
  for (const path of [`connections/${id}`, `account_connectors/${source.id}`, `account_connectors/${destination.id}`])
    expect((await api.call('DELETE', `/${path}`)).status).toBe(204);
  await page.goto('/console/connections');
  await Promise.all([from!.end(), to!.end()]);
  await Promise.all([shop.drop(), copy.drop()]);
}, 120_000);

test('a pipeline from nothing: source, streams, destination, schedule, first run watched to its end', async () => {
  await visit(page, '/');
  await page.getByText('0 of 5 steps done').waitFor();
  await page.getByRole('link', { name: 'Create a connection', exact: true }).click();
  await atStep('Source');
  expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true);
  await shoot(page, 'wizard-gallery');
  await visible().getByRole('searchbox', { name: 'Search connectors' }).fill('demo');
  await visible().locator('button.connector-card').first().click();
  await visible().getByRole('textbox', { name: 'Name', exact: true }).fill('Shop');
  await visible().getByRole('textbox', { name: 'Rows' }).fill('500');
  await visible().getByRole('button', { name: 'Test and save' }).click();
  await visible().getByRole('radio', { name: 'Shop' }).waitFor();
  await page.locator('.steps small').getByText('Shop').waitFor();
  await shoot(page, 'wizard-source');
  await next();

  await atStep('Streams');
  await visible().getByRole('checkbox', { name: 'Select orders' }).waitFor();
  await visible()
    .getByRole('button', { name: /^users/ })
    .click();
  await visible().getByRole('textbox', { name: 'Destination name of email' }).fill('contact');
  await visible().getByRole('combobox', { name: 'Masking of email' }).click();
  await page.getByRole('option', { name: 'Hash', exact: true }).click();
  await shoot(page, 'wizard-streams');
  await visible()
    .getByRole('button', { name: /^users/ })
    .click();
  await visible().getByRole('checkbox', { name: 'Select events' }).uncheck();
  await next();

  await atStep('Destination');
  await visible().getByRole('searchbox', { name: 'Search connectors' }).fill('PostgreSQL');
  await visible().locator('button.connector-card').first().click();
  await visible().getByRole('textbox', { name: 'Name', exact: true }).fill('Warehouse');
  await fillPostgres(Object.assign(new URL(warehouse.url), { username: loader, password: 'right' }).href);
  await visible().getByRole('button', { name: 'Test and save' }).click();
  await page.locator('.steps small').getByText('Warehouse').waitFor();
  await visible().getByText('Set a destination schema in each connection').waitFor();
  const schema = visible().getByRole('combobox', { name: 'Destination schema' });
  await schema.fill('shops');
  const refused = visible().getByText('There is no schema shops, and this user may not create it');
  await refused.first().waitFor();
  const checked = visible().getByRole('region', { name: 'Warehouse' });
  await checked.getByText('Tested with the schema shops').waitFor();
  await checked.locator('.checks').getByText(`TO "${loader}";`).waitFor();
  await shoot(page, 'wizard-destination-schema');
  await checked.getByRole('button', { name: 'Test', exact: true }).click();
  await page.getByText('Warehouse failed its test').waitFor();
  await schema.fill('shop');
  await checked.locator('.checks li[data-status=passed]').getByText('Schema shop').waitFor();
  expect(await refused.count()).toBe(0);
  await checked.getByRole('button', { name: 'Test', exact: true }).click();
  await page.getByText('Warehouse passed its test').waitFor();
  await shoot(page, 'wizard-destination');
  await next();

  await atStep('Schedule');
  await visible().getByText('Cron', { exact: true }).click();
  await visible().getByRole('textbox', { name: 'Cron expression' }).fill('30 6 * * 1-5');
  await visible().locator('.schedule-preview').getByText('At 06:30, Monday through Friday').waitFor();
  expect(await visible().locator('.schedule-preview time').count()).toBe(5);
  await shoot(page, 'wizard-schedule');
  await next();

  await atStep('Review');
  await visible().getByText('PostgreSQL, schema shop').waitFor();
  await visible().getByRole('combobox', { name: 'Inexact values' }).click();
  await page.getByRole('option', { name: 'Store the nearest value and warn' }).click();
  await shoot(page, 'wizard-review');
  await visible().getByRole('button', { name: 'Create and run' }).click();
  await page.getByRole('heading', { name: 'Run #1' }).waitFor();
  await page.locator('.page-title').getByText('succeeded').waitFor({ timeout: 30_000 });

  const made = await connectionNamed('Shop to Warehouse');
  expect(made.schedule).toMatchObject({ type: 'cron', cron_expression: '30 6 * * 1-5' });
  expect(made.inexact_values).toBe('allow');
  expect(made.streams.find((one: { name: string }) => one.name === 'events').selected).toBe(false);
  const users = await admin`select contact from shop.users`;
  expect(users).toHaveLength(50);
  expect(users[0]!.contact).toMatch(/^[0-9a-f]{64}$/);
  expect(complaints).toEqual([]);
}, 120_000);

test('a definition is drafted from an OpenAPI document, with its guesses to confirm', async () => {
  const schema = { type: 'array', items: { type: 'object', properties: { id: {} } } };
  const described = {
    openapi: '3.1.0',
    servers: [{ url: 'https://shop.example.com' }],
    security: [{ main: [] }],
    components: { securitySchemes: { main: { type: 'http', scheme: 'bearer' } } },
    paths: {
      '/orders': { get: { responses: { 200: { content: { 'application/json': { schema } } } } } },
      '/health': { get: { responses: { 200: { content: { 'application/json': { schema: { type: 'object' } } } } } } },
    },
  };
  const upload = (text: string) =>
    dialog
      .locator('input[type=file]')
      .setInputFiles({ name: 'shop.json', mimeType: 'application/json', buffer: Buffer.from(text) });
  const draft = () => dialog.getByRole('button', { name: 'Draft definition' });
  await visit(page, '/console/sources/new');
  await page.getByRole('searchbox', { name: 'Search connectors' }).fill('REST API');
  await page.locator('button.connector-card').filter({ hasText: 'REST API' }).first().click();
  await page.getByRole('button', { name: 'Draft from an OpenAPI document' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'OpenAPI document' }).fill('openapi: 4.0.0');
  await draft().click();
  await dialog.getByText('Not an OpenAPI 3 or Swagger 2 document').waitFor();
  await upload('x'.repeat(8_000_001));
  await dialog.getByText('The document has 8,000,001 characters, and at most 8,000,000 can be read').waitFor();
  expect(await draft().isDisabled()).toBe(true);
  await upload(JSON.stringify(described));
  await draft().click();
  await dialog.getByText('Authentication by the security scheme main').waitFor();
  await dialog.getByText('Primary key id').waitFor();
  await dialog.getByText('1 operation without a stream').waitFor();
  await shoot(page, 'openapi-draft');
  await dialog.getByRole('button', { name: 'Use this draft' }).click();
  const field = (name: string) => page.getByRole('textbox', { name });
  expect(await field('API definition').inputValue()).toContain('base_url: https://shop.example.com');
  expect(JSON.parse(await field('Secret values').inputValue())).toEqual({ token: '' });
  await shoot(page, 'openapi-drafted');
  expect(complaints).toEqual([]);
});

test('a template fills in connectors, names, schedule and modes, which can be changed', async () => {
  await page.evaluate('sessionStorage.clear()');
  await page.goto('/console/connections/new');
  await visible().getByText('Start from a template').click();
  await shoot(page, 'wizard-templates');
  await visible()
    .getByRole('button', { name: /^PostgreSQL to PostgreSQL, every night/ })
    .click();
  await visible().getByText('A user of the source that may read its tables').waitFor();
  await shoot(page, 'wizard-template');
  expect(await visible().getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe('Shop');
  await visible().getByRole('textbox', { name: 'Name', exact: true }).fill('Nightly source');
  await fillPostgres(warehouse.url);
  await visible().getByRole('button', { name: 'Test and save' }).click();
  await visible().getByRole('radio', { name: 'Nightly source' }).waitFor();
  await next();

  await atStep('Streams');
  await visible()
    .getByRole('button', { name: /^shop\.users/ })
    .getByText(/^Full refresh, overwrite/)
    .waitFor();
  await next();
  await choose('Warehouse');
  expect(await visible().getByRole('combobox', { name: 'Destination schema' }).inputValue()).toBe('shop');
  await visible().getByRole('combobox', { name: 'Destination schema' }).fill('copies');
  await next();
  await atStep('Schedule');
  await visible().locator('.schedule-preview').getByText('02:00').first().waitFor();
  await next();
  await visible().getByText('full refresh, overwrite').waitFor();
  await page.evaluate('sessionStorage.clear()');
  await page.goto('/console/connections');
  expect(complaints).toEqual([]);
}, 120_000);

test('unsaved input outlasts a step back, another page, a refusal, and a session that ends', async () => {
  const source = await make.source({ streams: 3 });
  const destination = await make.destination();
  await make.connection({ name: 'Taken' });
  await visit(page, '/console/connections/new');
  await choose(source.name);
  await next();
  await visible().getByRole('checkbox', { name: 'Select stream_2' }).uncheck();
  await page.getByRole('link', { name: 'Overview' }).first().click();
  await page.goto('/console/connections/new?step=streams');
  await visible().getByRole('checkbox', { name: 'Select stream_2' }).waitFor();
  expect(await visible().getByRole('checkbox', { name: 'Select stream_2' }).isChecked()).toBe(false);
  await next();
  await choose('Warehouse');
  await visible().getByRole('combobox', { name: 'Destination schema' }).fill('shop');
  // Only a destination with schemas has the field, and what was typed for another one is not sent.
  await choose(destination.name);
  await visible().getByRole('region', { name: destination.name }).waitFor();
  await visible().getByRole('combobox', { name: 'Destination schema' }).waitFor({ state: 'detached' });
  await next();
  await next();
  await visible().getByRole('textbox', { name: 'Name', exact: true }).fill('Taken');
  await page.goBack();
  await atStep('Schedule');
  await next();
  await visible().getByRole('button', { name: 'Create and run' }).click();
  await visible().getByRole('alert').getByText('duplicate_name').waitFor();
  await shoot(page, 'wizard-refused');
  await visible().getByRole('textbox', { name: 'Name', exact: true }).fill('After the session');

  await page.context().clearCookies();
  await visible().getByRole('button', { name: 'Create and run' }).click();
  await page.getByRole('textbox', { name: 'API key' }).fill(service.api_key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('textbox', { name: 'API key' }).waitFor({ state: 'detached' });
  expect(await visible().getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe('After the session');
  await visible().getByRole('button', { name: 'Create and run' }).click();
  await page.getByRole('heading', { name: 'Run #1' }).waitFor();
  const made = await connectionNamed('After the session');
  const selected = made.streams.filter((one: { selected: boolean }) => one.selected);
  expect(selected.map((one: { name: string }) => one.name)).toEqual(['stream_1', 'stream_3']);
  expect(made.destination_schema).toBeNull();
  await runEnded(service, new URL(page.url()).pathname.split('/').at(-1)!);
}, 120_000);

test('by keyboard alone: a source, a stream left out, and the way back', async () => {
  await page.evaluate('sessionStorage.clear()');
  await page.goto('/console/connections/new');
  const first = visible().getByRole('group', { name: 'Source' }).getByRole('radio').first();
  await first.waitFor({ state: 'attached' });
  await first.focus();
  await page.keyboard.press('Space');
  await page.locator('.wizard-selection [data-selected]').waitFor();
  await until(() => page.getByRole('button', { name: 'Next' }).isEnabled());
  await page.getByRole('button', { name: 'Next' }).focus();
  await page.keyboard.press('Enter');
  await atStep('Streams');
  // The next step has the focus, so that Tab continues from there.
  await until(() => page.evaluate<boolean>("document.activeElement.classList.contains('wizard-panel')"));
  const stream = visible()
    .getByRole('checkbox', { name: /^Select / })
    .first();
  await stream.focus();
  await page.keyboard.press('Space');
  expect(await stream.isChecked()).toBe(false);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await visible().getByRole('button', { name: 'Add filter' }).waitFor();
  await page.getByRole('button', { name: 'Back' }).focus();
  await page.keyboard.press('Enter');
  await atStep('Source');
}, 60_000);

test('a source that fails its test is fixed within the wizard', async () => {
  await visit(page, '/console/connections/new');
  await visible().getByText('New source').click();
  await visible().getByRole('searchbox', { name: 'Search connectors' }).fill('PostgreSQL');
  await visible().locator('button.connector-card').first().click();
  await visible().getByRole('button', { name: 'Test and save' }).click();
  await visible().getByText('Enter a value for Host').waitFor();
  await visible().getByRole('textbox', { name: 'Name', exact: true }).fill('Wide');
  await fillPostgres(wide.url);
  await visible().getByLabel('Password', { exact: true }).fill('wrong');
  await visible().getByRole('button', { name: 'Test and save' }).click();
  await visible().locator('.checks [data-status=failed]').waitFor();
  expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true);
  await shoot(page, 'wizard-failed-test');
  await visible()
    .getByLabel('Password', { exact: true })
    .fill(String(postgresParameters(wide.url).password));
  await visible().getByRole('button', { name: 'Test and save' }).click();
  await visible().locator('.checks [data-status=failed]').waitFor({ state: 'detached' });
  expect(await page.getByRole('button', { name: 'Next' }).isEnabled()).toBe(true);
}, 60_000);

test('a thousand streams: only visible ones are in the DOM; bulk edit changes many', async () => {
  await next();
  await visible().getByText('All 1000').waitFor({ timeout: 60_000 });
  expect(await visible().locator('.stream-rows > li').count()).toBeLessThan(60);
  await visible().getByRole('searchbox', { name: 'Search streams' }).fill('t_99');
  await visible().getByText('11 of 11 streams selected').waitFor();
  const suggested = visible().getByRole('button', { name: /^public\.t_99 / });
  expect(await suggested.innerText()).toContain('Incremental, append dedup · cursor updated_at');
  expect(await suggested.innerText()).toContain('updated_at grows with each change and id identifies the rows.');
  await visible().getByText('changed can be empty, and changes to such rows would be missed').first().waitFor();
  await visible().getByRole('button', { name: 'Bulk edit' }).click();
  const bulk = visible().getByRole('group', { name: 'Bulk edit settings' });
  await bulk.getByRole('combobox', { name: 'Sync mode' }).click();
  await page.getByRole('option', { name: 'incremental' }).click();
  await bulk.getByRole('combobox', { name: 'Cursor field' }).fill('changed');
  await bulk.getByRole('combobox', { name: 'Field to mask' }).fill('email');
  await page.keyboard.press('Escape');
  await bulk.getByRole('combobox', { name: 'Masking' }).click();
  await page.getByRole('option', { name: 'Redact' }).click();
  await shoot(page, 'wizard-bulk');
  await bulk.getByRole('button', { name: 'Apply to 11 streams' }).click();
  const line = visible().getByRole('button', { name: /^public\.t_990/ });
  expect(await line.innerText()).toContain('Incremental, append dedup · cursor changed · 3 of 3 fields · 1 masked');
  await visible().getByRole('searchbox', { name: 'Search streams' }).fill('');
  await visible().getByText('1,000 of 1,000 streams selected').waitFor();
  await visible()
    .getByRole('checkbox', { name: /streams selected/ })
    .uncheck();
  await visible().getByText('0 of 1,000 streams selected', { exact: true }).waitFor();
  expect(complaints).toEqual([]);
}, 120_000);
