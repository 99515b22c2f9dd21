import { expect, test } from 'bun:test';
import { faultsOf } from '../support/browser.ts';
import { keepUndo, noticed, startConsole, undoOf } from '../support/console.ts';
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

  await keepUndo(page);
  const field = page.getByRole('dialog').getByRole('combobox', { name: 'Folder' });
  await page.getByRole('checkbox', { name: 'Select Tickets' }).check();
  await page.getByRole('button', { name: 'Move to folder' }).click();
  await field.fill('1/2/3/4/5');
  await page.getByRole('dialog').getByRole('button', { name: 'Move', exact: true }).click();
  await page.getByRole('dialog').locator('.mantine-Autocomplete-error').waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  expect(await faultsOf(page)).toEqual([]);
  await shoot(page, 'folder-refused');
  const moveTickets = async () => {
    await field.fill('Support');
    await page.getByRole('dialog').getByRole('button', { name: 'Move', exact: true }).click();
    await undoOf(page, '1 connection moved').waitFor();
    expect(await folderOf('Tickets')).toBe('Support');
  };
  await moveTickets();
  await undoOf(page, '1 connection moved').click();
  await noticed(page, 'Undone: 1 connection moved');
  expect(await folderOf('Tickets')).toBeNull();
  await page.getByRole('checkbox', { name: 'Select Tickets' }).check();
  await page.getByRole('button', { name: 'Move to folder' }).click();
  await moveTickets();
  await noticed(page, '1 connection moved');

  const rename = async (to: string) => {
    await list.getByRole('button', { name: 'Rename folder Finance', exact: true }).click();
    await field.fill(to);
    await page.getByRole('dialog').getByRole('button', { name: 'Save changes' }).click();
  };
  await rename('a/b/c/d');
  await page.getByRole('dialog').locator('.mantine-Autocomplete-error').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await rename('Accounting');
  await undoOf(page, 'Folder moved').waitFor();
  expect([await folderOf('Ledger'), await folderOf('Invoices')]).toEqual(['Accounting', 'Accounting/Invoices']);
  await undoOf(page, 'Folder moved').click();
  await noticed(page, 'Undone: Folder moved');
  expect([await folderOf('Ledger'), await folderOf('Invoices')]).toEqual(['Finance', 'Finance/Invoices']);
  await rename('Shop');
  // What is in there already would move along.
  await noticed(page, 'Folder moved');
  expect(await undoOf(page, 'Folder moved').count()).toBe(0);
  await site.api.call('POST', `/connections/${ids.Orders}`, { folder: null });
  await site.api.call('POST', '/connection_folders/move', { from: 'Shop', to: 'Accounting' });
  await site.api.call('POST', `/connections/${ids.Orders}`, { folder: 'Shop' });

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
