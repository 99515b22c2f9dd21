import { afterAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0 } });
const api = testApi(service);
const { call } = api;
const make = makerOf(call);
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await sql.end();
  await database.drop();
});
await sql.unsafe(`create schema shop; create table shop.orders (id int primary key, total text, email text);
  insert into shop.orders select i, case when i % 10 = 0 then 'n/a' else i::text end, i || '@example.com' from generate_series(1, 50) i`);

/** Numbers stored as text, into a numeric column; the addresses are masked. */
const STREAMS = [
  {
    name: 'orders',
    destination_sync_mode: 'append',
    fields: [
      { path: ['total'], destination_type: 'integer' },
      { path: ['email'], masking: 'redact' },
    ],
  },
];
async function connection(body: object) {
  const parameters = postgresParameters(database.url);
  const source = await make.connector('source', 'postgres', { ...parameters, schemas: ['shop'] });
  const destination = await make.connector('destination', 'postgres', parameters);
  const ends = { source_id: source.id, destination_id: destination.id };
  return (await make.connection({ ...ends, streams: STREAMS, ...body })).id as string;
}
async function run(id: string) {
  await call('POST', `/connections/${id}/run`);
  let ended: Record<string, any> = {};
  await until(async () => {
    [ended] = (await call('GET', `/connections/${id}/runs`)).body;
    return ended.finished_at !== null;
  });
  const [stream] = (await call('GET', `/connections/${id}/runs/${ended.id}/stream_runs`)).body;
  return { ended, stream };
}

test('rows that cannot be loaded are kept, counted, and reported by run and stream', async () => {
  const id = await connection({ destination_schema: 'kept', rejected_rows_policy: 'keep', max_rejected_rows: 5 });
  const { ended, stream } = await run(id);
  expect(ended).toMatchObject({ status: 'succeeded', rows_read: 50, rows_loaded: 45, rows_rejected: 5 });
  expect(ended.warnings).toMatchObject([{ code: 'rows_rejected', stream_name: 'orders' }]);
  expect(stream).toMatchObject({ rows_loaded: 45, rows_rejected: 5 });
  const rows =
    await sql`select * from kept._rejected where connection_run_id = ${ended.id} order by ("row" ->> 'id')::int`;
  expect(rows).toHaveLength(5);
  expect(rows[0]).toMatchObject({ table_name: 'orders', row: { id: '10', total: 'n/a', email: '***' } });
  expect(rows[0]!.reason).toBe('orders: total has "n/a", which bigint cannot hold');
});

test('one row over the limit fails the stream, and keeps none of its rows', async () => {
  const id = await connection({ destination_schema: 'limited', rejected_rows_policy: 'keep', max_rejected_rows: 4 });
  const { ended } = await run(id);
  expect(ended).toMatchObject({ status: 'failed', rows_loaded: 0, error: { code: 'too_many_rejected_rows' } });
  expect(ended.error.message).toContain('More than 4 rows of orders');
  expect(await sql`select from limited._rejected`).toHaveLength(0);
});

test('by default the first rejected row fails the stream', async () => {
  const id = await connection({ destination_schema: 'strict' });
  expect((await call('GET', `/connections/${id}`)).body).toMatchObject({
    inexact_values: 'refuse',
    rejected_rows_policy: 'fail',
    max_rejected_rows: 1000,
  });
  expect((await run(id)).ended).toMatchObject({
    status: 'failed',
    rows_rejected: 0,
    error: { code: 'value_does_not_fit' },
  });
  const { body } = await call('POST', `/connections/${id}`, { inexact_values: 'allow' });
  expect(body).toMatchObject({ inexact_values: 'allow' });
});

test('400 for a destination without rejected rows; 422 for an invalid limit', async () => {
  const body = { name: 'x', source_id: (await make.source()).id, destination_id: (await make.destination()).id };
  const refused = await call('POST', '/connections', { ...body, rejected_rows_policy: 'keep' });
  expect([refused.status, refused.body.code]).toEqual([400, 'rejected_rows_unsupported']);
  const { id } = await make.connection();
  const changed = await call('POST', `/connections/${id}`, { rejected_rows_policy: 'keep' });
  expect([changed.status, changed.body.code]).toEqual([400, 'rejected_rows_unsupported']);
  expect((await call('POST', `/connections/${id}`, { max_rejected_rows: 0 })).status).toBe(422);
});

describe('POST /connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/table_previews', () => {
  test('200: the first rows as stored, and the rejected ones with their reasons; 400 once the table is gone; 403 without the permission', async () => {
    const id = await connection({ destination_schema: 'shown', rejected_rows_policy: 'keep' });
    const { ended, stream } = await run(id);
    const path = `/connections/${id}/runs/${ended.id}/stream_runs/${stream.id}/table_previews`;
    const loaded = await call('POST', path, { limit: 2 });
    expect(loaded.body).toEqual({
      table: 'orders',
      columns: ['id', 'total', 'email'],
      rows: [
        ['1', '1', '***'],
        ['2', '2', '***'],
      ],
    });
    const { body } = await call('POST', path, { rows: 'rejected' });
    expect(body.columns).toEqual(['reason', 'row', 'rejected_at']);
    expect(body.rows).toHaveLength(5);
    expect(body.rows.map(([reason]: string[]) => reason)).toContain(
      'orders: total has "n/a", which bigint cannot hold',
    );
    // A stream that names another table of the destination shows nothing of it before a run has loaded it.
    await call('POST', `/connections/${id}`, { streams: [{ name: 'orders', destination_table: 'salaries' }] });
    expect((await call('POST', path, {})).body.table).toBe('orders');
    const previewer = api.as(await api.keyWith(['data.preview']));
    expect(await previewer('POST', path, {})).toMatchObject({
      status: 403,
      body: { required_permission: 'data.preview_destination' },
    });
    await sql`drop table shown.orders`;
    expect(await call('POST', path, {})).toMatchObject({
      status: 400,
      body: { code: 'upstream_error', upstream_code: 'destination_table_missing' },
    });
  });
});
