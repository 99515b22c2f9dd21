import { afterAll, beforeAll, expect, test } from 'bun:test';
import { gunzipSync } from 'node:zlib';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { streamRuns } from '../../db/schema/index.ts';
import { releaseStreams } from '../../server/runs/worker-deaths.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { json, makeItems, paged, startHttpServer } from '../support/http-server.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';

const server = startHttpServer();
const service = await testDeps({ role: 'worker', config: { EGRESS_ALLOW: [new URL(server.url).host] } });
const { call, raw } = testApi(service);
const make = makerOf(call);
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(service.deps);
beforeAll(async () => {
  await sql`create table users (id bigint primary key, email text, joined timestamptz, score numeric, plan text)`;
  await sql`insert into users select i, ' User' || i || '@Example.com', timestamptz '2026-01-31 23:59:59.5+00', i * 1.50, 'free' from generate_series(1, 25) i`;
});
afterAll(async () => {
  await worker.stop();
  await sql.end();
  await database.drop();
  await server.close();
});

const run = async (id: string) => {
  await call('POST', `/connections/${id}/run`);
  let ended: Record<string, any> = {};
  await until(async () => {
    [ended] = (await call('GET', `/connections/${id}/runs`)).body;
    return ended.finished_at !== null;
  });
  return ended;
};
const field = (source_field: string, destination_field: string, more: object = {}) => ({
  source_field,
  destination_field,
  ...more,
});
const MAPPING = [
  field('id', 'external_id', { is_match_key: true }),
  field('email', 'email', { transform: 'trim' }),
  field('email', 'email_lower', { transform: 'lowercase' }),
  field('email', 'email_hash', { transform: 'sha256' }),
  field('joined', 'joined', { transform: 'date_iso' }),
  field('score', 'score', { transform: 'number' }),
  field('anything', 'origin', { constant_value: 'warehouse' }),
];
const DATASET = {
  name: 'paying',
  sql: 'select id, email, joined, score::text as score from users where id <= 20 -- all of them\n ;',
};

async function ends(datasets: object[] = [DATASET]) {
  const parameters = postgresParameters(database.url);
  const created = await call('POST', '/account_connectors', {
    name: uniqueName('pg'),
    connector_type: 'source',
    connector_name: 'postgres',
    parameters,
    datasets,
  });
  const destination = await make.connector('destination', 'http', {
    url: `${server.url}/crm/{{ table }}`,
    batch_rows: 8,
    rejected_selector: 'failed',
  });
  return { created, source_id: created.body.id as string, destination_id: destination.id as string };
}

test('a query feeds an application under mapped names, each batch once under its key', async () => {
  server.on('/crm/contacts', ({ body }) => {
    const failed = JSON.parse(body).filter(({ external_id }: { external_id: number }) => external_id === 7);
    return Response.json({ failed: failed.map(() => ({ message: 'no such person' })) });
  });
  const { source_id, destination_id } = await ends();
  const connection = await make.connection({
    source_id,
    destination_id,
    streams: [
      {
        name: 'paying',
        sync_mode: 'full_refresh',
        destination_sync_mode: 'append',
        destination_table: 'contacts',
        mapping: MAPPING,
      },
    ],
  });
  expect(connection.kind).toBe('reverse_etl');
  const ended = await run(connection.id);
  expect(ended).toMatchObject({ status: 'succeeded', rows_read: 20, rows_loaded: 19, rows_rejected: 1 });
  const [stream] = (await call('GET', `/connections/${connection.id}/runs/${ended.id}/stream_runs`)).body;
  expect(stream.warnings).toMatchObject([
    { code: 'rows_rejected', message: expect.stringContaining('no such person') },
  ]);
  expect(ended.warnings).toEqual(stream.warnings);
  const asked = server.seen.filter(({ path, method }) => path === '/crm/contacts' && method === 'POST');
  expect(asked.map(({ body }) => JSON.parse(body).length)).toEqual([8, 8, 4]);
  expect(new Set(asked.map(({ headers }) => headers['idempotency-key'])).size).toBe(3);
  expect(JSON.parse(asked[0]?.body ?? '')[0]).toEqual({
    external_id: 1,
    email: 'User1@Example.com',
    email_lower: ' user1@example.com',
    email_hash: Bun.SHA256.hash(' User1@Example.com', 'hex'),
    joined: '2026-01-31T23:59:59.5Z',
    score: 1.5,
    origin: 'warehouse',
  });
  expect(asked[0]?.body).toContain('"score":1.50');
});

test('datasets are readable, and a create copies the mapping of another connection where its source has the fields', async () => {
  const [model, narrow] = [
    await ends(),
    await ends([{ name: 'paying', sql: 'select id, email, joined from users where id <= 20' }]),
  ];
  expect(model.created.body.datasets).toEqual([DATASET]);
  const path = `/account_connectors/source/${narrow.source_id}`;
  expect((await call('GET', path)).body.datasets.map(({ name }: { name: string }) => name)).toEqual(['paying']);
  const stream = { name: 'paying', sync_mode: 'full_refresh', destination_sync_mode: 'append' };
  const { created: _model, ...sides } = model;
  const first = await make.connection({ ...sides, streams: [{ ...stream, mapping: MAPPING }] });
  const { created: _narrow, ...others } = narrow;
  const copy = await make.connection({
    ...others,
    streams: [stream],
    copy_field_mapping_from_connection_id: first.id,
  });
  const kept = first.streams[0].mapping.filter((one: { source_field: string }) => one.source_field !== 'score');
  expect(copy.streams[0].mapping).toEqual(kept);
  expect(kept).toHaveLength(MAPPING.length - 1);
});

test('a connection can read its own query in place of a table', async () => {
  server.on('/crm/users', json({}));
  server.seen.length = 0;
  const { source_id, destination_id } = await ends([]);
  const connection = await make.connection({
    source_id,
    destination_id,
    streams: [
      {
        name: 'users',
        dataset_sql: "select id, upper(email) as email, joined, score, 'paid' as plan from users where id > 23",
      },
    ],
  });
  expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_loaded: 2 });
  const [sent] = server.seen.filter(({ method }) => method === 'POST');
  expect(JSON.parse(sent?.body ?? '')).toMatchObject([
    { id: 24, email: ' USER24@EXAMPLE.COM', plan: 'paid' },
    { id: 25 },
  ]);
});

test('a query that writes, or has several statements, is refused and changes nothing', async () => {
  const texts = [
    'delete from users returning id',
    'select 1 as a) q; delete from users; select * from (select 1 as a',
    'select 1 as a) q; commit; drop table users; --',
    'select 1 as a, 2 as a',
    'select no_such_column from users',
    "select nextval('a_sequence') as n",
  ];
  await sql`create sequence a_sequence`;
  for (const text of texts) {
    const { created } = await ends([{ name: 'bad', sql: text }]);
    expect(created.status).toBe(201);
    if (text.includes('nextval')) continue;
    expect(created.body).toMatchObject({ status: 'broken', last_test: { status: 'failed' } });
    expect(created.body.status_message).toContain('Dataset "bad"');
  }
  const [left] =
    await sql`select (select count(*)::int from users) as users, (select last_value::int from a_sequence) as n, (select is_called from a_sequence) as called`;
  expect(left).toEqual({ users: 25, n: 1, called: false });
});

test('an invalid mapping is refused on create', async () => {
  const { source_id, destination_id } = await ends();
  const attempt = async (stream: object, more: object = {}) =>
    (
      await call('POST', '/connections', {
        name: uniqueName('c'),
        source_id,
        destination_id,
        streams: [{ name: 'paying', ...stream }],
        ...more,
      })
    ).body;
  expect(await attempt({ mapping: [field('nothing', 'x')] })).toMatchObject({
    code: 'unknown_field',
    field: 'streams.0.mapping.0.source_field',
  });
  expect(await attempt({ mapping: [field('id', 'x'), field('email', 'x')] })).toMatchObject({
    code: 'duplicate_destination_column',
  });
  const incremental = { sync_mode: 'incremental', cursor_field: ['id'], destination_sync_mode: 'append_dedup' };
  expect(await attempt({ ...incremental, mapping: [field('id', 'x')] })).toMatchObject({
    code: 'primary_key_required',
    field: 'streams.0.mapping',
  });
  const demo = await make.connector('source', 'demo', { rows: 10 });
  const { status, body } = await call('POST', '/connections', {
    name: uniqueName('c'),
    source_id: demo.id,
    destination_id,
    streams: [{ name: 'users', mapping: MAPPING }],
  });
  expect([status, body.code]).toEqual([400, 'reverse_etl_only']);
  const refused = await call('POST', '/account_connectors', {
    name: uniqueName('d'),
    connector_type: 'source',
    connector_name: 'postgres',
    parameters: postgresParameters(database.url),
    datasets: [DATASET, DATASET],
  });
  expect(refused.body).toMatchObject({ code: 'invalid_parameter', field: 'datasets' });
});

test('the next attempt keeps the warnings of the one before', async () => {
  const { source_id, destination_id } = await ends();
  const stream = { name: 'paying', sync_mode: 'full_refresh', destination_sync_mode: 'append' };
  const connection = await make.connection({
    source_id,
    destination_id,
    streams: [{ ...stream, destination_table: 'taken_over' }],
  });
  let batches = 0;
  server.on('/crm/taken_over', async () => {
    batches += 1;
    if (batches === 2) {
      const isIt = eq(streamRuns.connection_id, connection.id);
      // A heartbeat stores them.
      await until(async () => (await service.deps.db.select().from(streamRuns).where(isIt))[0]!.warnings.length > 0);
      await releaseStreams(service.deps, isIt);
    }
    return Response.json({ failed: batches === 1 ? ['no such person'] : [] });
  });
  const ended = await run(connection.id);
  expect(ended).toMatchObject({ status: 'succeeded', rows_loaded: 19, rows_rejected: 1 });
  expect(ended.warnings).toMatchObject([{ code: 'rows_rejected', message: expect.stringContaining('no such person') }]);
});

test('an incremental run sends only new rows, and the counts of an earlier attempt stay', async () => {
  server.on('/crm/users', json({}));
  const { source_id, destination_id } = await ends([]);
  const connection = await make.connection({
    source_id,
    destination_id,
    streams: [{ name: 'users', sync_mode: 'incremental', cursor_field: ['id'], destination_sync_mode: 'append' }],
  });
  expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_loaded: 25 });
  expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_loaded: 0 });
});

test('a REST API is loaded into tables incrementally, and its secrets stay out of the network log', async () => {
  const items = makeItems(500);
  server.on('/api/items', ({ headers, query }) => {
    if (headers.authorization !== 'Bearer the-secret-token') return Response.json({}, { status: 401 });
    return paged.byNumber(items.filter(({ at }) => at >= (query.since ? new Date(query.since).toISOString() : '')))({
      query,
    } as never);
  });
  const definition = `
base_url: ${server.url}/api
authentication: { type: bearer, token: "{{ secrets.token }}" }
streams:
  - name: items
    request: { path: /items, query: { page: "{{ page.number }}", since: "{{ cursor }}" } }
    pagination: { type: page_number }
    primary_key: id
    incremental: { cursor_field: at, order: ascending }
`;
  const source = await make.connector('source', 'http_api', { definition, secrets: { token: 'the-secret-token' } });
  expect(source).toMatchObject({ status: 'active', parameters: { secrets: '**********' } });
  const destination = await make.connector('destination', 'postgres', postgresParameters(database.url));
  const connection = await make.connection({
    source_id: source.id,
    destination_id: destination.id,
    destination_schema: 'api',
  });
  const first = await run(connection.id);
  expect(first).toMatchObject({ status: 'succeeded', rows_loaded: 500, error: null });
  const log = gunzipSync(
    Buffer.from(await (await raw(`/connection_runs/${first.id}/network_logs`)).arrayBuffer()),
  ).toString();
  expect(log).toContain('/api/items');
  expect(log).not.toContain('the-secret-token');
  items.push(...makeItems(30, '2026-02-01T00:00:00Z').map((item) => ({ ...item, id: item.id + 500 })));
  expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_read: 30 });
  const [counted] =
    await sql`select count(*)::int as rows, count(distinct id)::int as ids, max(at)::text as last from api.items`;
  expect(counted).toMatchObject({ rows: 530, ids: 530 });
});
