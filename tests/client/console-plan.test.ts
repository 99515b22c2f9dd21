import { expect, test } from 'bun:test';
import { startConsole } from '../support/console.ts';
import { makerOf } from '../support/resources.ts';
import { rpcQuery } from '../support/rpc.ts';
import { shoot } from '../support/screenshots.ts';

const site = await startConsole();
const { api } = site;
const make = makerOf(api.call);
const { page, complaints } = await site.signedIn('/console/profile');
const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);

async function planned(source: object): Promise<string> {
  const { id: source_id } = await make.source({ rows: 40, ...source });
  const { id, streams } = await make.connection({ source_id });
  expect(streams.length).toBeGreaterThan(0);
  await page.goto(`/console/connections/${id}`);
  await page.getByRole('link', { name: 'Custom run' }).click();
  await page.getByRole('heading', { name: 'Custom run' }).waitFor();
  return id;
}

test('a custom run: previewed, shown on the calendar, a chunk excluded, started, watched to its end', async () => {
  await planned({ streams: 2 });
  await page.getByRole('textbox', { name: 'Start date' }).fill(day(27));
  await page.getByLabel('End date (inclusive)').fill(day(0));
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByText('Starts one run per chunk').waitFor();
  expect(await page.locator('.calendar [data-state=run]').count()).toBe(28);
  await page.locator(`.calendar [data-day="${day(27)}"]`).click();
  expect(await page.locator('.calendar [data-state=run]').count()).toBe(21);
  await shoot(page, 'plan');
  await page.getByRole('button', { name: 'Run 3 chunks' }).click();
  await page.getByText('3 chunks loaded').waitFor({ timeout: 30_000 });
  await shoot(page, 'plan-launched');
  const plan_id = new URL(page.url()).searchParams.get('plan')!;
  const { result } = await rpcQuery(api.call, 'runs.ofPlan', { plan_id });
  expect(result.runs.map((run: { status: string; chunk_index: number }) => [run.status, run.chunk_index])).toEqual([
    ['succeeded', 3],
    ['succeeded', 2],
    ['succeeded', 1],
  ]);
  const other = await api.otherAccount();
  expect(await rpcQuery(other.call, 'runs.ofPlan', { plan_id })).toMatchObject({ status: 404 });
  await page.reload();
  await page.getByText('3 chunks loaded').waitFor();
  expect(complaints).toEqual([]);
}, 90_000);

test('a refused preview is reported, and an outdated one has to be refreshed', async () => {
  await planned({});
  await page.getByRole('textbox', { name: 'Start date' }).fill(day(1));
  await page.getByLabel('End date (inclusive)').fill(day(5));
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByRole('alert').getByText('invalid_window').waitFor();
  await page.getByRole('textbox', { name: 'Start date' }).fill(day(9));
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByRole('button', { name: 'Run 1 chunk' }).waitFor();
  await page.getByRole('textbox', { name: 'Start date' }).fill(day(19));
  await page.getByText('The settings have changed since this preview').waitFor();
  await page.getByRole('button', { name: 'Refresh preview' }).click();
  await page.getByRole('button', { name: /^Run [23] chunks/ }).waitFor();
}, 60_000);

test('failed chunks are retried', async () => {
  const id = await planned({ fault: 'data' });
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByRole('button', { name: /^Run \d chunks?/ }).click();
  await page.getByRole('button', { name: /^Retry \d chunks?/ }).waitFor({ timeout: 30_000 });
  await shoot(page, 'plan-failed');
  const before = (await api.call('GET', `/connections/${id}/runs`)).body.length;
  await page.getByRole('button', { name: /^Retry \d chunks?/ }).click();
  await page.getByRole('link', { name: `#${before + 1}` }).waitFor();
}, 90_000);
