import { expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { faultsOf, type Rules, visit } from '../support/browser.ts';
import { keepUndo, noticed, startConsole, undoOf } from '../support/console.ts';
import { makeWorld } from '../support/console-world.ts';
import { until } from '../support/until.ts';

const site = await startConsole();
const world = await makeWorld(site);
const { body: trigger } = await site.api.call('POST', '/automation/triggers', {
  name: 'Notify the night shift',
  rule: 'event == "connection_failed" && retry_count > 3',
  threshold: 2,
  within_seconds: 3600,
  group_by: ['connection_id'],
  actions: [{ type: 'call_webhook', url: 'https://example.org/hook' }],
});
const cases = async () => (await site.api.call('GET', '/automation/cases')).body;
await until(async () => (await cases()).length > 0, { what: 'the case of the failed run' });
const [opened] = await cases();
const connection = `/console/connections/${world.connections['Shop to warehouse']}`;
const runPage = ({ connection_id, id }: { connection_id: string; id: string }) =>
  `/console/connections/${connection_id}/runs/${id}`;
/** The views in which each page is tested. */
const everyPage = site.signedIn('/console/profile');
const beforeSignIn = site.browser();
/** The folder for screenshots of every page; none are taken without it. */
const pictures = process.env.CONSOLE_PICTURES;
if (pictures) mkdirSync(pictures, { recursive: true });

/** Every page: its address, text that proves it has loaded, and what to open on it first. */
const PAGES: Record<string, { path: string; shows: string; open?: (page: Page) => Promise<void> }> = {
  overview: { path: '/', shows: 'All connections' },
  connections: { path: '/console/connections', shows: 'Nightly archive' },
  connection: { path: connection, shows: 'Show older runs' },
  'long-names': {
    path: `/console/connections/${Object.entries(world.connections).find(([name]) => name.startsWith('Sessions'))![1]}`,
    shows: 'Show older runs',
  },
  streams: {
    path: `${connection}?tab=streams`,
    shows: 'orders',
    open: async (page) => {
      await page.getByRole('button', { name: /^orders/ }).click();
      await page.getByText('Add filter').waitFor();
      await page.getByRole('button', { name: 'Preview data' }).click();
      await page.getByText(/^First 10 rows/).waitFor();
      await page.getByText(/^create table "schema_4"/).waitFor();
    },
  },
  'schema-changes': { path: `${connection}?tab=changes`, shows: 'No changes to review' },
  settings: { path: `${connection}?tab=settings`, shows: 'Delete connection' },
  run: {
    path: runPage(world.run),
    shows: 'View log',
    open: async (page) => {
      await page.getByRole('figure', { name: 'Durations of the streams' }).waitFor();
      await page.getByRole('button', { name: 'View rows at the destination' }).first().click();
      await page.getByText(/^First 10 rows of/).waitFor();
      await page.getByRole('button', { name: 'View log' }).click();
      await page.locator('.log-row').first().click();
    },
  },
  'failed-run': { path: runPage(world.failed), shows: 'credentials were rejected' },
  sources: { path: '/console/sources', shows: 'Billing API' },
  source: { path: `/console/sources/${world.source_id}`, shows: 'Test and save' },
  catalog: {
    path: `/console/sources/${world.source_id}/catalog?q=email`,
    shows: 'Settings hold for every connection',
    open: async (page) => {
      await page.getByRole('button', { name: /^users email/ }).click();
      await page.getByRole('button', { name: 'Preview data' }).click();
      await page.getByText(/^First 10 rows/).waitFor();
    },
  },
  'new-source': { path: '/console/sources/new', shows: 'PostgreSQL' },
  destinations: { path: '/console/destinations', shows: 'Warehouse' },
  destination: {
    path: `/console/destinations/${world.destination_id}`,
    shows: 'Test and save',
    open: async (page) => {
      await page.getByText('Rights that the user needs').click();
      await page.getByText(/^GRANT CONNECT, CREATE, TEMPORARY ON DATABASE/).waitFor();
      await page.getByText('Documentation', { exact: true }).last().click();
      await page.getByRole('heading', { name: 'Writes', exact: true }).waitFor();
    },
  },
  'as-code': {
    path: `/console/destinations/${world.destination_id}`,
    shows: 'Test and save',
    open: async (page) => {
      await page.getByRole('button', { name: 'View as code' }).click();
      await page.getByText(/connector: postgres/).waitFor();
    },
  },
  'new-destination': {
    path: '/console/destinations/new',
    shows: 'PostgreSQL',
    open: async (page) => {
      await page.locator('button.connector-card').filter({ hasText: 'PostgreSQL' }).first().click();
      await page.getByRole('switch', { name: 'Connect through an SSH tunnel' }).press('Space');
      await page.getByRole('textbox', { name: /^Line for/ }).waitFor();
      await page.getByText('Public key only').click();
    },
  },
  profile: { path: '/console/profile', shows: 'Permissions' },
  wizard: {
    path: '/console/connections/new',
    shows: 'New connection',
    open: async (page) => {
      await page.locator('label.connector-card', { hasText: 'Shop' }).click();
      await page.getByRole('button', { name: 'Test', exact: true }).waitFor();
    },
  },
  'wizard-streams': {
    path: '/console/connections/new',
    shows: 'New connection',
    open: async (page) => {
      await page.locator('label.connector-card', { hasText: 'Shop' }).click();
      await page.getByRole('button', { name: 'Next' }).click();
      await page.getByRole('button', { name: 'Bulk edit' }).click();
      await page.getByRole('button', { name: /^users/ }).click();
    },
  },
  plan: {
    path: `${connection}/plan`,
    shows: 'Settings',
    open: async (page) => {
      await page.getByRole('button', { name: 'Preview' }).click();
      await page.getByText('chunks selected').waitFor();
      await page.getByText('Advanced').click();
    },
  },
  triggers: { path: '/console/triggers', shows: 'Notify the night shift' },
  trigger: { path: `/console/triggers/${trigger.id}`, shows: 'Call a webhook' },
  'new-trigger': {
    path: '/console/triggers/new',
    shows: 'Actions',
    open: async (page) => {
      await page.getByRole('button', { name: 'Add action' }).click();
      await page.getByRole('menuitem', { name: 'Send an email' }).click();
    },
  },
  cases: { path: '/console/cases', shows: 'Legacy CRM' },
  case: { path: `/cases/${opened.id}`, shows: 'Timeline' },
  events: {
    path: '/console/events',
    shows: 'connection_failed',
    open: (page) => page.locator('.event').first().click(),
  },
  usage: { path: '/console/usage', shows: 'By connection' },
  users: { path: '/console/users', shows: 'admin@localhost' },
  'invite-user': {
    path: '/console/users',
    shows: 'admin@localhost',
    open: async (page) => {
      await page.getByRole('button', { name: 'Invite' }).first().click();
      await page.getByRole('dialog').getByRole('textbox', { name: 'Email' }).waitFor();
    },
  },
  'create-key': {
    path: '/console/profile',
    shows: 'Permissions',
    open: async (page) => {
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByRole('dialog').getByText('Scopes').waitFor();
    },
  },
  'service-account': {
    path: '/console/users',
    shows: 'Service accounts',
    open: async (page) => {
      await page.getByRole('button', { name: 'Create service account' }).click();
      await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('Deployment');
      await page.getByRole('dialog').getByRole('button', { name: 'Create service account' }).click();
      await page.getByRole('button', { name: 'Create key' }).waitFor();
    },
  },
  roles: { path: '/console/roles', shows: 'Viewer' },
  audit: {
    path: '/console/audit?kind=change&action=connections.*',
    shows: 'Create: Connection',
    open: async (page) => {
      await page.getByText('Create: Connection').first().click();
      await page.getByText('Entries of this request').waitFor();
    },
  },
  'not-found': { path: '/console/nothing', shows: 'This page does not exist' },
};

/** `rules`: those that the previous view does not cover. On a phone the same elements form fewer columns. */
const VIEWS = [
  { name: 'light', scheme: 'light', width: 1280, height: 860, rules: 'all' },
  { name: 'dark', scheme: 'dark', width: 1280, height: 860, rules: 'colors' },
  { name: 'phone', scheme: 'light', width: 390, height: 844, rules: null },
  { name: 'wide', scheme: 'dark', width: 1600, height: 900, rules: null },
] as const;
/** For a person to look at: what they show follows from the views above. */
const PICTURED = [
  { name: 'phone-dark', scheme: 'dark', width: 390, height: 844, rules: null },
  { name: 'wide-light', scheme: 'light', width: 1600, height: 900, rules: null },
] as const;
const viewed = pictures ? [...VIEWS, ...PICTURED] : VIEWS;

async function look(page: Page, { scheme, width, height }: (typeof viewed)[number]): Promise<void> {
  await page.emulateMedia({ colorScheme: scheme });
  await page.setViewportSize({ width, height });
}

/** The problems of the page as it is now. */
async function wrongWith(page: Page, name: string, rules: Rules | null): Promise<string[]> {
  await until(async () => (await page.locator('.mantine-Skeleton-root:visible').count()) === 0, {
    what: `${name} loaded`,
  });
  const found = rules ? await faultsOf(page, rules) : [];
  const wide = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  return wide > 0 ? [...found, `${wide} px too wide`] : found;
}

test.each(Object.entries(PAGES))(
  'page %s renders in light, dark and on a phone, without accessibility faults, console errors or horizontal scrolling',
  async (name, { path, shows, open }) => {
    const { page, complaints } = await everyPage;
    const faults: Record<string, string[]> = {};
    for (const view of viewed) {
      await look(page, view);
      if (view.name === 'light') {
        await visit(page, path);
        await page.getByText(shows).first().waitFor();
        await open?.(page);
      }
      const found = await wrongWith(page, name, view.rules);
      if (found.length > 0) faults[view.name] = found;
      if (pictures) await page.screenshot({ path: join(pictures, `${name}-${view.name}.png`), fullPage: true });
    }
    expect(faults).toEqual({});
    expect(complaints.splice(0)).toEqual([]);
  },
  180_000,
);

test.each([
  ['sign-in', '/', 'API key'],
  ['invitation', '/invitation#token=x', 'Accept invitation'],
  ['broken-invitation', '/invitation', 'This link is incomplete'],
])(
  'page %s renders before sign-in, too, in light, dark and on a phone',
  async (name, path, shows) => {
    const { page, complaints } = await beforeSignIn;
    const faults: Record<string, string[]> = {};
    await page.goto(path);
    await page.getByText(shows).first().waitFor();
    for (const view of viewed) {
      await look(page, view);
      const found = await wrongWith(page, name, view.rules);
      if (found.length > 0) faults[view.name] = found;
      if (pictures) await page.screenshot({ path: join(pictures, `${name}-${view.name}.png`) });
    }
    expect(faults).toEqual({});
    expect(complaints).toEqual([]);
  },
  60_000,
);

test('everything is reachable by keyboard: the skip link, a menu, a dialog that returns the focus', async () => {
  const { page } = await everyPage;
  await look(page, VIEWS[0]);
  await page.goto('/console/connections');
  await page.getByText('Nightly archive').waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to content');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement.id')).toBe('main');
  const actions = page.getByRole('button', { name: 'Actions for Nightly archive' });
  await actions.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('menuitem', { name: 'Resume' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('menuitem', { name: 'Resume' }).waitFor({ state: 'detached' });
  await visit(page, `${connection}?tab=settings`);
  const remove = page.getByRole('button', { name: 'Delete connection' });
  await remove.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await until(async () => (await page.evaluate('document.activeElement.textContent')) === 'Delete connection');
}, 60_000);

test('one search finds connections, pages and actions by keyboard, and ? lists the keys', async () => {
  const { page } = await everyPage;
  await look(page, VIEWS[0]);
  await visit(page, '/console/profile');
  await page.getByRole('heading', { name: 'Profile', level: 1 }).waitFor();
  await page.keyboard.press('?');
  await page.getByText('Go to Connections').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('Control+k');
  await page.getByRole('searchbox', { name: 'Search for anything' }).fill('ware arch');
  await page.locator('.palette-list button[aria-current]', { hasText: 'Nightly archive' }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  if (pictures) await page.screenshot({ path: join(pictures, 'palette-light.png') });
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Nightly archive', level: 1 }).waitFor();
}, 60_000);

test('connections are filtered by tag, sorted, and tagged together; the filters are in the address', async () => {
  const { page } = await everyPage;
  await look(page, VIEWS[0]);
  await visit(page, '/console/connections');
  await page.getByRole('link', { name: 'sales' }).first().click();
  await page.getByText('2 of 5').waitFor();
  await page.getByRole('combobox', { name: 'Sort' }).click();
  await page.getByRole('option', { name: 'By name' }).click();
  expect(new URL(page.url()).search).toBe('?tag=sales&sort=name');
  await page.getByText('Select all').click();
  await page.getByText('2 connections selected').waitFor();
  if (pictures) await page.screenshot({ path: join(pictures, 'bulk-light.png') });
  await page.getByRole('button', { name: 'Add tags' }).click();
  await page.getByRole('dialog').getByLabel('Tags').first().fill('quarter');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Add tags' }).click();
  await page.getByText('2 connections tagged').waitFor();
  const { body } = await site.api.call('GET', '/connections?tag=quarter');
  expect(body.map(({ name }: { name: string }) => name).toSorted()).toEqual([
    'Legacy CRM to warehouse',
    'Shop to warehouse',
  ]);
}, 60_000);

test('a change is undone by button and keyboard, alone and in bulk, but not over a later change', async () => {
  const { page, complaints } = await site.signedIn('/console/connections');
  await keepUndo(page);
  const id = world.connections['Nightly archive']!;
  const stored = async (of = id) => (await site.api.call('GET', `/connections/${of}`)).body;
  const actions = page.getByRole('button', { name: 'Actions for Nightly archive' });
  const resume = async () => {
    await actions.click();
    await page.getByRole('menuitem', { name: 'Resume' }).click();
    await undoOf(page, 'Nightly archive resumed').waitFor();
    expect((await stored()).status).toBe('active');
  };
  await resume();
  if (pictures) await page.screenshot({ path: join(pictures, 'undo-light.png') });
  expect(await faultsOf(page)).toEqual([]);
  // The focus returns to where it was.
  await actions.focus();
  await undoOf(page, 'Nightly archive resumed').focus();
  await page.keyboard.press('Enter');
  await noticed(page, 'Undone: Nightly archive resumed');
  expect((await stored()).status).toBe('paused');
  expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe('Actions for Nightly archive');

  await resume();
  await page.keyboard.press('Control+z');
  await noticed(page, 'Undone: Nightly archive resumed');
  expect((await stored()).status).toBe('paused');

  await resume();
  await site.api.call('POST', `/connections/${id}`, { description: 'For the auditors' });
  await undoOf(page, 'Nightly archive resumed').click();
  await page.getByText('Not undone').waitFor();
  await page.getByText('stale_revision').waitFor();
  expect(await stored()).toMatchObject({ status: 'active', description: 'For the auditors' });
  await noticed(page, 'Not undone');

  const invoices = world.connections['Invoices to warehouse']!;
  // The page does not know of it yet, and undoes only what it has changed.
  await site.api.call('POST', `/connections/${id}`, { status: 'paused' });
  await page.getByRole('checkbox', { name: 'Select Invoices to warehouse' }).check();
  await page.getByRole('checkbox', { name: 'Select Nightly archive' }).check();
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await undoOf(page, '2 connections paused').waitFor();
  expect((await stored(invoices)).status).toBe('paused');
  await undoOf(page, '2 connections paused').click();
  await noticed(page, 'Undone: 2 connections paused');
  expect((await stored(invoices)).status).toBe('active');
  expect((await stored()).status).toBe('paused');

  await visit(page, `/console/connections/${id}?tab=settings`);
  const { tags, description, schedule } = await stored();
  await page.getByRole('textbox', { name: 'Description' }).fill('Weekly');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await undoOf(page, 'Settings saved').waitFor();
  expect((await stored()).description).toBe('Weekly');
  await undoOf(page, 'Settings saved').click();
  await noticed(page, 'Undone: Settings saved');
  expect(await stored()).toMatchObject({ tags, description, schedule });
  // The form goes on from there.
  await page.getByRole('textbox', { name: 'Description' }).fill('Monthly');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await noticed(page, 'Settings saved');
  expect((await stored()).description).toBe('Monthly');
  expect(complaints).toEqual([]);
}, 120_000);

test('the audit log names users and roles', async () => {
  const { page } = await everyPage;
  const { body: user } = await site.api.call('POST', '/users', {
    email: 'nina@example.com',
    full_name: 'Nina Night',
    role_ids: [],
  });
  const { body: roles } = await site.api.call('GET', '/roles');
  const role = roles.find(({ name }: { name: string }) => name === 'Creator');
  await site.api.call('POST', `/roles/${role.id}/users/${user.id}`);
  await look(page, VIEWS[0]);
  await visit(page, `/console/audit?kind=change&resource_id=${user.id}`);
  await page.getByRole('button', { name: /^Create: User role Creator of Nina Night/ }).click();
  await page.getByRole('region', { name: 'Changes' }).getByText(`Creator (${role.id})`).waitFor();
  if (pictures) await page.screenshot({ path: join(pictures, 'audit-names-light.png') });
}, 60_000);

test('on a phone no table of users scrolls within its card', async () => {
  const { page } = await everyPage;
  await look(page, VIEWS[2]);
  await visit(page, '/console/users');
  await page.getByText('admin@localhost').first().waitFor();
  const wide = "[...document.querySelectorAll('.table-frame')].map((one) => one.scrollWidth - one.clientWidth)";
  expect(await page.evaluate<number[]>(wide)).toEqual([0]);
  await page
    .getByRole('button', { name: /^Actions for / })
    .first()
    .click();
  await page.getByRole('menuitem', { name: 'Edit roles' }).waitFor();
  await page.keyboard.press('Escape');
}, 60_000);

test('on a phone the navigation is a drawer, which closes on selecting a page', async () => {
  const { page } = await everyPage;
  await look(page, VIEWS[2]);
  await visit(page, '/console/profile');
  await page.getByRole('button', { name: 'Open navigation' }).click();
  await page.getByRole('dialog').getByRole('link', { name: 'Connections' }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole('dialog').getByRole('link', { name: 'Connections' }).click();
  await page.getByRole('heading', { name: 'Connections', level: 1 }).waitFor();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}, 60_000);

test('the selected color scheme applies before the first paint, and persists', async () => {
  const { page } = await everyPage;
  await look(page, VIEWS[0]);
  await page.getByRole('button', { name: 'Switch to dark mode' }).click();
  const scheme = 'document.documentElement.dataset.mantineColorScheme';
  expect(await page.evaluate(scheme)).toBe('dark');
  await page.goto('/console/profile', { waitUntil: 'commit' });
  await page.locator('body').waitFor();
  expect(await page.evaluate(scheme)).toBe('dark');
}, 60_000);
