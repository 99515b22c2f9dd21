import { afterAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { gunzipSync } from 'node:zlib';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker' });
const { call, raw } = testApi(service);
const make = makerOf(call);
const target = await createPlainDatabase();
const rows = postgres(target.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await rows.end();
  await target.drop();
});

const ended = async (id: string) => {
  let run: Record<string, unknown> = {};
  await until(async () => {
    [run] = (await call('GET', `/connections/${id}/runs`)).body;
    return run.finished_at !== null;
  });
  return run;
};

test('a pipeline created through the API moves its rows, and every resource reports the same figures', async () => {
  const source = await make.connector('source', 'demo', { rows: 500 });
  const destination = await make.connector('destination', 'postgres', postgresParameters(target.url));
  const { id } = await make.connection({
    source_id: source.id,
    destination_id: destination.id,
    destination_schema: 'shop',
    streams: [{ name: 'events' }],
  });
  const { body: run_id } = await call('POST', `/connections/${id}/run`);
  const run = await ended(id);
  expect(run).toMatchObject({
    id: run_id,
    status: 'succeeded',
    rows_read: 500,
    rows_loaded: 500,
    streams_succeeded: 1,
    has_network_logs: true,
    error: null,
  });
  const [counted] = await rows`select count(*)::int as n from shop.events`;
  expect(counted?.n).toBe(500);
  const { body: connection } = await call('GET', `/connections/${id}`);
  expect(connection).toMatchObject({
    health: 'healthy',
    active_run_id: null,
    consecutive_failures: 0,
    last_run: { id: run_id, status: 'succeeded', rows_loaded: 500 },
  });
  const stream = connection.streams.find((one: { selected: boolean }) => one.selected);
  expect(stream).toMatchObject({ name: 'events', row_count_last_run: 500, cursor_value: expect.any(String) });
  const summary = async () =>
    (await call('GET', '/connection_summaries')).body.find((one: { id: string }) => one.id === id);
  expect((await summary()).fresh_at).toBe(stream.fresh_at);
  const [streamRun] = (await call('GET', `/connections/${id}/runs/${run_id}/stream_runs`)).body;
  expect(streamRun).toMatchObject({
    status: 'succeeded',
    progress_percent: 100,
    cursor_after: stream.cursor_value,
    started_at: stream.fresh_at,
  });
  expect(streamRun.has_network_logs.destination).toBe(true);
  const log = gunzipSync(Buffer.from(await (await raw(`/connection_runs/${run_id}/network_logs`)).arrayBuffer()));
  const entries = log
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(entries.every((entry) => entry.connection_run_id === run_id)).toBe(true);
  await call('POST', `/connections/${id}`, { table_prefix: 'other_' });
  expect((await summary()).fresh_at).toBeNull();
});

test('a discovery queued by update_catalog finds new streams of the source', async () => {
  const source = await make.source({ streams: 1 });
  const { id } = await make.connection({ source_id: source.id });
  const catalog = async () => (await call('GET', `/account_connectors/source/${source.id}`)).body;
  await until(async () => (await catalog()).catalog_status === 'ready');
  await call('POST', `/account_connectors/${source.id}`, { parameters: { streams: 3 }, test_connection: false });
  await call('POST', `/account_connectors/${source.id}/login`);
  expect((await call('POST', `/connections/${id}/update_catalog`)).status).toBe(200);
  await until(async () => (await catalog()).streams_count === 3);
});
