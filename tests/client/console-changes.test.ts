import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import postgres from 'postgres';
import { samplesOf } from '../../client/console/as-code/samples.ts';
import { readConnectionString } from '../../client/console/parameter-form/connection-string.ts';
import { faultsOf, visit } from '../support/browser.ts';
import { keepUndo, noticed, startConsole, undoOf } from '../support/console.ts';
import { createPlainDatabase } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { shoot } from '../support/screenshots.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(90_000);

const site = await startConsole();
const { call } = site.api;
const make = makerOf(call);
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  await sql.end();
  await database.drop();
});
const { page, complaints } = await site.signedIn('/console/profile');

/** A schema of its own with a table, and a connection from it into another schema. */
async function shop(name: string, body: object = {}) {
  await sql.unsafe(`create schema ${name};
    create table ${name}.orders (id int primary key, total int, note text);
    insert into ${name}.orders select i, i, 'n' || i from generate_series(1, 3) i`);
  const parameters = postgresParameters(database.url);
  const source = await make.connector('source', 'postgres', { ...parameters, schemas: [name] });
  const destination = await make.connector('destination', 'postgres', parameters);
  const connection = await make.connection({
    name,
    source_id: source.id,
    destination_id: destination.id,
    destination_schema: `${name}_copy`,
    ...body,
  });
  return connection.id as string;
}

const tab = () => page.getByRole('tabpanel', { name: /Schema changes/ });
const lines = (stream: string) => tab().getByRole('region', { name: stream }).getByRole('listitem');
const get = async (id: string) => (await call('GET', `/connections/${id}`)).body;
const columns = async (table: string) => (await sql.unsafe(`select * from ${table}`)).columns.map(({ name }) => name);

/** Clicks the button and waits for the end of the run. */
async function runFromThePage(): Promise<void> {
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.getByRole('heading', { name: /^Run #/ }).waitFor();
  await page.locator('.page-title').getByText('succeeded').waitFor({ timeout: 30_000 });
}

test('a breaking change is found from the page, shown, accepted, and loaded without', async () => {
  const id = await shop('breaks', { schedule: { type: 'interval', interval_minutes: 1440 } });
  await page.goto(`/console/connections/${id}`);
  await runFromThePage();
  await sql.unsafe(`set search_path = breaks; alter table orders drop column note; alter table orders add column paid boolean;
    create table returns (id int primary key); insert into returns values (1); reset search_path`);
  await page.goto(`/console/connections/${id}?tab=changes`);
  await tab().getByText('No changes to review').waitFor();
  await tab().getByRole('button', { name: 'Refresh schema' }).click();
  await lines('breaks.orders').filter({ hasText: 'Field removed' }).getByText('Breaking', { exact: true }).waitFor();
  await lines('breaks.returns').filter({ hasText: 'New stream' }).getByText('Non-breaking').waitFor();
  expect(await lines('breaks.orders').first().innerText()).toContain('note');
  await page.getByText('This connection is disabled').waitFor();
  expect((await get(id)).status).toBe('auto_disabled');
  expect(await faultsOf(page)).toEqual([]);
  await shoot(page, 'changes-breaking');
  await tab().getByRole('button', { name: 'Accept changes' }).click();
  await page.getByText('Schema changes reviewed').waitFor();
  await tab().getByText('No changes to review').waitFor();
  await page.getByText('This connection is disabled').waitFor({ state: 'detached' });
  expect(await get(id)).toMatchObject({ status: 'active', schema_change_status: 'no_change' });
  await runFromThePage();
  expect(await columns('breaks_copy.orders')).toEqual(['id', 'total', 'paid']);
  expect(await sql.unsafe('select id from breaks_copy.returns')).toEqual([{ id: 1 }] as never);
  expect(complaints).toEqual([]);
});

test('an ignored change stays out of the destination, and is not listed again', async () => {
  const id = await shop('refused', { schema_change_policy: 'ignore' });
  await sql.unsafe(
    'alter table refused.orders add column paid boolean; create table refused.returns (id int primary key)',
  );
  await page.goto(`/console/connections/${id}?tab=changes`);
  await tab().getByRole('button', { name: 'Refresh schema' }).click();
  await lines('refused.orders').filter({ hasText: 'New field' }).getByText('Non-breaking').waitFor();
  await page
    .getByRole('tab', { name: /Schema changes/ })
    .getByText('Review')
    .waitFor();
  await tab().getByRole('button', { name: 'Ignore changes' }).click();
  await tab().getByText('No changes to review').waitFor();
  await tab().getByRole('button', { name: 'Refresh schema' }).click();
  const before = (await get(id)).catalog_refreshed_at;
  await until(async () => (await get(id)).catalog_refreshed_at !== before);
  await runFromThePage();
  expect(await columns('refused_copy.orders')).toEqual(['id', 'total', 'note']);
  expect(await sql.unsafe("select to_regclass('refused_copy.returns') as found")).toEqual([{ found: null }] as never);
  await page.goto(`/console/connections/${id}?tab=changes`);
  await tab().getByText('No changes to review').waitFor();
  expect(complaints).toEqual([]);
});

test('a review that conflicts with the settings says why, and changes nothing', async () => {
  const id = await shop('stands', {
    streams: [
      { name: 'orders', sync_mode: 'incremental', destination_sync_mode: 'append_dedup', cursor_field: ['id'] },
    ],
  });
  await sql.unsafe('alter table stands.orders drop constraint orders_pkey');
  await page.goto(`/console/connections/${id}?tab=changes`);
  await tab().getByRole('button', { name: 'Refresh schema' }).click();
  await lines('stands.orders')
    .filter({ hasText: 'Primary key changed' })
    .getByText('Breaking', { exact: true })
    .waitFor();
  await tab().getByRole('button', { name: 'Accept changes' }).click();
  await tab().getByRole('alert').getByText('Review not saved').waitFor();
  await shoot(page, 'changes-refused');
  expect((await get(id)).schema_change_status).toBe('breaking');
  await tab().getByRole('button', { name: 'Ignore changes' }).click();
  await tab().getByText('No changes to review').waitFor();
  expect(await get(id)).toMatchObject({ status: 'active', schema_change_status: 'no_change' });
});

test('in the catalog, a field is masked for all connections, and a query is tested and saved as a dataset', async () => {
  const id = await shop('browse', { status: 'paused' });
  const { source_id } = await get(id);
  await visit(page, `/console/sources/${source_id}`);
  await page.getByRole('link', { name: 'Browse catalog' }).click();
  await page.getByRole('searchbox', { name: 'Search streams and fields' }).fill('note');
  await page.getByRole('button', { name: /^browse.orders note/ }).click();
  await page.getByRole('combobox', { name: 'Masking of note' }).click();
  await page.getByRole('option', { name: 'Redact' }).click();
  await page.getByRole('button', { name: 'Save settings' }).click();
  await noticed(page, 'Settings saved');
  const { body } = await call('GET', `/account_connectors/${source_id}/catalog`);
  expect(body[0].fields[2]).toMatchObject({ name: 'note', override: { masking: 'redact', excluded: null } });
  await page.getByRole('button', { name: 'New dataset' }).click();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('large_orders');
  await page.getByRole('textbox', { name: 'Query' }).fill('select id, missing from browse.orders');
  await page.getByRole('button', { name: 'Test query' }).click();
  await page.getByText('column "missing" does not exist').first().waitFor();
  await page.getByRole('textbox', { name: 'Query' }).fill('select id, total from browse.orders where total > 1');
  await page.getByRole('button', { name: 'Test query' }).click();
  await page.getByText('First 2 rows, 2 columns').waitFor();
  await shoot(page, 'dataset');
  expect(await faultsOf(page)).toEqual([]);
  await keepUndo(page);
  await page.getByRole('button', { name: 'New dataset' }).click();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('large_orders');
  await page.getByRole('textbox', { name: 'Query' }).fill('select id, total from browse.orders where total > 1');
  const saveDataset = async () => {
    await page.getByRole('button', { name: 'Test and save' }).click();
    await undoOf(page, 'Datasets saved').waitFor();
  };
  await saveDataset();
  await page
    .getByRole('button', { name: /^large_orders/ })
    .first()
    .click();
  await page.getByRole('textbox', { name: 'Query' }).fill('select id from browse.orders');
  await noticed(page, 'Datasets saved');
  await saveDataset();
  await undoOf(page, 'Datasets saved').click();
  await noticed(page, 'Undone: Datasets saved');
  const source = await call('GET', `/account_connectors/source/${source_id}`);
  expect(source.body.datasets).toEqual([
    { name: 'large_orders', sql: 'select id, total from browse.orders where total > 1' },
  ]);
  await page.getByRole('searchbox', { name: 'Search streams and fields' }).fill('large');
  await page.getByRole('button', { name: /^large_orders 2 fields/ }).waitFor();
  await visit(page, `/console/connections/${id}`);
  await page.getByRole('button', { name: 'Notify on failure', pressed: true }).click();
  await page.getByRole('button', { name: 'Notify on failure', pressed: false }).waitFor();
  expect(await get(id)).toMatchObject({ notify_on_failure: false });
  expect(complaints).toEqual([]);
});

test('the code of an item creates it again with the secrets of the environment', async () => {
  const { body: connector } = await call('POST', '/account_connectors', {
    name: 'Web',
    connector_type: 'destination',
    connector_name: 'http',
    test_connection: false,
    parameters: {
      url: 'https://example.org/rows',
      authentication: 'basic',
      username: 'a`b$c\\d"e',
      password: 'secret',
    },
  });
  const { body: connectors } = await call('GET', '/connectors');
  const known = { connectors, nameOf: () => undefined };
  const samples = samplesOf({ kind: 'connector', item: connector }, known);
  expect(samples.yaml).toContain('password: ${WEB_PASSWORD}');
  expect(samples.typescript).toContain('"password": process.env.WEB_PASSWORD');
  const env = { ...process.env, DATA_PIPELINES_URL: site.address, DATA_PIPELINES_KEY: site.service.api_key };
  const run = Bun.spawn(['bash', '-c', samples.curl.replace('"Web"', '"Web again"').replace('curl', 'curl -s')], {
    env: { ...env, WEB_PASSWORD: 'secret' },
  });
  const again = JSON.parse(await new Response(run.stdout).text());
  expect(again).toMatchObject({ name: 'Web again', parameters: connector.parameters });
  const differing = { parameters: { password: 'secret' } };
  expect((await call('POST', `/account_connectors/${again.id}/differing_parameters`, differing)).body).toEqual([]);
});

test('a connection string fills in the parameters of its connector', () => {
  const parameters = [
    'host',
    'port',
    'database',
    'username',
    'password',
    'ssl_mode',
    'schemas',
    'location',
    'bucket',
    'path',
  ].map((name) => ({ name }));
  const read = (text: string, connector: string) => readConnectionString(text, connector, parameters);
  expect(
    read(' postgres://me%40x:p%25w@db.example.org:6543/shop?sslmode=verify-full&schema=sales ', 'postgres'),
  ).toEqual({
    values: {
      host: 'db.example.org',
      port: 6543,
      database: 'shop',
      username: 'me@x',
      password: 'p%w',
      ssl_mode: 'verify-full',
      schemas: ['sales'],
    },
  });
  expect(read('mysql://u@[::1]/shop?ssl-mode=VERIFY_IDENTITY', 'mysql')).toEqual({
    values: { host: '::1', database: 'shop', username: 'u', ssl_mode: 'verify-full' },
  });
  expect(read('s3://bucket/a/*.csv', 'file')).toEqual({
    values: { location: 's3', bucket: 'bucket', path: 'a/*.csv' },
  });
  for (const wrong of ['db.example.org', 'mysql://u@h/d', 'postgres://u:100%@h/d']) {
    expect(read(wrong, 'postgres')).toEqual({ problem: expect.any(String) });
  }
});
