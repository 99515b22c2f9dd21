import { afterAll, expect, test } from 'bun:test';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makerOf, uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';

const server = startHttpServer();
const service = await testDeps({ role: 'worker', config: { EGRESS_ALLOW: [new URL(server.url).host] } });
const { call } = testApi(service);
const make = makerOf(call);
afterAll(() => server.close());

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
  const worker = await startWorker(service.deps);
  release();
  const streams = async () => (await call('GET', `/connections/${created.id}`)).body.streams;
  await until(async () => (await streams()).length > 0);
  expect(await streams()).toMatchObject([{ name: 'items', selected: true, sync_mode: 'full_refresh' }]);
  await worker.stop();
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
