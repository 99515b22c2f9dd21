import { afterAll, expect, test } from 'bun:test';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { faultsOf } from '../support/browser.ts';
import { noticed, startConsole } from '../support/console.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makerOf } from '../support/resources.ts';
import { shoot } from '../support/screenshots.ts';

const server = startHttpServer();
afterAll(() => server.close());
const { url } = server;
const site = await startConsole({ EGRESS_ALLOW: [new URL(url).host] });
const make = makerOf(site.api.call);
const { page, complaints } = await site.signedIn('/console/sources/new');
const dialog = page.getByRole('dialog');

const stream = (name: string, fields: string[]) =>
  streamOf(name, {
    url,
    properties: Object.fromEntries(fields.map((field) => [field, { type: 'integer' }])),
    primary_key: ['id'],
    requester: { authenticator: { type: 'BearerAuthenticator', api_token: "{{ config['token'] }}" } },
  });
const manifest = (streams: Parameters<typeof manifestOf>[0], more: object = {}) =>
  manifestOf(streams, {
    spec: {
      type: 'Spec',
      documentation_url: 'https://docs.example.com/shop',
      connection_specification: {
        type: 'object',
        required: ['token'],
        properties: { token: { type: 'string', airbyte_secret: true, title: 'API token' }, ...more },
      },
    },
  });
const file = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
const DOT =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><circle cx="12" cy="12" r="9" fill="#0a7"/></svg>';

/** In both schemes, on a phone and on a wide screen: no faults, and nothing scrolls sideways. */
async function look(name: string): Promise<void> {
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [size, width] of [
      ['phone', 390],
      ['wide', 1600],
    ] as const) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(
        0,
      );
      const sideways = await dialog
        .locator('.mantine-Modal-body')
        .evaluate((body) => body.scrollWidth - body.clientWidth);
      expect([name, size, sideways]).toEqual([name, size, 0]);
      expect(await faultsOf(page, scheme === 'light' ? 'all' : 'colors')).toEqual([]);
      await shoot(page, `${name}-${size}-${scheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 860 });
}

test('a connector is added from a manifest, used by a source, and updated once its changes were seen', async () => {
  server.on('/orders', () => Response.json([{ id: 1, total: 2 }]));
  server.on('/customers', () => Response.json([{ id: 1 }]));
  await page.getByRole('button', { name: 'Add connector' }).click();
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Shop!');
  await dialog.locator('input[type=file]').nth(0).setInputFiles(file('broken.yaml', 'version: [1'));
  await dialog.getByText('broken.yaml').first().waitFor();
  await dialog.getByRole('button', { name: 'Add connector' }).click();
  await dialog.locator('.mantine-TextInput-error').waitFor();
  expect(await dialog.getByRole('textbox', { name: 'Name' }).getAttribute('aria-invalid')).toBe('true');
  await look('add-connector-refused');
  await dialog.getByRole('button', { name: 'Remove broken.yaml' }).click();
  expect(await dialog.getByRole('textbox', { name: 'Address of the manifest' }).isEnabled()).toBe(true);
  const first = manifest([stream('orders', ['id', 'total']), stream('customers', ['id'])]);
  await dialog.getByRole('textbox', { name: 'Name' }).fill('shop');
  await dialog
    .locator('input[type=file]')
    .nth(0)
    .setInputFiles(file('manifest.yaml', JSON.stringify(first)));
  await dialog
    .locator('input[type=file]')
    .nth(2)
    .setInputFiles({ ...file('dot.svg', DOT), mimeType: 'image/svg+xml' });
  await dialog.getByText('dot.svg').waitFor();
  await look('add-connector');
  await dialog.getByRole('button', { name: 'Add connector' }).click();
  await noticed(page, 'Connector added');

  await page.getByRole('searchbox', { name: 'Search connectors' }).fill('shop');
  const card = page.locator('button.connector-card', { hasText: 'Custom connector' });
  await card.locator('img').waitFor();
  await card.click();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Our shop');
  await page.getByRole('textbox', { name: 'API token' }).fill('the-secret-token');
  await page.getByRole('button', { name: 'Test and save' }).click();
  await page.getByRole('heading', { name: 'Our shop', level: 1 }).waitFor();
  const source_id = new URL(page.url()).pathname.split('/').at(-1)!;
  await page.getByText('2 streams').first().waitFor();
  await make.connection({ name: 'Shop to warehouse', source_id });

  const fewer = manifest([stream('orders', ['id', 'total', 'discount'])]);
  const compare = async () => {
    await page.getByRole('button', { name: 'Update connector' }).click();
    await dialog.locator('input[type=file]').setInputFiles(file('manifest.yaml', JSON.stringify(fewer)));
    await dialog.getByText('manifest.yaml').waitFor();
    await look('update-connector');
    await dialog.getByRole('button', { name: 'Compare' }).click();
  };
  await compare();
  await dialog.getByText('Our shop would break').waitFor();
  await look('update-connector-changes');
  const confirm = dialog.getByRole('button', { name: 'Update connector' });
  expect(await confirm.isDisabled()).toBe(true);
  await dialog.getByRole('checkbox', { name: 'Update although sources would break' }).check();
  await confirm.click();
  await noticed(page, 'Connector updated');
  const { body } = await site.api.call('GET', '/custom_connectors');
  expect(body).toMatchObject([{ name: 'custom.shop', version: 2, streams: ['orders'] }]);
  expect(complaints).toEqual([]);
}, 180_000);
