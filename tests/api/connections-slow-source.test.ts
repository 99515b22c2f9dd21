import { afterAll, expect, test } from 'bun:test';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makerOf, uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';

const server = startHttpServer();
const service = await testDeps({
  role: 'worker',
  config: { EGRESS_ALLOW: [new URL(server.url).host] },
  discovery_waits: { all_ms: 100, named_ms: 100 },
});
const { call } = testApi(service);
const make = makerOf(call);
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await server.close();
});

/** A source that answers only once it is released. */
async function slowSource() {
  const released = Promise.withResolvers<void>();
  const path = `/${uniqueName('items').replace(' ', '-')}`;
  server.on(path, async () => {
    await released.promise;
    return Response.json([{ id: 1, name: 'one' }]);
  });
  const definition = { base_url: server.url, streams: [{ name: 'items', request: { path } }] };
  const source = await call('POST', '/account_connectors', {
    name: uniqueName('slow'),
    connector_type: 'source',
    connector_name: 'http_api',
    parameters: { definition: JSON.stringify(definition) },
    test_connection: false,
  });
  expect(source.status).toBe(201);
  return { id: source.body.id as string, release: released.resolve };
}

test('a connection to a source that does not answer is created at once, and takes its streams when it does', async () => {
  const { id, release } = await slowSource();
  const created = await make.connection({ source_id: id });
  expect(created).toMatchObject({ status: 'active', streams: [] });
  release();
  const streams = async () => (await call('GET', `/connections/${created.id}`)).body.streams;
  await until(async () => (await streams()).length > 0);
  expect(await streams()).toMatchObject([{ name: 'items', selected: true, sync_mode: 'full_refresh' }]);
});

test('two connections created at once take its streams when it answers, and never write to one table', async () => {
  const { id, release } = await slowSource();
  const { id: destination_id } = await make.connector('destination', 'file', { path: 'common', format: 'jsonl' });
  const sides = { source_id: id, destination_id };
  const created = await Promise.all(
    [1, 2].map((at) => call('POST', '/connections', { ...sides, name: uniqueName(`at once ${at}`) })),
  );
  expect(created.map(({ status }) => status)).toEqual([201, 201]);
  release();
  const streams = async () => {
    const found = created.map(async ({ body }) => (await call('GET', `/connections/${body.id}`)).body.streams);
    return (await Promise.all(found)).flat();
  };
  await until(async () => (await streams()).length === 2);
  expect((await streams()).map(({ selected }) => selected).sort()).toEqual([false, true]);
  const { body: events } = await call('GET', '/automation/events?limit=200');
  expect(events.filter(({ event }: { event: string }) => event === 'schema_changed')).toMatchObject([
    { payload: { streams_unselected: ['items'], error_code: 'duplicate_destination_table' } },
  ]);
});

test('400: catalog_not_ready with the task, when the request names streams of such a source', async () => {
  const { id, release } = await slowSource();
  const destination = await make.destination();
  const answer = await call('POST', '/connections', {
    name: uniqueName('named'),
    source_id: id,
    destination_id: destination.id,
    streams: [{ name: 'items' }],
  });
  expect(answer).toMatchObject({
    status: 400,
    body: { code: 'catalog_not_ready', field: 'source_id', account_connector_id: id, task_id: expect.any(String) },
  });
  release();
});
