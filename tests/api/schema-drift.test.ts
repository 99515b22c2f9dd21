import { afterAll, describe, expect, test } from 'bun:test';
import { and, eq, inArray } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, connections, tasks } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { rpc, rpcQuery } from '../support/rpc.ts';
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

let counter = 0;

/** A new schema with two tables, and a connection that copies it into another schema. */
async function shop(body: Record<string, unknown> = {}) {
  const name = `shop_${++counter}`;
  await sql.unsafe(`create schema ${name};
    create table ${name}.orders (id int primary key, total int, note text, updated_at timestamptz not null);
    insert into ${name}.orders select i, i, 'n' || i, now() from generate_series(1, 3) i;
    create table ${name}.lines (id int primary key, pieces int)`);
  const parameters = postgresParameters(database.url);
  const source = await make.connector('source', 'postgres', { ...parameters, schemas: [name] });
  const destination = await make.connector('destination', 'postgres', parameters);
  const connection = await make.connection({
    source_id: source.id,
    destination_id: destination.id,
    destination_schema: `${name}_copy`,
    ...body,
  });
  // A discovery that still runs would find the changes of the test; a slow creation requests a second one.
  const { db } = service.deps;
  const unfinished = and(eq(tasks.account_connector_id, source.id), inArray(tasks.status, ['queued', 'running']));
  await until(
    async () =>
      (await call('GET', `/account_connectors/source/${source.id}`)).body.catalog_status === 'ready' &&
      (await db.$count(tasks, unfinished)) === 0,
  );
  return { name, id: connection.id as string, source_id: source.id as string };
}
type Shop = Awaited<ReturnType<typeof shop>>;

const get = async (id: string) => (await call('GET', `/connections/${id}`)).body;
const stream = async (id: string, name: string) =>
  (await get(id)).streams.find((one: { name: string }) => one.name === name);
const pending = async (id: string) => (await rpcQuery(call, 'connections.schemaChanges', { connection_id: id })).result;
const review = (id: string, decision: string) =>
  rpc(call, 'connections.reviewSchemaChanges', { connection_id: id, decision });
const eventsOf = async (id: string, ...kinds: string[]) =>
  (await call('GET', `/automation/events?connection_id=${id}&limit=200`)).body.filter((one: { event: string }) =>
    kinds.includes(one.event),
  );

/** Changes the tables and refreshes the schema of the source. */
async function change({ id, name }: Pick<Shop, 'id' | 'name'>, statements: string) {
  await sql.unsafe(`set search_path = ${name}; ${statements}; reset search_path`);
  await refresh(id);
}

async function refresh(id: string) {
  const { body: task_id } = await call('POST', `/connections/${id}/update_catalog`);
  let done: { payload: Record<string, unknown> } | undefined;
  await until(async () => {
    const { body } = await call('GET', '/automation/events?limit=200');
    done = body.find(
      (one: { event: string; payload: { task_id?: string } }) =>
        one.event === 'catalog_refreshed' && one.payload.task_id === task_id,
    );
    return done !== undefined;
  });
  return done!.payload;
}

async function run(id: string) {
  const started = await call('POST', `/connections/${id}/run`);
  expect(started.status).toBe(200);
  let ended: Record<string, any> = {};
  await until(async () => {
    [ended] = (await call('GET', `/connections/${id}/runs`)).body;
    return ended.id === started.body && ended.finished_at !== null;
  });
  return ended;
}

const reported = (what: string, more: object) => ({ namespace: expect.any(String), change: what, ...more });

describe('a non-breaking change', () => {
  test('propagate_columns selects new columns, and leaves new tables to the user', async () => {
    const created = await shop();
    await change(created, 'alter table orders add column paid boolean; create table returns (id int primary key)');
    expect(await pending(created.id)).toEqual([
      reported('stream_added', {
        stream_name: 'returns',
        field_path: null,
        before: null,
        after: null,
        breaking: false,
      }),
    ]);
    expect(await get(created.id)).toMatchObject({ status: 'active', schema_change_status: 'non_breaking' });
    expect((await stream(created.id, 'orders')).fields).toEqual([]);
    expect(await stream(created.id, 'returns')).toBeUndefined();
    const [event, ...others] = await eventsOf(created.id, 'schema_changed', 'schema_change_breaking');
    expect(others).toEqual([]);
    expect(event.payload).toMatchObject({
      streams_added: [`${created.name}.returns`],
      streams_updated: [`${created.name}.orders`],
      fields_added: [`${created.name}.orders.paid`],
      fields_removed: [],
      breaking: false,
      connection_name: expect.any(String),
      account_connector_id: created.source_id,
      source_connector_name: 'postgres',
      connector_name: 'postgres',
    });
    await run(created.id);
    expect(await sql.unsafe(`select paid from ${created.name}_copy.orders limit 1`)).toEqual([{ paid: null }] as never);
    const accepted = await review(created.id, 'accept');
    expect(accepted.result).toMatchObject({ schema_change_status: 'no_change' });
    expect(await stream(created.id, 'returns')).toMatchObject({ selected: true, sync_mode: 'full_refresh' });
    expect(await pending(created.id)).toEqual([]);
  });

  test('propagate_fully selects new tables too', async () => {
    const created = await shop({ schema_change_policy: 'propagate_fully' });
    await change(created, 'create table returns (id int primary key)');
    expect(await pending(created.id)).toEqual([]);
    expect(await get(created.id)).toMatchObject({ schema_change_status: 'no_change', revision: 2 });
    expect(await stream(created.id, 'returns')).toMatchObject({ selected: true, primary_key: [['id']] });
    expect((await run(created.id)).streams_succeeded).toBe(3);
  });

  test('a new table is not selected where another connection writes to its destination table', async () => {
    const other = await shop({ destination_schema: 'common', table_prefix: 'other_' });
    const created = await shop({ schema_change_policy: 'propagate_fully', destination_schema: 'common' });
    await change(created, 'create table other_orders (id int primary key); create table returns (id int primary key)');
    expect(await stream(created.id, 'other_orders')).toMatchObject({ selected: false });
    expect(await stream(created.id, 'returns')).toMatchObject({ selected: true });
    const [event] = await eventsOf(created.id, 'schema_changed');
    const left = `${created.name}.other_orders`;
    expect(event.summary).toContain(`Not selected, because other streams are written to the same tables: ${left}. Set`);
    expect(event.payload).toMatchObject({ streams_unselected: [left], error_code: 'duplicate_destination_table' });
    expect(await stream(other.id, 'orders')).toMatchObject({ selected: true });
  });

  test('ignore leaves new columns out until they are accepted', async () => {
    const created = await shop({ schema_change_policy: 'ignore' });
    await change(created, 'alter table orders add column paid boolean');
    expect(await pending(created.id)).toEqual([
      reported('field_added', {
        stream_name: 'orders',
        field_path: ['paid'],
        before: null,
        after: 'boolean',
        breaking: false,
      }),
    ]);
    expect((await stream(created.id, 'orders')).fields).toMatchObject([{ path: ['paid'], selected: false }]);
    await run(created.id);
    const columns = async () =>
      (await sql.unsafe(`select * from ${created.name}_copy.orders`)).columns.map((column) => column.name);
    expect(await columns()).toEqual(['id', 'total', 'note', 'updated_at']);
    expect((await review(created.id, 'accept')).result.schema_change_status).toBe('no_change');
    expect((await stream(created.id, 'orders')).fields).toEqual([]);
    await run(created.id);
    expect(await columns()).toContain('paid');
  });

  test('an ignored change stays out, and is not reported again', async () => {
    const created = await shop({ schema_change_policy: 'ignore' });
    await change(created, 'alter table orders add column paid boolean');
    expect((await review(created.id, 'ignore')).result.schema_change_status).toBe('no_change');
    await refresh(created.id);
    expect(await pending(created.id)).toEqual([]);
    expect((await stream(created.id, 'orders')).fields).toMatchObject([{ path: ['paid'], selected: false }]);
    expect(await eventsOf(created.id, 'schema_changed')).toHaveLength(1);
  });

  test('disable_connection disables the connection on any change; a review resumes it', async () => {
    const created = await shop({
      schema_change_policy: 'disable_connection',
      schedule: { type: 'interval', interval_minutes: 60 },
    });
    await change(created, 'alter table lines add column weight int');
    expect(await get(created.id)).toMatchObject({
      status: 'auto_disabled',
      status_reason: 'schema_change_policy',
      schema_change_status: 'non_breaking',
      next_run_at: null,
    });
    expect(await eventsOf(created.id, 'connection_auto_disabled')).toHaveLength(1);
    const { result } = await review(created.id, 'accept');
    expect(result).toMatchObject({ status: 'active', status_reason: null, next_run_at: expect.any(String) });
    expect(await eventsOf(created.id, 'connection_resumed')).toHaveLength(1);
  });

  test('a wider type is applied, in the destination as well', async () => {
    const created = await shop();
    await run(created.id);
    await change(
      created,
      'alter table orders alter column total type bigint; update orders set total = 5000000000 where id = 1',
    );
    expect(await get(created.id)).toMatchObject({ schema_change_status: 'no_change', status: 'active' });
    expect((await eventsOf(created.id, 'schema_changed'))[0].payload.fields_updated).toEqual([
      `${created.name}.orders.total`,
    ]);
    expect(await run(created.id)).toMatchObject({ status: 'succeeded' });
    expect((await sql.unsafe(`select total from ${created.name}_copy.orders where id = 1`))[0]).toMatchObject({
      total: '5000000000',
    });
  });

  test('a discovery without changes leaves the connection as it is and emits no schema_changed', async () => {
    const created = await shop();
    const { updated_at, revision } = await get(created.id);
    expect(await refresh(created.id)).toMatchObject({ streams_added: [], fields_added: [], breaking: false });
    expect(await eventsOf(created.id, 'schema_changed')).toEqual([]);
    expect(await get(created.id)).toMatchObject({ updated_at, revision, catalog_refreshed_at: expect.any(String) });
  });
});

describe('a breaking change', () => {
  test('a used column is removed: the connection waits for a review, which drops the column', async () => {
    const created = await shop();
    await run(created.id);
    await change(created, 'alter table orders drop column note');
    expect(await pending(created.id)).toEqual([
      reported('field_removed', {
        stream_name: 'orders',
        field_path: ['note'],
        before: 'text',
        after: null,
        breaking: true,
      }),
    ]);
    expect(await get(created.id)).toMatchObject({
      status: 'auto_disabled',
      status_reason: 'breaking_schema_change',
      schema_change_status: 'breaking',
    });
    const resumed = await call('POST', `/connections/${created.id}`, { status: 'active' });
    expect([resumed.status, resumed.body.code]).toEqual([400, 'breaking_change_unreviewed']);
    const events = await eventsOf(created.id, 'schema_changed', 'schema_change_breaking');
    expect(events.map((one: { event: string }) => one.event).toSorted()).toEqual([
      'schema_change_breaking',
      'schema_changed',
    ]);
    expect(events[0].payload).toMatchObject({ breaking: true, fields_removed: [`${created.name}.orders.note`] });
    const ticksOf = async () => {
      const [row] = await service.deps.db.select().from(connections).where(eq(connections.id, created.id));
      return Date.parse(row!.ticking_since);
    };
    const before = await ticksOf();
    expect((await review(created.id, 'accept')).result).toMatchObject({
      status: 'active',
      schema_change_status: 'no_change',
    });
    // Ticks missed while the connection is disabled do not make its data late.
    expect(await ticksOf()).toBeGreaterThan(before);
    expect(await run(created.id)).toMatchObject({ status: 'succeeded', streams_succeeded: 2 });
  });

  test('a removed column that no connection loads does not break', async () => {
    const created = await shop({ streams: [{ name: 'orders', fields: [{ path: ['note'], selected: false }] }] });
    await change(created, 'alter table orders drop column note');
    expect(await get(created.id)).toMatchObject({ schema_change_status: 'no_change', status: 'active' });
    expect(await run(created.id)).toMatchObject({ status: 'succeeded' });
    const answer = await call('POST', `/connections/${created.id}`, {
      streams: [{ name: 'orders', destination_table: 'o' }],
    });
    expect(answer.status).toBe(200);
  });

  test('a column that returns before the review is no longer breaking', async () => {
    const created = await shop({ status: 'paused' });
    await change(created, 'alter table orders drop column note');
    expect(await get(created.id)).toMatchObject({ schema_change_status: 'breaking', status: 'paused' });
    await change(created, 'alter table orders add column note text');
    expect(await pending(created.id)).toEqual([]);
    expect(await get(created.id)).toMatchObject({ schema_change_status: 'no_change', status: 'paused' });
  });

  test.each([
    ['the table', 'drop table lines', { stream_name: 'lines', change: 'stream_removed' }],
    [
      'the key',
      'alter table lines drop constraint lines_pkey',
      { change: 'primary_key_changed', before: 'id', after: null },
    ],
    [
      'the type, to a narrower one',
      'alter table orders alter column note type int using 1',
      { change: 'field_type_changed', before: 'text', after: 'integer' },
    ],
  ])('%s', async (_what, statements, expected) => {
    const created = await shop({
      streams: [
        { name: 'lines', sync_mode: 'incremental', destination_sync_mode: 'append_dedup', cursor_field: ['id'] },
        { name: 'orders' },
      ],
    });
    await change(created, statements);
    expect(await pending(created.id)).toMatchObject([{ ...expected, breaking: true }]);
    expect(await get(created.id)).toMatchObject({ schema_change_status: 'breaking', status: 'auto_disabled' });
  });

  test('a merge without its key cannot be accepted until its settings change', async () => {
    const merged = { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', cursor_field: ['id'] };
    const created = await shop({ streams: [{ name: 'lines', ...merged }] });
    await change(created, 'alter table lines drop constraint lines_pkey');
    const refused = await review(created.id, 'accept');
    expect([refused.status, refused.error.code]).toMatchObject([400, expect.anything()]);
    expect(await pending(created.id)).toHaveLength(1);
    expect((await review(created.id, 'ignore')).result).toMatchObject({
      status: 'active',
      schema_change_status: 'no_change',
    });
    expect(await stream(created.id, 'lines')).toMatchObject({ primary_key: [['id']] });
  });

  test('a masked column that returns later is still masked', async () => {
    const created = await shop({ streams: [{ name: 'orders', fields: [{ path: ['note'], masking: 'redact' }] }] });
    await change(created, 'alter table orders drop column note');
    await review(created.id, 'accept');
    await change(created, "alter table orders add column note text default 'secret'");
    await run(created.id);
    const [row] = await sql.unsafe(`select * from ${created.name}_copy.orders`);
    expect(row).not.toHaveProperty('note');
  });
});

describe('a run that finds the change before a discovery', () => {
  test('names the removed column, and puts the connection under review', async () => {
    const created = await shop();
    await sql.unsafe(`alter table ${created.name}.orders drop column note`);
    const ended = await run(created.id);
    // The tables of the run are published together.
    expect(ended).toMatchObject({ status: 'failed', streams_succeeded: 0 });
    expect(ended.error).toMatchObject({
      type: 'schema_changed',
      code: 'field_missing',
      origin: 'source',
      retryable: false,
      stream_name: 'orders',
      message: expect.stringMatching(
        /^Field note of .*orders no longer exists in the source\. Review the schema change of connection .+ to resume/,
      ),
    });
    await until(async () => (await get(created.id)).schema_change_status === 'breaking');
    expect(await get(created.id)).toMatchObject({ status: 'auto_disabled', status_reason: 'breaking_schema_change' });
    expect(await pending(created.id)).toHaveLength(1);
    const { body } = await api.call(
      'GET',
      `/automation/events?event=schema_change_breaking&connection_id=${created.id}`,
    );
    // The failed run opens the case of both.
    expect(body).toMatchObject([{ payload: { found_by_run: true } }]);
  });

  test('selects a new column before it reads, and emits the event of a discovery', async () => {
    const created = await shop();
    await sql.unsafe(`alter table ${created.name}.orders add column paid boolean default true`);
    expect(await run(created.id)).toMatchObject({ status: 'succeeded' });
    expect((await sql.unsafe(`select paid from ${created.name}_copy.orders`))[0]).toEqual({ paid: true } as never);
    const events = await eventsOf(created.id, 'schema_changed');
    expect(events.map((one: { payload: object }) => one.payload)).toMatchObject([
      { fields_added: [`${created.name}.orders.paid`], breaking: false },
    ]);
    expect(await refresh(created.id)).toMatchObject({ streams_updated: [], fields_added: [] });
    expect(await eventsOf(created.id, 'schema_changed')).toHaveLength(1);
  });

  test('disables the connection under disable_connection, and loads nothing', async () => {
    const created = await shop({ schema_change_policy: 'disable_connection', streams: [{ name: 'orders' }] });
    await sql.unsafe(`alter table ${created.name}.orders add column paid boolean`);
    const ended = await run(created.id);
    expect(ended).toMatchObject({
      status: 'failed',
      error: { type: 'schema_changed', code: 'schema_change_unreviewed', retryable: false },
    });
    expect(await get(created.id)).toMatchObject({ status: 'auto_disabled', status_reason: 'schema_change_policy' });
    expect((await review(created.id, 'ignore')).result).toMatchObject({ status: 'active' });
    expect(await run(created.id)).toMatchObject({ status: 'succeeded' });
    const { columns } = await sql.unsafe(`select * from ${created.name}_copy.orders`);
    expect(columns.map(({ name }) => name)).not.toContain('paid');
  });

  test('widens an appended column at once', async () => {
    const created = await shop({
      streams: [{ name: 'orders', sync_mode: 'full_refresh', destination_sync_mode: 'append' }],
    });
    await run(created.id);
    await sql.unsafe(`alter table ${created.name}.orders alter column total type text using 'No. ' || total`);
    expect(await run(created.id)).toMatchObject({ status: 'succeeded', rows_loaded: 3 });
    const rows = await sql.unsafe(`select total from ${created.name}_copy.orders order by 1`);
    expect(rows.map(({ total }) => total)).toEqual(['1', '2', '3', 'No. 1', 'No. 2', 'No. 3']);
  });

  test('fails for a removed table, and keeps the loaded rows', async () => {
    const created = await shop();
    await run(created.id);
    await sql.unsafe(`drop table ${created.name}.lines`);
    const ended = await run(created.id);
    expect(ended.error).toMatchObject({ type: 'schema_changed', code: 'table_missing', stream_name: 'lines' });
    expect(await sql.unsafe(`select * from ${created.name}_copy.lines`)).toHaveLength(0);
  });
});

test('a scheduled run refreshes a catalog older than a day', async () => {
  const created = await shop({
    schedule: { type: 'interval', interval_minutes: 60 },
    schema_change_policy: 'propagate_fully',
  });
  await sql.unsafe(`create table ${created.name}.returns (id int primary key)`);
  const { db } = service.deps;
  const due = async () => {
    await db.update(connections).set({ next_run_at: new Date().toISOString() }).where(eq(connections.id, created.id));
    await until(async () => (await call('GET', `/connections/${created.id}/runs`)).body[0]?.finished_at != null);
  };
  await due();
  expect(await stream(created.id, 'returns')).toBeUndefined();
  await db
    .update(accountConnectors)
    .set({ catalog_refreshed_at: new Date(Date.now() - 25 * 3_600_000).toISOString() })
    .where(eq(accountConnectors.id, created.source_id));
  await due();
  await until(async () => (await stream(created.id, 'returns'))?.selected === true);
});

describe('a review', () => {
  test('needs the permission to update connections, in the same account', async () => {
    const created = await shop();
    const viewer = api.as(await api.keyWith([]));
    const decision = { connection_id: created.id, decision: 'accept' };
    expect((await rpc(viewer, 'connections.reviewSchemaChanges', decision)).status).toBe(403);
    expect((await rpcQuery(viewer, 'connections.schemaChanges', { connection_id: created.id })).status).toBe(200);
    const other = await api.otherAccount();
    expect((await rpc(other.call, 'connections.reviewSchemaChanges', decision)).status).toBe(404);
    expect((await rpc(call, 'connections.reviewSchemaChanges', { ...decision, decision: 'maybe' })).status).toBe(422);
  });

  test('resumes a connection whose changes were taken back at the source', async () => {
    const created = await shop();
    await change(created, 'alter table lines rename to moved');
    expect(await get(created.id)).toMatchObject({ status: 'auto_disabled', schema_change_status: 'breaking' });
    await change(created, 'alter table moved rename to lines');
    expect(await pending(created.id)).toEqual([]);
    expect((await review(created.id, 'ignore')).result).toMatchObject({ status: 'active', status_reason: null });
    expect(await run(created.id)).toMatchObject({ status: 'succeeded' });
  });

  test('without changes changes nothing', async () => {
    const created = await shop();
    expect((await review(created.id, 'accept')).result.revision).toBe(1);
  });
});
