import { afterAll, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asc, inArray } from 'drizzle-orm';
import { appliedFiles, events } from '../../db/schema/index.ts';
import { compareAppliedFiles } from '../../server/automation/drift/compare-applied.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { commandLine } from '../support/cli.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { call } = testApi(service);
const make = makerOf(call);
const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
afterAll(() => app.server?.stop(true));
const cli = commandLine({ url: `http://127.0.0.1:${app.server!.port}`, key: service.api_key });

const [source, destination] = [await make.source({ streams: 2 }), await make.destination()];
const connection = await make.connection({ name: 'Orders', source_id: source.id, destination_id: destination.id });
const file = join(cli.folder, 'orders.yaml');
writeFileSync(
  file,
  `version: 1
owner: shop-team
connections:
  Orders:
    source: ${source.name}
    destination: ${destination.name}
    schedule: { type: interval, interval_minutes: 60 }
    tags: [sales]
    streams:
      - { name: stream_1, sync_mode: full_refresh, destination_sync_mode: overwrite }
`,
);
const apply = (...flags: string[]) => cli.run(['apply', '-f', 'orders.yaml', '--yes', ...flags]);
const change = async (body: object) => {
  const { status, body: answer } = await call('POST', `/connections/${connection.id}`, body);
  expect([status, answer.code]).toEqual([200, undefined]);
};
const files = async () => (await call('GET', '/automation/applied_files')).body;

let quarters = 0;
/** As the worker does a quarter of an hour later. */
const quarterLater = () => {
  quarters += 1;
  return compareAppliedFiles({ db: service.deps.db, now: () => new Date(Date.now() + quarters * 16 * 60_000) });
};
/** What was reported since the last call. */
let seen = 0;
async function reported(): Promise<unknown[]> {
  const kinds = ['configuration_drifted', 'configuration_matched'];
  const all = await service.deps.db.select().from(events).where(inArray(events.event, kinds)).orderBy(asc(events.id));
  const fresh = all.slice(seen).map(({ event, payload }) => [event, payload.changed_items]);
  seen = all.length;
  return fresh;
}

test('the service compares the account with an applied file by itself, and reports each change once', async () => {
  expect(await apply()).toMatchObject({ code: 0 });
  expect(await files()).toEqual([]);
  const watched = await apply('--watch');
  expect(watched).toMatchObject({ code: 0, out: expect.stringContaining('compares 1 item every 15 minutes') });
  expect(await files()).toMatchObject([{ file: 'orders.yaml', owner: 'shop-team', items: 1, differences: [] }]);
  expect(await quarterLater()).toBe(1);
  expect(await reported()).toEqual([]);

  // What the file does not name may change.
  await change({ description: 'By the analysts', max_parallel_streams: 2 });
  await quarterLater();
  expect(await reported()).toEqual([]);

  await change({ tags: ['finance'], streams: [{ name: 'stream_2', selected: true }] });
  await quarterLater();
  await quarterLater();
  expect(await reported()).toEqual([['configuration_drifted', ['update connection "Orders": tags, streams']]]);
  const compared = await cli.run(['drift', 'compare']);
  expect(compared).toMatchObject({
    code: 2,
    out: expect.stringContaining('update connection "Orders": tags, streams'),
  });

  await change({ tags: ['sales'], streams: [{ name: 'stream_2', selected: false }] });
  await quarterLater();
  expect(await reported()).toEqual([['configuration_matched', []]]);
  expect(await cli.run(['drift', 'compare', 'orders.yaml'])).toMatchObject({ code: 0 });
});

test('an apply of the same file is no drift, and ends one', async () => {
  await change({ tags: ['finance'] });
  await quarterLater();
  expect(await reported()).toEqual([['configuration_drifted', ['update connection "Orders": tags']]]);
  expect(await apply()).toMatchObject({ code: 0 });
  expect(await reported()).toEqual([['configuration_matched', []]]);
  writeFileSync(file, readFileSync(file, 'utf8').replace('[sales]', '[sales, core]'));
  expect(await apply()).toMatchObject({ code: 0 });
  await quarterLater();
  expect(await reported()).toEqual([]);
});

test('with --prune, what the file does not name is a difference; what is gone is one, too', async () => {
  expect(await apply('--prune')).toMatchObject({ code: 0 });
  const other = await make.connection({
    name: 'Other',
    owner: 'shop-team',
    source_id: source.id,
    destination_id: destination.id,
  });
  await make.connection({ name: 'Of nobody', source_id: source.id, destination_id: destination.id });
  await quarterLater();
  expect(await reported()).toEqual([['configuration_drifted', ['delete connection "Other"']]]);
  await call('DELETE', `/connections/${other.id}`);
  await call('DELETE', `/connections/${connection.id}`);
  await quarterLater();
  expect(await reported()).toEqual([['configuration_drifted', ['create connection "Orders"']]]);
});

test('a file is forgotten; no value and no secret is kept of it', async () => {
  const kept = JSON.stringify(await service.deps.db.select().from(appliedFiles));
  expect(kept).toContain('"schedule":null');
  expect(kept).not.toContain('sales');
  expect(await cli.run(['drift', 'forget', 'orders'])).toMatchObject({ code: 4 });
  expect(await cli.run(['drift', 'forget', 'orders.yaml'])).toMatchObject({ code: 0 });
  expect(await reported()).toEqual([['configuration_matched', []]]);
  expect((await cli.run(['drift', 'list'])).out).toContain('apply -f FILE --watch');
});
