import { expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { faultsOf, visit } from '../support/browser.ts';
import { noticed, startConsole } from '../support/console.ts';
import { makerOf } from '../support/resources.ts';
import { shoot } from '../support/screenshots.ts';

const site = await startConsole();
const make = makerOf(site.api.call);
const [source, destination] = [await make.source(), await make.destination()];
for (const [name, tags] of [
  ['Orders to warehouse', ['sales']],
  ['Invoices to warehouse', ['sales', 'finance']],
  ['Tickets to warehouse', ['support']],
] as const) {
  await make.connection({ name, tags, source_id: source.id, destination_id: destination.id });
}

const open = async (page: Page) => {
  await page.locator('.views-button').click();
  await page.getByRole('menuitem', { name: 'Save as a new view' }).waitFor();
};
const choose = async (page: Page, item: string) => {
  await open(page);
  await page.getByRole('menuitem', { name: item }).click();
};
const label = (page: Page) => page.locator('.views-button');
const search = (page: Page) => new URL(page.url()).searchParams;

test('filters are saved as a view, opened again, changed, overwritten, shared, renamed and deleted', async () => {
  const { page, complaints } = await site.signedIn('/console/connections?tag=sales');
  await page.getByText('2 of 3').waitFor();
  await choose(page, 'Save as a new view');
  await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('Sales');
  await page.getByRole('button', { name: 'Save view' }).click();
  await noticed(page, 'View saved');
  await label(page).filter({ hasText: 'View: Sales' }).waitFor();
  const id = search(page).get('view')!;

  // A view is a link.
  await page.goto('/console/connections');
  await page.getByText('3 connections').waitFor();
  expect(await label(page).textContent()).toBe('Views');
  await open(page);
  const link = page.getByRole('menuitem', { name: 'Sales' });
  expect(await link.getAttribute('href')).toBe(`/console/connections?view=${id}&tag=sales`);
  expect(await faultsOf(page)).toEqual([]);
  await shoot(page, 'views-menu');
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await faultsOf(page, 'colors')).toEqual([]);
  await shoot(page, 'views-menu-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await link.click();
  await page.getByText('2 of 3').waitFor();

  await page.getByRole('searchbox', { name: 'Search connections' }).fill('invoices');
  await label(page).filter({ hasText: 'Sales · changed' }).waitFor();
  await choose(page, 'Discard changes');
  await page.getByText('2 of 3').waitFor();
  expect(await page.getByRole('searchbox', { name: 'Search connections' }).inputValue()).toBe('');
  await page.getByRole('searchbox', { name: 'Search connections' }).fill('invoices');
  await label(page).filter({ hasText: 'changed' }).waitFor();
  await choose(page, 'Update this view');
  await noticed(page, 'View “Sales” updated');
  await label(page).filter({ hasText: 'changed' }).waitFor({ state: 'detached' });

  await choose(page, 'Rename or share');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Invoices of sales');
  await dialog.getByRole('checkbox', { name: 'Share with everyone in this account' }).check();
  expect(await faultsOf(page)).toEqual([]);
  await shoot(page, 'views-edit');
  await dialog.getByRole('button', { name: 'Save changes' }).click();
  await noticed(page, 'View updated');
  const { body } = await site.api.call('GET', '/saved_views');
  expect(body).toMatchObject([{ name: 'Invoices of sales', query: 'q=invoices&tag=sales', is_shared: true }]);

  // Without a page of its own, in the search over everything.
  await visit(page, '/console/profile');
  await page.getByRole('heading', { name: 'Profile', level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('searchbox', { name: 'Search for anything' }).fill('invoices of');
  await page.locator('.palette-list button[aria-current]', { hasText: 'View · Connections' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('1 of 3').waitFor();
  await label(page).filter({ hasText: 'Invoices of sales' }).waitFor();

  await choose(page, 'Delete this view');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete view' }).click();
  await noticed(page, 'View deleted');
  await label(page)
    .filter({ hasText: /^Views$/ })
    .waitFor();
  await page.getByText('1 of 3').waitFor();
  expect(complaints).toEqual([]);
}, 120_000);

test('a shared view can be opened without the permission to change it', async () => {
  const view = {
    page: 'cases',
    name: `Resolved ${'of_every_team_'.repeat(6)}`,
    query: 'status=resolved',
    is_shared: true,
  };
  await site.api.call('POST', '/saved_views', view);
  const key = await site.api.keyWith([]);
  const { page } = await site.signedIn('/console/cases', { key });
  await choose(page, view.name);
  await page.getByText('No cases match').waitFor();
  expect(search(page).get('status')).toBe('resolved');
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page);
  for (const name of ['Rename or share', 'Delete this view']) {
    expect(await page.getByRole('menuitem', { name }).isDisabled()).toBe(true);
  }
  expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0);
  await shoot(page, 'views-phone');
}, 60_000);

test.each([
  ['/console/events?severity=critical', 'severity=critical', 'events'],
  ['/console/audit?kind=sign_in', 'kind=sign_in', 'audit'],
])(
  '%s is saved as a view',
  async (path, query, list) => {
    const { page } = await site.signedIn(path);
    await choose(page, 'Save as a new view');
    await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill(`Of ${list}`);
    await page.keyboard.press('Enter');
    await noticed(page, 'View saved');
    const { body } = await site.api.call('GET', `/saved_views?page=${list}`);
    expect(body).toMatchObject([{ name: `Of ${list}`, query }]);
  },
  60_000,
);
