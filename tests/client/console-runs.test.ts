import { afterAll, describe, expect, test } from 'bun:test';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { eq, sql } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, connections } from '../../db/schema/index.ts';
import { fireDue } from '../../server/runs/schedule-tick.ts';
import { visit } from '../support/browser.ts';
import { keepUndo, noticed, startConsole, undoOf } from '../support/console.ts';
import { createPlainDatabase } from '../support/database.ts';
import { getRun, runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { shoot } from '../support/screenshots.ts';
import { until } from '../support/until.ts';

const site = await startConsole();
const { service, api } = site;
const make = makerOf(api.call);
const { context, page, complaints } = await site.signedIn('/console/profile');
const SECRET = 'a-token-that-nobody-may-see';

async function pipeline(parameters: object) {
  const source = await make.source(parameters);
  return (await make.connection({ source_id: source.id, name: `Pipeline ${source.name}` })) as {
    id: string;
    name: string;
  };
}

const numbersIn = (text: string) => Number(/([\d,]+) rows/.exec(text)?.[1]?.replaceAll(',', '') ?? 0);

test('a run is started, watched while it moves, and seen to finish', async () => {
  const connection = await pipeline({ rows: 4000, batch_rows: 100, batch_delay_ms: 120, streams: 4 });
  await visit(page, `/console/connections/${connection.id}`);
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.getByRole('heading', { name: 'Run #1' }).waitFor();
  const run_id = new URL(page.url()).pathname.split('/').at(-1)!;
  const line = page.locator('.stream-runs li').first();
  const seen = new Set<number>();
  await until(
    async () => {
      seen.add(numbersIn(await line.innerText()));
      return [...seen].filter((rows) => rows > 0 && rows < 4000).length >= 2;
    },
    { timeout_ms: 20_000, what: 'two states between start and end' },
  );
  const ended = await runEnded(service, run_id);
  await page.locator('.page-title').getByText('succeeded').waitFor();
  expect(ended.status).toBe('succeeded');
  expect(numbersIn(await line.innerText())).toBe(4000);
  await page.locator('.run-log').getByText('Run succeeded').waitFor();
  const hidden = await page
    .locator('.run-log')
    .evaluate((log) => [
      log.scrollHeight > log.clientHeight,
      Math.round(log.scrollHeight - log.clientHeight - log.scrollTop),
    ]);
  expect(hidden).toEqual([true, 0]);
  await page.getByRole('button', { name: 'Run again' }).waitFor();
  const certificate = page.getByRole('region', { name: 'Verification' });
  await certificate.getByRole('button', { name: 'Verify' }).click();
  await certificate.getByText('No stream could be compared').waitFor({ timeout: 20_000 });
  expect(await certificate.innerText()).toInclude('Sample cannot compute digests');
  expect(complaints).toEqual([]);
}, 90_000);

test('a run is stopped', async () => {
  const connection = await pipeline({ rows: 100_000, batch_rows: 10, batch_delay_ms: 100 });
  await visit(page, '/console/connections');
  await page.getByRole('button', { name: `Actions for ${connection.name}` }).click();
  await page.getByRole('menuitem', { name: 'Run now' }).click();
  await page.getByText(`Run of ${connection.name} started`).waitFor();
  await page.getByRole('link', { name: connection.name }).click();
  await page.getByRole('button', { name: 'View run' }).click();
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('dialog').getByText('Stop run #1?').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop run' }).click();
  await page.locator('.page-title').getByText('stopped').waitFor({ timeout: 30_000 });
  const run_id = new URL(page.url()).pathname.split('/').at(-1)!;
  expect((await getRun(service, run_id)).status).toBe('stopped');
}, 90_000);

test('the network log is read, filtered, opened with its redactions, and downloaded', async () => {
  const connection = await pipeline({ rows: 40, streams: 2, record_requests: true, token: SECRET });
  const { body: run_id } = await api.call('POST', `/connections/${connection.id}/run`);
  await runEnded(service, run_id);
  await visit(page, `/console/connections/${connection.id}/runs/${run_id}`);
  await page.getByRole('button', { name: 'View log' }).click();
  const rows = page.locator('.log-row');
  await rows.first().waitFor();
  const told = page.getByRole('region', { name: 'Network log' }).getByRole('status');
  expect(await told.innerText()).toMatch(/^8 requests/);
  await page.getByRole('combobox', { name: 'Stream', exact: true }).click();
  await page.getByRole('option', { name: 'stream_2' }).click();
  await page.getByText('4 requests').waitFor();
  await page.getByRole('searchbox', { name: 'Filter log' }).fill('nothing-like-this');
  await page.getByText('0 requests of 4').waitFor();
  await page.getByRole('searchbox', { name: 'Filter log' }).fill('stream_2');
  await rows.first().click();
  await page.locator('.log-details mark').first().waitFor();
  expect(await page.locator('body').innerText()).not.toInclude(SECRET);
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).click();
  const path = await (await downloading).path();
  const text = await new Response(Bun.spawn(['gzip', '-dc', path]).stdout).text();
  expect(text.trim().split('\n').length).toBeGreaterThanOrEqual(8);
  expect(text).not.toInclude(SECRET);
  expect(complaints).toEqual([]);
}, 90_000);

test('a failed run is explained, with its code', async () => {
  const connection = await pipeline({ rows: 10, fault: 'auth' });
  const { body: run_id } = await api.call('POST', `/connections/${connection.id}/run`);
  await runEnded(service, run_id);
  await visit(page, `/console/connections/${connection.id}/runs/${run_id}`);
  // A notice of the previous test may still be shown, too.
  const alert = page.getByRole('alert').filter({ hasText: 'credentials were rejected' });
  await alert.waitFor();
  expect(await alert.innerText()).toContain('sample_auth');
  const log = page.getByRole('region', { name: 'Log', exact: true });
  await log.getByText('Queued by').waitFor();
  await log.getByText('Errors', { exact: true }).click();
  await log.getByText('Queued by').waitFor({ state: 'detached' });
  await visit(page, (await log.getByRole('link').first().getAttribute('href'))!);
  expect(await log.locator('[aria-current]').innerText()).toContain('Stream failed');
  await shoot(page, 'run-log');
  await alert.getByRole('link', { name: /^Open / }).click();
  await page.getByRole('region', { name: 'Last test' }).waitFor();
}, 60_000);

test('a skipped run is explained, with what it waits for', async () => {
  const source = await make.source({});
  const connection = await make.connection({
    source_id: source.id,
    schedule: { type: 'interval', interval_minutes: 60 },
  });
  await service.deps.db.update(accountConnectors).set({ status: 'broken' }).where(eq(accountConnectors.id, source.id));
  await service.deps.db.update(connections).set({ next_run_at: sql`now()` }).where(eq(connections.id, connection.id));
  await fireDue(service.deps);
  await visit(page, `/console/connections/${connection.id}`);
  const banner = page.getByRole('alert').filter({ hasText: 'The last run was skipped' });
  await banner.getByText(`The source "${source.name}" is not ready`).waitFor();
  expect(await banner.getByRole('link', { name: 'Open source' }).getAttribute('href')).toBe(
    `/console/sources/${source.id}`,
  );
  await page.locator('.page-title').getByText('warning').waitFor();
  expect(complaints).toEqual([]);
});

test('a changed password is understood and mended from what the page of the run says', async () => {
  const [shop, copy] = await Promise.all([createPlainDatabase(), createPlainDatabase()]);
  const [owner, loaded] = [shop, copy].map(({ url }) => postgres(url, { max: 1, onnotice: () => {} }));
  const reader = `reader_${crypto.randomUUID().slice(0, 8)}`;
  await owner!.unsafe(`create role ${reader} login password 'before'; create table orders (id int primary key);
    insert into orders values (1), (2), (3); grant select on orders to ${reader}`);
  const parameters = { ...postgresParameters(shop.url), username: reader, password: 'before' };
  const source = await make.connector('source', 'postgres', parameters);
  const destination = await make.connector('destination', 'postgres', postgresParameters(copy.url));
  const connection = await make.connection({ source_id: source.id, destination_id: destination.id });
  await owner!.unsafe(`alter role ${reader} password 'after'`);
  const { body: run_id } = await api.call('POST', `/connections/${connection.id}/run`);
  await runEnded(service, run_id);
  await visit(page, `/console/connections/${connection.id}/runs/${run_id}`);
  const alert = page.getByRole('alert').filter({ hasText: 'password authentication failed' });
  await alert.getByText(`orders: PostgreSQL: password authentication failed for user "${reader}"`).waitFor();
  await alert.getByText('Update them, test the connector, then retry the run.').waitFor();
  await alert.getByRole('link', { name: `Open ${source.name}` }).click();
  await page.getByRole('heading', { name: source.name }).waitFor();
  await page.getByLabel('Password', { exact: true }).fill('after');
  await page.getByRole('button', { name: 'Test and save' }).click();
  await page.getByText(`${source.name} saved`).waitFor();
  await page.goBack();
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await page.getByRole('heading', { name: 'Run #2' }).waitFor();
  await page.locator('.page-title').getByText('succeeded').waitFor();
  expect(await loaded!`select id from orders order by id`).toHaveLength(3);
  expect(complaints).toEqual([]);

  await owner!.unsafe(`drop owned by ${reader}; drop role ${reader}`);
  await Promise.all([owner!.end(), loaded!.end()]);
  await Promise.all([shop.drop(), copy.drop()]);
}, 90_000);

test('a row that cannot be loaded is explained, and kept aside once the settings say so', async () => {
  const [shop, copy] = await Promise.all([createPlainDatabase(), createPlainDatabase()]);
  const [owner, loaded] = [shop, copy].map(({ url }) => postgres(url, { max: 1, onnotice: () => {} }));
  await owner!.unsafe('create table orders (id int primary key, total int); insert into orders values (1, 5), (2, -5)');
  await loaded!.unsafe('create table orders (id int primary key, total int constraint positive check (total > 0))');
  const source = await make.connector('source', 'postgres', postgresParameters(shop.url));
  const destination = await make.connector('destination', 'postgres', postgresParameters(copy.url));
  const streams = [{ name: 'orders', destination_sync_mode: 'append' }];
  const connection = await make.connection({ source_id: source.id, destination_id: destination.id, streams });
  const { body: run_id } = await api.call('POST', `/connections/${connection.id}/run`);
  await runEnded(service, run_id);
  await visit(page, `/console/connections/${connection.id}/runs/${run_id}`);
  const alert = page.getByRole('alert').filter({ hasText: 'constraint_violation' });
  await alert.getByText('A row cannot be loaded. Correct it at the source').waitFor();
  await alert.getByText('Data error (destination)').waitFor();
  await alert.getByRole('link', { name: 'Open settings' }).click();
  await page.getByRole('combobox', { name: 'Rejected rows' }).click();
  await page.getByRole('option', { name: 'Keep in the table _rejected' }).click();
  await page.getByRole('textbox', { name: 'Maximum of rejected rows' }).fill('7');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await noticed(page, 'Settings saved');
  const { body } = await api.call('GET', `/connections/${connection.id}`);
  expect(body).toMatchObject({ rejected_rows_policy: 'keep', max_rejected_rows: 7 });
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.getByRole('heading', { name: 'Run #2' }).waitFor();
  await page.getByRole('button', { name: 'Show 1 rejected row', exact: true }).click();
  await page.getByText('positive').first().waitFor();
  expect([...(await loaded!`select id from orders`)]).toEqual([{ id: 1 }]);
  expect(complaints).toEqual([]);
  await Promise.all([owner!.end(), loaded!.end()]);
  await Promise.all([shop.drop(), copy.drop()]);
}, 90_000);

test('streams are deselected, masked and filtered, saved, and undone', async () => {
  const connection = await pipeline({ rows: 10, streams: 2 });
  const { body: before } = await api.call('GET', `/connections/${connection.id}`);
  await visit(page, `/console/connections/${connection.id}?tab=streams`);
  await keepUndo(page);
  await page.getByRole('switch', { name: 'Select stream_2' }).press('Space');
  await page.getByRole('button', { name: /^stream_1/ }).click();
  await page.getByRole('combobox', { name: 'Masking of name' }).click();
  await page.getByRole('option', { name: 'Hash', exact: true }).click();
  await page.getByRole('checkbox', { name: 'note' }).press('Space');
  await page.getByRole('button', { name: 'Add filter' }).click();
  await page.getByRole('combobox', { name: 'Filter condition' }).click();
  await page.getByRole('option', { name: 'is greater than' }).click();
  await page.getByRole('textbox', { name: 'Filter value' }).fill('5');
  await page.getByRole('button', { name: 'Save' }).click();
  await undoOf(page, 'Streams saved').waitFor();
  const { body } = await api.call('GET', `/connections/${connection.id}`);
  const [first, second] = body.streams;
  expect(second.selected).toBeFalse();
  expect(first.fields).toContainEqual(expect.objectContaining({ path: ['name'], masking: 'hash_sha256' }));
  expect(first.fields).toContainEqual(expect.objectContaining({ path: ['note'], selected: false }));
  expect(first.filters).toEqual([{ field: 'id', operator: 'gt', value: '5' }]);
  await undoOf(page, 'Streams saved').click();
  await noticed(page, 'Undone: Streams saved');
  const { body: after } = await api.call('GET', `/connections/${connection.id}`);
  expect(after.streams).toEqual(before.streams);
  expect(complaints).toEqual([]);
}, 90_000);

test('the parameters of a source are checked while they are typed, saved, and tested', async () => {
  const source = await make.source({ rows: 10 });
  await visit(page, `/console/sources/${source.id}`);
  const rows = page.getByRole('textbox', { name: 'Rows', exact: true });
  await rows.fill('100000001');
  await rows.blur();
  await page.getByText('Must be 100000000 or less').waitFor();
  await page.getByRole('button', { name: 'Test and save' }).click();
  await until(() => page.evaluate<boolean>("document.activeElement.getAttribute('aria-invalid') === 'true'"), {
    what: 'focus on the invalid field',
  });
  await rows.fill('25');
  await page.getByRole('button', { name: 'Test and save' }).click();
  await page.getByText(`${source.name} saved`).waitFor();
  const { body } = await api.call('GET', `/account_connectors/source/${source.id}`);
  expect(body.parameters.rows).toBe(25);
}, 60_000);

test('a schedule is shown with its next runs before it is saved; an invalid one is reported at its field', async () => {
  const connection = await pipeline({ rows: 10 });
  await visit(page, `/console/connections/${connection.id}?tab=settings`);
  const preview = page.locator('.schedule-preview');
  await page.getByText('Cron', { exact: true }).click();
  const cron = page.getByRole('textbox', { name: 'Cron expression' });
  await cron.fill('30 6 * * 1-5');
  await preview.getByText('At 06:30, Monday through Friday').waitFor();
  expect(await preview.locator('time').count()).toBe(5);
  expect(await preview.locator('time').first().innerText()).toMatch(/^(Mon|Tue|Wed|Thu|Fri).*06:30$/);
  expect((await api.call('GET', `/connections/${connection.id}`)).body.schedule.type).toBe('manual');
  await cron.fill('30 6 * *');
  await until(async () => (await cron.getAttribute('aria-invalid')) === 'true');
  expect(await preview.locator('time').count()).toBe(0);
  await cron.fill('30 6 * * 1-5');
  await preview.locator('time').first().waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await noticed(page, 'Settings saved');
  const { body } = await api.call('GET', `/connections/${connection.id}`);
  expect(body.schedule).toMatchObject({ type: 'cron', cron_expression: '30 6 * * 1-5' });
  expect(complaints).toEqual([]);
}, 60_000);

describe('when the progress stream is interrupted', () => {
  /** A proxy in front of the service. After `cut`, it breaks the connections of streams and forwards everything else. */
  async function cuttingProxy(way: 'breaks' | 'keeps') {
    const streams = new Set<Duplex>();
    let isCut = false;
    let refused = 0;
    const proxy = createServer((request, response) => {
      const isStream = request.url!.startsWith('/trpc/runs.progress');
      if (isStream) {
        streams.add(request.socket);
        if (isCut) {
          refused += 1;
          return way === 'breaks' ? request.socket.destroy() : undefined;
        }
      }
      const { method, headers } = request;
      const upstream = httpRequest(new URL(request.url!, site.address), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      upstream.on('error', () => request.socket.destroy());
      response.on('close', () => upstream.destroy());
      return void request.pipe(upstream);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    afterAll(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    return {
      address: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      streams: () => streams.size,
      refused: () => refused,
      cut() {
        isCut = true;
        for (const socket of streams) socket.destroy();
      },
    };
  }

  test.each(['breaks', 'keeps'] as const)(
    'progress falls back to polling: a proxy that %s it',
    async (way) => {
      const connection = await pipeline({ rows: 6000, batch_rows: 50, batch_delay_ms: 100 });
      const proxy = await cuttingProxy(way);
      // Cookies are valid for every port of a host.
      const proxied = await context.newPage();
      const { body: run_id } = await api.call('POST', `/connections/${connection.id}/run`);
      await proxied.goto(`${proxy.address}/console/connections/${connection.id}/runs/${run_id}`);
      const line = proxied.locator('.stream-runs li').first();
      const rows = async () => numbersIn(await line.innerText());
      await until(async () => (await rows()) > 0 && proxy.streams() > 0, { timeout_ms: 20_000 });
      proxy.cut();
      const seen = new Set<number>();
      await until(async () => seen.add(await rows()).size >= 4, {
        timeout_ms: 15_000,
        what: 'numbers without a stream',
      });
      await until(() => proxy.refused() > 0);
      expect((await getRun(service, run_id)).status).toBe('running');
      await runEnded(service, run_id, 60_000);
      await proxied.locator('.page-title').getByText('succeeded').waitFor();
      expect(await rows()).toBe(6000);
    },
    90_000,
  );
});
