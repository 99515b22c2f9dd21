import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { gunzipSync } from 'node:zlib';
import { eq, sql as sqlText } from 'drizzle-orm';
import postgres from 'postgres';
import { streamRuns } from '../../db/schema/index.ts';
import { releaseStreams } from '../../server/runs/worker-deaths.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { inTurn, json, makeItems, paged, startHttpServer } from '../support/http-server.ts';
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

/** A service that keeps the records it is sent, by id. */
function recordStore(path: string) {
  const records = new Map<number, Record<string, unknown>>();
  const refused = new Map<number, string>();
  const requests: { method: string; ids: number[] }[] = [];
  const store = (body: string, keep: (row: Record<string, any>) => void) => {
    const rows = JSON.parse(body) as Record<string, any>[];
    const bad = rows.find(({ id }) => refused.has(id));
    if (bad) return Response.json({ error: { message: refused.get(bad.id), id: bad.id } }, { status: 422 });
    for (const row of rows) keep(row);
    return Response.json({});
  };
  server.on(path, ({ method, body }) => {
    if (method === 'OPTIONS') return Response.json({});
    requests.push({ method, ids: JSON.parse(body).map(({ id }: { id: number }) => id) });
    return store(body, (row) => (method === 'DELETE' ? records.delete(row.id) : records.set(row.id, row)));
  });
  return { records, refused, requests, sentIds: () => requests.splice(0).map(({ method, ids }) => [method, ...ids]) };
}

async function peopleTo(parameters: object, more: object = {}) {
  const source = await make.connector('source', 'postgres', { ...postgresParameters(database.url), schemas: ['crm'] });
  const destination = await make.connector('destination', 'http', parameters);
  return make.connection({
    source_id: source.id,
    destination_id: destination.id,
    streams: [{ name: 'people', sync_mode: 'full_refresh', destination_sync_mode: 'append_dedup' }],
    ...more,
  });
}
const makePeople = async () => {
  await sql`drop schema if exists crm cascade`;
  await sql.unsafe(`create schema crm; create table crm.people (id int primary key, email text, note text);
    insert into crm.people select i, 'p' || i || '@example.com', 'n' from generate_series(1, 40) i`);
};
const previewOf = async ({ id, streams }: Record<string, any>) =>
  (await call('POST', `/connections/${id}/change_previews`, { stream_id: streams[0].id })).body;

describe('rows that differ', () => {
  test('are sent alone by a full refresh with a key; 200 from POST /connections/{connection_id}/change_previews counts it', async () => {
    await makePeople();
    const crm = recordStore('/crm/people');
    const url = `${server.url}/crm/{{ table }}`;
    const connection = await peopleTo({ url, delete_url: url, batch_rows: 15 });
    expect(await previewOf(connection)).toMatchObject({ rows_read: 40, inserts: 40, changes: 0, deletes: 0 });
    expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_loaded: 40, warnings: [] });
    expect(crm.requests.splice(0).map(({ ids }) => ids.length)).toEqual([15, 15, 10]);
    await sql.unsafe(`update crm.people set note = 'changed' where id in (7, 30); insert into crm.people values (41, 'new', 'n');
    delete from crm.people where id = 20`);
    expect(await previewOf(connection)).toEqual({
      rows_read: 40,
      inserts: 1,
      changes: 2,
      deletes: 1,
      unchanged: 37,
      rejected: 0,
      sample: expect.arrayContaining([
        { operation: 'insert', key: '["41"]' },
        { operation: 'update', key: '["7"]' },
      ]),
    });
    const second = await run(connection.id);
    expect(second).toMatchObject({ status: 'succeeded', rows_read: 40, rows_loaded: 3 });
    const [stream] = (await call('GET', `/connections/${connection.id}/runs/${second.id}/stream_runs`)).body;
    expect(stream).toMatchObject({ rows_loaded: 3, rows_updated: 2, rows_deleted: 1, rows_rejected: 0 });
    expect(crm.sentIds().map((ids) => ids.toSorted())).toEqual([
      [30, 41, 7, 'POST'],
      [20, 'DELETE'],
    ]);
    expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_read: 40, rows_loaded: 0 });
    expect(crm.sentIds()).toEqual([]);
    expect(crm.records.size).toBe(40);
    const stored = async () => (await service.deps.db.execute(sqlText`select entries from sent_rows`)).length;
    expect(await stored()).toBeGreaterThan(0);
    // A reset forgets what was sent; another key, too.
    await call('POST', `/connections/${connection.id}`, {
      reset_cursor: [{ stream_id: connection.streams[0].id, value: null }],
    });
    expect(await stored()).toBe(0);
    expect(await run(connection.id)).toMatchObject({ rows_loaded: 40 });
    await call('POST', `/connections/${connection.id}`, { streams: [{ name: 'people', primary_key: [['email']] }] });
    expect(await run(connection.id)).toMatchObject({ rows_loaded: 40, warnings: [{ code: 'sent_rows_reset' }] });
    await call('DELETE', `/connections/${connection.id}`);
    expect(await stored()).toBe(0);
  });

  test('and are rejected are sent again; 200 from GET /connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/rejected_rows lists them', async () => {
    await makePeople();
    const crm = recordStore('/crm/people');
    crm.refused.set(9, 'no such country').set(33, 'too long');
    const connection = await peopleTo({ url: `${server.url}/crm/people`, batch_rows: 16 });
    const first = await run(connection.id);
    expect(first).toMatchObject({ status: 'succeeded', rows_read: 40, rows_loaded: 38, rows_rejected: 2 });
    expect(first.warnings).toMatchObject([{ code: 'rows_rejected', message: expect.stringContaining('2 rows') }]);
    expect([...crm.records.keys()].toSorted((a, b) => a - b)).toHaveLength(38);
    const runs = `/connections/${connection.id}/runs/${first.id}/stream_runs`;
    const [stream] = (await call('GET', runs)).body;
    const rejected = await call('GET', `${runs}/${stream.id}/rejected_rows`);
    expect(rejected.body).toMatchObject([
      { operation: 'insert', key: '["9"]', code: 'rejected_by_service', status: 422 },
      {
        key: '["33"]',
        message: expect.stringContaining('too long'),
        answer: '{"error":{"message":"too long","id":33}}',
      },
    ]);
    crm.requests.length = 0;
    crm.refused.delete(9);
    await sql`delete from crm.people where id = 2`;
    const second = await run(connection.id);
    expect(second).toMatchObject({ status: 'succeeded', rows_loaded: 1, rows_rejected: 1 });
    expect(second.warnings.map(({ code }: { code: string }) => code).toSorted()).toEqual([
      'rows_not_deleted',
      'rows_rejected',
    ]);
    expect(crm.sentIds().at(-1)).toEqual(['POST', 33]);
    await call('POST', `/connections/${connection.id}`, { max_rejected_rows: 1 });
    for (const id of [5, 6]) crm.refused.set(id, 'closed');
    await sql`update crm.people set note = 'x' where id in (5, 6)`;
    expect(await run(connection.id)).toMatchObject({ status: 'failed', error: { code: 'too_many_rejected_rows' } });
  });

  test('are searched, created, updated and deleted by requests of a definition', async () => {
    await makePeople();
    await sql`delete from crm.people where id > 4`;
    const people = new Map<string, Record<string, unknown>>([['77', { email: 'p2@example.com', note: 'old' }]]);
    const asked: string[] = [];
    server.on('/api/people', ({ method, query, body }) => {
      if (method === 'GET') {
        const found = [...people].filter(([, { email }]) => email === query.email);
        return Response.json({ items: found.map(([id, person]) => ({ id, ...person })) });
      }
      asked.push(`${method} ${JSON.parse(body).email}`);
      people.set(String(100 + people.size), JSON.parse(body));
      return Response.json({}, { status: 201 });
    });
    server.on('/api/people/*', ({ method, path, body }) => {
      const id = path.split('/').at(-1) ?? '';
      asked.push(`${method} ${id}`);
      if (method === 'DELETE') people.delete(id);
      else people.set(id, { ...people.get(id), ...JSON.parse(body) });
      return Response.json({});
    });
    const definition = `
objects:
  - table: people
    search: { path: /people, query: { email: "{{ row.email }}" }, record: items }
    create: { path: /people, body: { email: "{{ row.email }}", note: "{{ row.note }}" } }
    update: { path: "/people/{{ found.id }}", body: { note: "{{ row.note }}" } }
    delete: { path: "/people/{{ found.id }}" }
`;
    const wrong = await call('POST', '/account_connectors', {
      name: uniqueName('crm'),
      connector_type: 'destination',
      connector_name: 'http',
      parameters: { url: `${server.url}/api`, definition: definition.replace('found.id', 'record.id') },
    });
    expect(wrong.body).toMatchObject({ code: 'invalid_parameter', field: 'parameters.definition' });
    expect(wrong.body.detail).toMatch(/Line 6, objects\[0\]\.update\.path: .*record/);
    const connection = await peopleTo(
      { url: `${server.url}/api`, definition, check_method: 'none' },
      {
        streams: [
          {
            name: 'people',
            sync_mode: 'full_refresh',
            destination_sync_mode: 'append_dedup',
            primary_key: [['email']],
          },
        ],
      },
    );
    expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_loaded: 4, rows_rejected: 0 });
    expect(asked.splice(0).toSorted()).toEqual([
      'PATCH 77',
      'POST p1@example.com',
      'POST p3@example.com',
      'POST p4@example.com',
    ]);
    await sql`delete from crm.people where id = 2`;
    await sql`update crm.people set note = 'b' where id = 3`;
    expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_loaded: 1 });
    const id = [...people].find(([, { email }]) => email === 'p3@example.com')?.[0];
    expect(asked).toEqual([`PATCH ${id}`, 'DELETE 77']);
    expect(people.get(id ?? '')).toEqual({ email: 'p3@example.com', note: 'b' });
  });

  const half = () => new Response('{"failed":');
  const html = () => new Response('<html>Welcome</html>', { headers: { 'content-type': 'text/html' } });
  const moved = () => new Response(null, { status: 302, headers: { location: '/elsewhere' } });
  test('are sent until the service accepts them, and its bad answers are clear errors', async () => {
    await makePeople();
    const path = '/crm/bad-answers';
    const parameters = { url: `${server.url}${path}`, rejected_selector: 'failed', check_method: 'none' };
    const connection = await peopleTo(parameters);
    const ok = json({ failed: [] });
    const later = json({}, { status: 429, headers: { 'retry-after': '0' } });
    for (const [answer, code] of [
      [moved, 'redirected'],
      [html, 'malformed_response'],
      [half, 'malformed_response'],
      [json({}, { status: 404 }), 'not_found'],
      [inTurn(json({}, { status: 503 }), later, ok), null],
    ] as const) {
      server.on(path, answer);
      const ended = await run(connection.id);
      expect([ended.error?.code ?? null, ended.rows_loaded]).toEqual([code, code === null ? 40 : 0]);
    }
    server.seen.length = 0;
    expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_loaded: 0, warnings: [] });
    expect(server.seen).toEqual([]);
  });

  test('400 from POST /connections/{connection_id}/change_previews for a stream that sends all rows', async () => {
    const { id, streams } = await make.connection();
    expect(await previewOf({ id, streams })).toMatchObject({ code: 'differences_unsupported', field: 'stream_id' });
  });
});

describe('POST /page_trials', () => {
  test('200: request, response, records, fields and the next request, without secrets; 400 for another connector', async () => {
    server.on('/shop/orders', ({ headers, query }) =>
      headers.authorization === 'Bearer the-trial-token'
        ? Response.json({
            data: [
              { id: 1, total: 2.5 },
              { id: 2, total: 3 },
            ],
            next: query.after ? null : 'p2',
          })
        : Response.json({ message: 'no such token: the-other-token' }, { status: 401 }),
    );
    const definition = `
base_url: ${server.url}/shop
authentication: { type: bearer, token: "{{ secrets.token }}" }
streams:
  - name: orders
    request: { path: /orders, query: { after: "{{ page.token }}" } }
    records: data
    primary_key: id
    pagination: { type: cursor, token: next }
`;
    const attempt = (token: string) =>
      call('POST', '/page_trials', { parameters: { definition, secrets: { token } }, stream_name: 'orders' });
    const { status, body } = await attempt('the-trial-token');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      exchanges: [{ request: { method: 'GET', url: `${server.url}/shop/orders` }, response: { status: 200 } }],
      records_found: 2,
      records: ['{"id":1,"total":2.5}', '{"id":2,"total":3}'],
      fields: [
        { name: 'id', type: 'integer', is_primary_key: true },
        { name: 'total', type: 'number' },
      ],
      next_request: { method: 'GET', url: expect.stringContaining('after=p2') },
      error: null,
    });
    expect(JSON.stringify(body)).not.toContain('the-trial-token');
    const refused = await attempt('the-other-token');
    expect(refused.body).toMatchObject({ error: { code: 'unauthorized' }, exchanges: [{ response: { status: 401 } }] });
    expect(JSON.stringify(refused.body)).not.toContain('the-other-token');
    const other = await call('POST', '/page_trials', { connector_name: 'demo' });
    expect([other.status, other.body.code]).toEqual([400, 'trial_unsupported']);
  });
});
