import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { startConsole } from '../support/console.ts';
import { makerOf } from '../support/resources.ts';

const COUNT = 3000;

const site = await startConsole();
const { id } = await makerOf(site.api.call).connection({ name: 'Newest' });
// By SQL: as many requests would take minutes.
await site.service.deps.db.execute(sql`
  insert into connections select (jsonb_populate_record(c, jsonb_build_object(
    'id', gen_random_uuid(), 'name', 'Copy ' || n, 'created_at', c.created_at - n * interval '1 second'))).*
  from connections c, generate_series(1, ${COUNT}::int) n where c.id = ${id}`);

test('of many connections, the visible ones are asked for alone, and are shown as they are now', async () => {
  const { page, complaints } = await site.signedIn('/console/connections');
  const row = page.locator('.connection', { hasText: 'Newest' });
  await row.waitFor();
  const inputs: string[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.includes('connections.summaries')) inputs.push(searchParams.get('input') ?? '');
  });
  await site.api.call('POST', `/connections/${id}`, { status: 'paused' });
  await row.getByText('Paused').waitFor({ timeout: 14_000 });
  // All of them follow after 15 s.
  expect(inputs.filter((input) => !input.includes(id))).toEqual([]);
  expect(inputs.filter((input) => input.includes(id)).length).toBeGreaterThan(0);
  expect(complaints).toEqual([]);
});
