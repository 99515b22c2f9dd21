import { expect, test } from 'bun:test';
import { faultsOf } from '../support/browser.ts';
import { noticed, startConsole } from '../support/console.ts';
import { makerOf } from '../support/resources.ts';
import { shoot } from '../support/screenshots.ts';

const site = await startConsole();
const make = makerOf(site.api.call);
const [source, destination] = [await make.source(), await make.destination()];
const ids: Record<string, string> = {};
for (const [name, folder] of [
  ['Orders', 'Shop'],
  ['Invoices', 'Finance/Invoices'],
  ['Ledger', 'Finance'],
  ['Tickets', null],
] as const) {
  ids[name] = (await make.connection({ name, folder, source_id: source.id, destination_id: destination.id })).id;
}
const folderOf = async (name: string) => (await site.api.call('GET', `/connections/${ids[name]}`)).body.folder;

test('connections are grouped by folder, hidden with it, filtered, moved, and found by their breadcrumb', async () => {
  const { page, complaints } = await site.signedIn('/console/connections');
  const list = page.locator('.connections-list');
  await list.getByRole('button', { name: 'No folder 1' }).waitFor();
  const rows = () => list.locator('.folder-name, .connection-name > a').allTextContents();
  expect(await rows()).toEqual(['Finance', 'Ledger', 'Invoices', 'Invoices', 'Shop', 'Orders', 'No folder', 'Tickets']);
  expect(await faultsOf(page)).toEqual([]);
  await shoot(page, 'folders');
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await faultsOf(page, 'colors')).toEqual([]);
  await shoot(page, 'folders-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0);
  await shoot(page, 'folders-phone');
  await page.setViewportSize({ width: 1280, height: 860 });

  await list.getByRole('button', { name: 'Finance 2' }).click();
  await list.getByText('Ledger').waitFor({ state: 'detached' });
  expect(await rows()).toEqual(['Finance', 'Shop', 'Orders', 'No folder', 'Tickets']);
  await page.reload();
  await list.getByRole('button', { name: 'Finance 2' }).click();
  await list.getByText('Ledger').waitFor();

  await page.getByRole('checkbox', { name: 'Select Tickets' }).check();
  await page.getByRole('button', { name: 'Move to folder' }).click();
  await page.getByRole('dialog').getByLabel('Folder').first().fill('Support');
  await page.getByRole('dialog').getByRole('button', { name: 'Move', exact: true }).click();
  await noticed(page, '1 connection moved');
  expect(await folderOf('Tickets')).toBe('Support');

  await list.getByRole('button', { name: 'Rename folder Finance', exact: true }).click();
  await page.getByRole('dialog').getByLabel('Folder').first().fill('Accounting');
  await page.getByRole('dialog').getByRole('button', { name: 'Save changes' }).click();
  await noticed(page, 'Folder moved');
  expect([await folderOf('Ledger'), await folderOf('Invoices')]).toEqual(['Accounting', 'Accounting/Invoices']);

  await page.goto(`/console/connections/${ids.Invoices}?tab=settings`);
  await page.getByRole('combobox', { name: 'Folder' }).waitFor();
  expect(await page.locator('.page-back').allTextContents()).toEqual(['Connections', '/Accounting', '/Invoices']);
  await shoot(page, 'folder-breadcrumb');
  await page.getByRole('combobox', { name: 'Folder' }).fill('Accounting/Sent');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await noticed(page, 'Settings saved');
  expect(await folderOf('Invoices')).toBe('Accounting/Sent');
  await page.getByRole('link', { name: 'Accounting' }).click();
  await page.getByText('2 of 4').waitFor();
  expect(new URL(page.url()).search).toBe('?folder=Accounting');
  await page.getByText('Group by folder').click();
  await list.locator('.folder-heading').first().waitFor({ state: 'detached' });
  expect((await rows()).toSorted()).toEqual(['Invoices', 'Ledger']);
  expect(complaints).toEqual([]);
}, 120_000);
