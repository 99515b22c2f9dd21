import { afterAll, describe, expect, test } from 'bun:test';
import { and, eq, inArray, sql as query } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, accounts, events, tasks } from '../../db/schema/index.ts';
import { deleteOldExports } from '../../server/exports/export-metadata.ts';
import { openObjectStore } from '../../server/platform/object-store.ts';
import { sealStoredSecrets } from '../../server/process/seal-stored-secrets.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { type Call, testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { rpc } from '../support/rpc.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker' });
const { deps, account_id } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const other = await api.otherAccount();
const foreign = await makerOf(other.call).source();
const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const worker = await startWorker(deps);

const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
await sql`create table users (id int primary key, email text, secret text)`;
await sql`comment on table users is 'Who buys'`;
await sql`insert into users values (1, 'a@b.c', 'x'), (2, null, 'y')`;
await sql`create table orders (number int primary key)`;
afterAll(async () => {
  await worker.stop();
  await sql.end();
});
const source = await make.connector('source', 'postgres', postgresParameters(database.url));
const destination = await make.connector('destination', 'postgres', postgresParameters(database.url));
await until(async () => (await call('GET', `/account_connectors/source/${source.id}`)).body.catalog_status === 'ready');
await call('POST', `/account_connectors/${source.id}/catalog`, {
  items: [
    {
      name: 'users',
      field_overrides: [
        { path: ['email'], masking: 'redact', description: 'where to write to' },
        { path: ['secret'], excluded: true },
      ],
    },
  ],
});

const order = (id: string, body?: unknown, caller = call) =>
  caller('POST', `/account_connectors/${id}/source_tasks/export_metadata`, body);

/** The event that ends an export, as the API lists it. */
async function ending(task_id: string) {
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read responses of any shape
  let found: any;
  await until(async () => {
    const [row] = await deps.db
      .select()
      .from(events)
      .where(
        and(
          inArray(events.event, ['metadata_export_succeeded', 'metadata_export_failed']),
          query`${events.payload} ->> 'task_id' = ${task_id}`,
        ),
      );
    found = row;
    return row !== undefined;
  });
  return found;
}

/** Requests an export, then a link to its file, which needs no key. */
async function fetched(body?: unknown, id = source.id) {
  const { status, body: task_id } = await order(id, body);
  expect(status).toBe(200);
  const event = await ending(task_id);
  const link = await rpc(call, 'account_connectors.exportLink', { task_id });
  const path = link.result.url.slice(deps.config.PUBLIC_URL.length);
  const file = await api.raw(path, undefined);
  return { task_id, event, link: link.result, path, file, text: await file.text() };
}

describe('POST /account_connectors/{account_connector_id}/source_tasks/export_metadata', () => {
  test.each([undefined, null, {}])(
    '200: body %j exports every stream as JSON, and an event has the link',
    async (body) => {
      const { event, file, text, task_id } = await fetched(body);
      expect(event).toMatchObject({
        event: 'metadata_export_succeeded',
        account_connector_id: source.id,
        actor: { type: 'user', id: service.user_id },
        payload: { task_id, format: 'json', streams_count: 2, connector_name: 'postgres', table: null },
      });
      expect(Date.parse(event.payload.url_expires_at)).toBeGreaterThan(Date.now() + 23 * 3_600_000);
      expect(file.status).toBe(200);
      expect(file.headers.get('content-type')).toBe('application/json');
      expect(file.headers.get('content-disposition')).toStartWith('attachment');
      const document = JSON.parse(text);
      expect(document.account_connector).toEqual({ id: source.id, name: source.name, connector_name: 'postgres' });
      expect(document.streams.map((one: { name: string }) => one.name)).toEqual(['orders', 'users']);
      expect(document.streams[1]).toMatchObject({ namespace: 'public', description: 'Who buys', primary_key: ['id'] });
      expect(document.streams[1].fields[1]).toMatchObject({
        name: 'email',
        source_type: 'text',
        description: 'where to write to',
        override: { masking: 'redact' },
      });
      expect(document.streams[1].fields[1]).not.toHaveProperty('samples');
    },
  );

  test('200: exports only the selected streams, as CSV and as OpenLineage', async () => {
    const csv = await fetched({ format: 'csv', stream_names: ['public.users'] });
    expect(csv.file.headers.get('content-type')).toStartWith('text/csv');
    expect(csv.text.split('\r\n').map((line) => line.split(',')[4])).toEqual([
      'field',
      'id',
      'email',
      'secret',
      undefined,
    ]);
    const lineage = await fetched({ format: 'openlineage' });
    const lines = lineage.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { host } = new URL(database.url);
    expect(lines.map((line) => line.dataset.namespace)).toEqual(Array(2).fill(`postgres://${host}`));
    expect(JSON.parse((await fetched({ include_fields: false })).text).streams[1]).not.toHaveProperty('fields');
  });

  test('200: samples follow the masks and exclusions of the catalog overrides', async () => {
    const { text } = await fetched({ include_samples: true });
    const users = JSON.parse(text).streams[1];
    expect(users.fields.map((one: { samples?: string[] }) => one.samples)).toEqual([['1', '2'], ['***'], undefined]);
    expect(text).not.toContain('a@b.c');
  });

  test('200: usage counts the rows that connections loaded', async () => {
    const shop = await make.connector('source', 'demo', { rows: 20 });
    const { id } = await make.connection({ source_id: shop.id, run_immediately: true });
    await until(async () => (await call('GET', `/connections/${id}`)).body.active_run_id === null);
    const { text } = await fetched({ include_usage: true }, shop.id);
    const found = JSON.parse(text).streams.find((one: { name: string }) => one.name === 'events');
    expect(found.usage).toEqual({ connections: 1, rows_loaded: 20, last_succeeded_at: expect.any(String) });
  });

  test('200: writes a destination table, which the next export replaces', async () => {
    const { event } = await fetched({ destination_id: destination.id });
    const [schema, table] = event.payload.table.split('.');
    expect(schema).toBe('_metadata');
    const rows = () =>
      sql`select stream, field, nullable, masking from ${sql(schema)}.${sql(table)} order by stream, field`;
    expect(Array.from(await rows())).toContainEqual({
      stream: 'users',
      field: 'email',
      nullable: true,
      masking: 'redact',
    });
    expect(await rows()).toHaveLength(4);
    await fetched({ destination_id: destination.id, stream_names: ['orders'] });
    expect(Array.from(await rows(), (row) => row.field)).toEqual(['number']);
  });

  test('a failed export ends with an event that carries the reason', async () => {
    const gone = await make.source({ check: 'passes' });
    await until(
      async () => (await call('GET', `/account_connectors/source/${gone.id}`)).body.catalog_status === 'ready',
    );
    const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, gone.id));
    const parameters = { ...row!.parameters, rows: 'broken' };
    await deps.db
      .update(accountConnectors)
      .set({ catalog_status: 'failed', parameters })
      .where(eq(accountConnectors.id, gone.id));
    const { body: task_id } = await order(gone.id);
    const event = await ending(task_id);
    expect(event).toMatchObject({
      event: 'metadata_export_failed',
      payload: {
        task_id,
        url_expires_at: null,
        error_code: 'invalid_parameter',
        error_message: expect.any(String),
      },
    });
    const [task] = await deps.db.select().from(tasks).where(eq(tasks.id, task_id));
    expect(task).toMatchObject({ status: 'failed', error: { code: 'invalid_parameter' } });
  });

  test('an export that cannot be stored for a moment is tried again', async () => {
    const { objects } = deps;
    const attempts: string[] = [];
    const broken = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ method }) => {
        if (method === 'PUT' && attempts.push(method) === 2) deps.objects = objects;
        return new Response('no', { status: 403 });
      },
    });
    deps.objects = openObjectStore(`s3://id:secret@exports?endpoint=${broken.url.origin}&region=eu`);
    const { body: task_id } = await order(source.id);
    expect(await ending(task_id)).toMatchObject({ event: 'metadata_export_succeeded' });
    expect(attempts).toHaveLength(2);
    await broken.stop(true);
  });

  test('400: not_a_source', async () => {
    expect((await order(destination.id)).body.code).toBe('not_a_source');
  });

  test('400: export_not_supported for a connector that no longer exists', async () => {
    const { id } = await make.source();
    await deps.db.update(accountConnectors).set({ connector_name: 'gone' }).where(eq(accountConnectors.id, id));
    const { status, body } = await order(id);
    expect([status, body.code]).toEqual([400, 'export_not_supported']);
  });

  test('400: account_connector_not_ready for the source or the destination', async () => {
    const [broken, target] = [await make.source(), await make.destination()];
    await deps.db
      .update(accountConnectors)
      .set({ status: 'broken' })
      .where(inArray(accountConnectors.id, [broken.id, target.id]));
    for (const [id, body, culprit] of [
      [broken.id, undefined, broken.id],
      [source.id, { destination_id: target.id }, target.id],
    ]) {
      const answer = await order(id, body);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({
        code: 'account_connector_not_ready',
        account_connector_id: culprit,
        status: 'broken',
      });
    }
  });

  test('400: invalid_reference, unknown_stream', async () => {
    for (const destination_id of [UNKNOWN, source.id]) {
      expect((await order(source.id, { destination_id })).body).toMatchObject({
        code: 'invalid_reference',
        field: 'destination_id',
      });
    }
    const { status, body } = await order(source.id, { stream_names: ['users', 'nothing'] });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'unknown_stream', stream_names: ['nothing'] });
  });

  test('401: without a key', async () => {
    expect((await order(UNKNOWN, undefined, anonymous)).status).toBe(401);
  });

  test('402: feature_not_in_plan', async () => {
    await deps.db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, account_id));
    const { status, body } = await order(source.id);
    await deps.db.update(accounts).set({ plan_id: 'self_hosted' }).where(eq(accounts.id, account_id));
    expect(status).toBe(402);
    expect(body).toMatchObject({ code: 'feature_not_in_plan', limit: 'metadata_export' });
  });

  test('403: without metadata.export', async () => {
    const { status, body } = await order(source.id, undefined, api.as(await api.keyWith(['sources.update'])));
    expect([status, body.required_permission]).toEqual([403, 'metadata.export']);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) expect((await order(id)).status).toBe(404);
  });

  test.each([
    ['a list', []],
    ['text', 'json'],
    ['an unknown format', { format: 'xml' }],
    ['an unknown key', { colour: 'red' }],
    ['no streams at all', { stream_names: [] }],
  ])('422: %s', async (_, body) => {
    expect((await order(source.id, body)).status).toBe(422);
  });
});

describe('POST /tasks/{task_id}/export_link', () => {
  test('200: is the only source of links: no event contains one, and the permission is needed', async () => {
    const { task_id, event, link } = await fetched();
    expect(JSON.stringify(event)).not.toContain('signature');
    expect(Date.parse(link.expires_at)).toBeLessThan(Date.now() + 11 * 60_000);
    const ask = (as: Call, id = task_id) => rpc(as, 'account_connectors.exportLink', { task_id: id });
    expect((await ask(api.as(await api.keyWith([])))).error.code).toBe('permission_denied');
    expect((await ask((await api.otherAccount()).call)).status).toBe(404);
    expect((await ask(call, UNKNOWN)).status).toBe(404);
    expect(await call('POST', `/tasks/${task_id}/export_link`)).toMatchObject({
      status: 200,
      body: { url: expect.any(String) },
    });
  });

  test('a link that an earlier version stored in an event is removed at the start', async () => {
    const { event } = await fetched();
    const payload = { ...event.payload, url: 'https://example.test/exports/x?signature=y' };
    await deps.db.update(events).set({ payload }).where(eq(events.id, event.id));
    await sealStoredSecrets(deps);
    const [after] = await deps.db.select().from(events).where(eq(events.id, event.id));
    expect(after!.payload).toEqual(event.payload);
  });
});

describe('GET /exports/{task_id}', () => {
  test('needs no key, but the complete and unmodified link', async () => {
    const { path, task_id } = await fetched();
    const get = (url: string) => anonymous('GET', url);
    expect((await get(path)).status).toBe(200);
    const url = new URL(path, 'http://localhost');
    const changed = (name: string, value: string) => {
      const copy = new URL(url);
      copy.searchParams.set(name, value);
      return copy.pathname + copy.search;
    };
    const later = String(Number(url.searchParams.get('expires')) + 1);
    const wrong = [
      `/exports/${task_id}`,
      changed('expires', later),
      changed('signature', '0'.repeat(64)),
      changed('signature', 'x'),
    ];
    wrong.push(path.replace(task_id, UNKNOWN), changed('expires', '1'), changed('expires', 'never'));
    for (const one of wrong) {
      const { status, body } = await get(one);
      expect([one, status, body.detail]).toEqual([one, 404, 'Export not found']);
    }
  });

  test('expires at the time in the link, and the file is deleted too', async () => {
    const { path, task_id, event, link } = await fetched();
    const clock = deps.now;
    try {
      deps.now = () => new Date(Date.parse(link.expires_at) + 1000);
      expect((await anonymous('GET', path)).status).toBe(404);
      deps.now = () => new Date(Date.parse(event.payload.url_expires_at) + 1000);
      expect((await anonymous('GET', path)).status).toBe(404);
      await deleteOldExports(deps);
    } finally {
      deps.now = clock;
    }
    expect((await anonymous('GET', path)).status).toBe(404);
    expect(await deps.objects.get(`exports/${account_id}/${task_id}.json`)).toBeNull();
    const [task] = await deps.db.select().from(tasks).where(eq(tasks.id, task_id));
    expect(task?.result).not.toHaveProperty('object_key');
  });
});

describe('POST /stream_previews', () => {
  const preview = (stream: object, more: object = {}, caller = call) =>
    caller('POST', '/stream_previews', {
      source_id: source.id,
      destination_id: destination.id,
      destination_schema: 'lake',
      table_prefix: 'p_',
      stream: { name: 'users', ...stream },
      ...more,
    });

  test('200: rows in the source and in the destination, masked as a run masks them, and the table; nothing is stored', async () => {
    const before = await sql`select count(*)::int as n from information_schema.tables`;
    const { status, body } = await preview({
      fields: [{ path: ['id'], destination_name: 'user_id', destination_type: 'string' }],
      primary_key: [['id']],
    });
    expect(status).toBe(200);
    expect(body.columns).toMatchObject([
      { field: 'id', source_type: 'integer', name: 'user_id', type: 'string', masked: false },
      // By the overrides of the catalog, which also leave out the field `secret`.
      { field: 'email', name: 'email', masked: true },
    ]);
    expect(body.rows).toEqual([
      { source: ['1', null], destination: ['1', '***'] },
      { source: ['2', null], destination: ['2', null] },
    ]);
    expect(body).toMatchObject({ table: 'p_users', rows_skipped: 0, estimated_rows: expect.any(Number) });
    expect(body.definition).toContain(
      'create table "lake"."p_users" (\n  "user_id" text not null,\n  "email" text null',
    );
    expect(await sql`select count(*)::int as n from information_schema.tables`).toEqual(before);
  });

  test('200: filters of the stream apply, and at most `limit` rows are read', async () => {
    const filtered = await preview({ filters: [{ field: 'id', operator: 'gt', value: 1 }] });
    expect(filtered.body.rows).toMatchObject([{ source: ['2', null] }]);
    const undecided = await preview({}, { limit: 1, destination_id: null });
    expect([undecided.body.rows.length, undecided.body.definition]).toEqual([1, null]);
  });

  test('403 without data.preview; 400 for an unknown stream, wrong settings and a source that refuses', async () => {
    const creator = api.as(await api.keyWith(['connections.create', 'connections.update']));
    expect(await preview({}, {}, creator)).toMatchObject({
      status: 403,
      body: { required_permission: 'data.preview' },
    });
    expect(await preview({ name: 'nothing' })).toMatchObject({ status: 400, body: { code: 'unknown_stream' } });
    const unequal = await preview({ filters: [{ field: 'id', operator: 'gt', value: 'abc' }] });
    expect(unequal).toMatchObject({ status: 400, body: { stream_name: 'users' } });
    await sql`alter table orders rename to moved`;
    const gone = await preview({ name: 'orders' });
    await sql`alter table moved rename to orders`;
    expect(gone).toMatchObject({ status: 400, body: { code: 'upstream_error', upstream_code: 'table_missing' } });
  });
});

describe('POST /account_connectors/{account_connector_id}/dataset_trials', () => {
  const trial = (asked: string, id = source.id, caller = call) =>
    caller('POST', `/account_connectors/${id}/dataset_trials`, { sql: asked, limit: 1 });

  test('200: the columns and first rows of a query that is not saved', async () => {
    const { status, body } = await trial('select id, upper(email) as email from users order by id');
    expect([status, body]).toEqual([
      200,
      {
        columns: [
          { name: 'id', type: 'integer', source_type: 'integer' },
          { name: 'email', type: 'string', source_type: 'text' },
        ],
        rows: [['1', 'A@B.C']],
        rows_skipped: 0,
      },
    ]);
    expect((await call('GET', `/account_connectors/source/${source.id}`)).body.datasets).toEqual([]);
  });

  test('400 for a query that fails, writes, or a source without datasets; 403 without a permission', async () => {
    expect((await trial('select nothing from users')).body).toMatchObject({ upstream_code: 'invalid_dataset' });
    expect((await trial('delete from users returning id')).status).toBe(400);
    expect(await sql`select from users`).toHaveLength(2);
    const { id } = await make.source();
    expect((await trial('select 1', id)).body).toMatchObject({ code: 'datasets_unsupported', field: 'sql' });
    for (const [held, needed] of [
      ['sources.update', 'data.preview'],
      ['data.preview', 'sources.update'],
    ] as const) {
      const { status, body } = await trial('select 1', source.id, api.as(await api.keyWith([held])));
      expect([status, body.required_permission]).toEqual([403, needed]);
    }
  });
});
