import { beforeAll, expect, test } from 'bun:test';
import { connectionRuns, usageLedger } from '../../db/schema/index.ts';
import { addDays, utcDay } from '../../server/platform/utc-days.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline, type Pipeline } from '../support/pipeline.ts';
import { rpcQuery } from '../support/rpc.ts';

const context = await testDeps();
const api = testApi(context);
const { deps, account_id } = context;
const today = utcDay(new Date());
let pipeline: Pipeline;

async function addRun(number: number, status: (typeof connectionRuns.$inferInsert)['status'], daysAgo = 0) {
  const id = Bun.randomUUIDv7();
  const created_at = new Date(Date.parse(`${addDays(today, -daysAgo)}T00:00:00Z`) + number * 1000).toISOString();
  await deps.db.insert(connectionRuns).values({
    id,
    account_id,
    connection_id: pipeline.connection.id,
    number,
    status,
    run_type: 'plain',
    trigger_type: 'api',
    queued_at: created_at,
    started_at: created_at,
    finished_at: new Date(Date.parse(created_at) + 1500).toISOString(),
    created_at,
  });
  return id;
}

beforeAll(async () => {
  pipeline = await makePipeline(context, {
    source: { name: 'sample', parameters: {} },
    destination: { name: 'sample', parameters: {} },
  });
  for (let number = 1; number <= 17; number += 1) await addRun(number, 'succeeded', 3);
  await addRun(18, 'failed', 1);
  await addRun(19, 'partially_succeeded');
  await addRun(20, 'stopped');
  const entry = {
    account_id,
    connection_id: pipeline.connection.id,
    connection_run_id: Bun.randomUUIDv7(),
    attempt: 1,
    kind: 'elt' as const,
    stream_name: 'users',
    credits_used: 0,
    credits_free: 0,
    bytes_loaded: 1,
  };
  await deps.db.insert(usageLedger).values([
    { ...entry, stream_run_id: Bun.randomUUIDv7(), day: today, rows_free: 5, rows_paid: 7 },
    { ...entry, stream_run_id: Bun.randomUUIDv7(), day: addDays(today, -3), rows_free: 100, rows_paid: 0 },
    { ...entry, stream_run_id: Bun.randomUUIDv7(), day: addDays(today, -40), rows_free: 9, rows_paid: 9 },
  ]);
});

test('the activity has every day, with its rows and runs by result', async () => {
  const { status, result } = await rpcQuery(api.call, 'overview.activity', { days: 5 });
  expect(status).toBe(200);
  const none = { rows_loaded: 0, runs_succeeded: 0, runs_failed: 0, runs_other: 0 };
  expect(result).toEqual([
    { day: addDays(today, -4), ...none },
    { day: addDays(today, -3), ...none, rows_loaded: 100, runs_succeeded: 17 },
    { day: addDays(today, -2), ...none },
    { day: addDays(today, -1), ...none, runs_failed: 1 },
    { day: today, ...none, rows_loaded: 12, runs_failed: 1, runs_other: 1 },
  ]);
});

test('the newest runs include the name of their connection', async () => {
  const { result } = await rpcQuery(api.call, 'overview.recentRuns', { limit: 2 });
  expect(result).toMatchObject([
    { number: 20, status: 'stopped', connection_name: pipeline.connection.name, rows_loaded: 0 },
    { number: 19, status: 'partially_succeeded' },
  ]);
});

test('a summary shows the last 16 runs, oldest first, without streams', async () => {
  const { status, result } = await rpcQuery(api.call, 'connections.summaries');
  expect(status).toBe(200);
  expect(result).toHaveLength(1);
  const [summary] = result;
  expect(summary.recent_runs.map((run: { number: number }) => run.number)).toEqual(
    Array.from({ length: 16 }, (_, index) => index + 5),
  );
  expect(summary.recent_runs.at(-1)).toMatchObject({ status: 'stopped', duration_ms: 1500 });
  expect(summary.streams).toBeUndefined();
  expect(summary).toMatchObject({
    id: pipeline.connection.id,
    health: 'healthy',
    source: { connector_name: 'sample' },
  });
});

test('summaries of named connections, and of none of another account', async () => {
  const { id } = pipeline.connection;
  const summaries = async (call: typeof api.call, ids: string[]) =>
    (await rpcQuery(call, 'connections.summaries', { id: ids })).result.map((one: { id: string }) => one.id);
  expect(await summaries(api.call, [id, 'no id', Bun.randomUUIDv7()])).toEqual([id]);
  expect(await summaries(api.call, [])).toEqual([]);
  expect(await summaries((await api.otherAccount()).call, [id])).toEqual([]);
  const { status, body } = await api.call('GET', `/connection_summaries?id=${id}&id=${Bun.randomUUIDv7()}`);
  expect([status, body.length]).toEqual([200, 1]);
  expect((await api.call('GET', `/connection_summaries?id=${Bun.randomUUIDv7()}`)).body).toEqual([]);
});

test('the catalog of a source can be read without an update', async () => {
  const account_connector_id = pipeline.source.id;
  const { status, result } = await rpcQuery(api.call, 'account_connectors.catalog', { account_connector_id });
  expect(status).toBe(200);
  expect(result.map((stream: { name: string }) => stream.name)).toEqual(['stream_1']);
  const stranger = await api.otherAccount();
  expect((await rpcQuery(stranger.call, 'account_connectors.catalog', { account_connector_id })).status).toBe(404);
});

test('the overview never shows data of another account', async () => {
  const other = await api.otherAccount();
  expect((await rpcQuery(other.call, 'overview.recentRuns')).result).toEqual([]);
  expect((await rpcQuery(other.call, 'connections.summaries')).result).toEqual([]);
  const { result } = await rpcQuery(other.call, 'overview.activity', { days: 1 });
  expect(result).toEqual([{ day: today, rows_loaded: 0, runs_succeeded: 0, runs_failed: 0, runs_other: 0 }]);
});

test.each([[{ days: 0 }], [{ days: 93 }], [{ days: '14' }], [{ since: 1 }]])('%j is refused', async (input) => {
  expect((await rpcQuery(api.call, 'overview.activity', input)).status).toBe(422);
});
