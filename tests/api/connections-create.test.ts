import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { events } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { rpc } from '../support/rpc.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';
import postgres from 'postgres';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call } = api;
const make = makerOf(call);
const database = await createPlainDatabase();

const KEYLESS = { streams: 2, primary_key: false, cursor: false };

/** A source with these settings into a PostgreSQL destination, which supports every mode, with tables of its own. */
async function sides(source: object = {}) {
  return {
    source_id: (await make.source(source)).id,
    destination_id: (await make.connector('destination', 'postgres', ownSchema())).id,
  };
}
const ownSchema = () => ({ ...postgresParameters(database.url), schema: uniqueName('schema') });
const create = (body: object, query = '') =>
  call('POST', `/connections${query}`, { name: uniqueName('connection'), ...body });

describe('POST /connections', () => {
  test('201: without streams, selects all of the source with the best modes that both sides support', async () => {
    const { status, body } = await create({ ...(await sides({ streams: 2 })) });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      kind: 'elt',
      status: 'active',
      health: 'pending',
      revision: 1,
      table_prefix: '',
      schedule: { type: 'manual', next_runs: [] },
      next_run_at: null,
      last_run: null,
      active_run_id: null,
      created_by: { id: service.user_id },
    });
    expect(body.streams.map((stream: { name: string }) => stream.name)).toEqual(['stream_1', 'stream_2']);
    expect(body.streams[0]).toMatchObject({
      selected: true,
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      primary_key: [['id']],
      cursor_field: ['updated_at'],
      cursor_value: null,
    });
    expect((await call('GET', `/connections/${body.id}`)).body).toEqual(body);
  });

  test('201: a tag that is given twice is stored once', async () => {
    const { status, body } = await create({ ...(await sides({ streams: 1 })), tags: ['sales', 'daily', 'sales'] });
    expect([status, body.tags]).toEqual([201, ['sales', 'daily']]);
  });

  test('201: start_date of the body is the earliest day to load, start_date of the query the range of usage', async () => {
    const streams = [{ name: 'stream_1', shared_destination_table: true }];
    const body = { ...(await sides({ streams: 1 })), start_date: '2020-02-29', streams };
    expect(await create(body)).toMatchObject({ status: 201, body: { start_date: '2020-02-29' } });
    const range = '?date_range=custom&start_date=2026-01-01&end_date=2026-01-31';
    expect(await create(body, range)).toMatchObject({ status: 201, body: { start_date: '2020-02-29' } });
    expect((await create(body, '?start_date=2026-01-01')).body.code).toBe('date_range_conflict');
    const { result } = await rpc(call, 'connections.create', { name: uniqueName('connection'), ...body });
    expect(result).toMatchObject({ start_date: '2020-02-29' });
  });

  test('201: a stream without key and cursor gets a full refresh', async () => {
    const { body } = await create(await sides(KEYLESS));
    expect(body.streams[0]).toMatchObject({
      sync_mode: 'full_refresh',
      destination_sync_mode: 'overwrite',
      primary_key: null,
      cursor_field: null,
    });
  });

  test('201: selects only the named streams, with the settings of the request', async () => {
    const stream = {
      name: 'stream_2',
      sync_mode: 'incremental',
      destination_sync_mode: 'append',
      destination_table: 'second',
      fields: [
        { path: ['name'], masking: 'hash_sha256' },
        { path: ['note'], selected: false },
      ],
      filters: [{ field: 'amount', operator: 'gt', value: 10 }],
    };
    const { status, body } = await create({ ...(await sides({ streams: 2 })), streams: [stream] });
    expect(status).toBe(201);
    expect(body.streams.map((one: { selected: boolean }) => one.selected)).toEqual([false, true]);
    expect(body.streams[1]).toMatchObject({
      ...stream,
      fields: [
        { path: ['name'], selected: true, destination_name: null, destination_type: null, masking: 'hash_sha256' },
        { path: ['note'], selected: false, destination_name: null, destination_type: null, masking: 'none' },
      ],
    });
  });

  test('201: one mode of the pair implies the other', async () => {
    const ends = await sides();
    const modes = async (settings: object) => {
      const stream = { name: 'stream_1', destination_table: uniqueName('table'), ...settings };
      const { body } = await create({ ...ends, streams: [stream] });
      return [body.streams[0].sync_mode, body.streams[0].destination_sync_mode];
    };
    expect(await modes({ sync_mode: 'full_refresh' })).toEqual(['full_refresh', 'overwrite']);
    expect(await modes({ destination_sync_mode: 'overwrite' })).toEqual(['full_refresh', 'overwrite']);
    expect(await modes({ destination_sync_mode: 'append' })).toEqual(['incremental', 'append']);
  });

  test('201: streams of the same name in two namespaces get separate tables', async () => {
    const sql = postgres(database.url, { max: 1, onnotice: () => {} });
    await sql.unsafe('create schema if not exists eu; create schema if not exists us');
    await sql.unsafe('create table eu.orders (id int primary key); create table us.orders (id int primary key)');
    await sql.end();
    const parameters = { ...postgresParameters(database.url), schemas: ['eu', 'us'] };
    const source = await make.connector('source', 'postgres', parameters);
    const { destination_id } = await sides();
    const { body } = await create({ source_id: source.id, destination_id });
    const tables = body.streams.map((one: { namespace: string; destination_table: string }) => [
      one.namespace,
      one.destination_table,
    ]);
    expect(tables).toEqual([
      ['eu', 'eu_orders'],
      ['us', 'us_orders'],
    ]);
  });

  test('201: returns the next tick of the schedule and its description', async () => {
    const schedule = { type: 'cron', cron_expression: '30 6 * * 1-5', timezone: 'Europe/Berlin' };
    const spaced = { ...schedule, cron_expression: `  ${schedule.cron_expression} ` };
    const { body } = await create({ ...(await sides()), schedule: spaced });
    expect(body.schedule).toMatchObject({ ...schedule, description: expect.stringContaining('06:30') });
    expect(body.schedule.next_runs).toHaveLength(5);
    expect(body.next_run_at).toBe(body.schedule.next_runs[0]);
  });

  test('201: status=paused has no next run', async () => {
    const schedule = { type: 'interval', interval_minutes: 60 };
    const { body } = await create({ ...(await sides()), schedule, status: 'paused' });
    expect(body).toMatchObject({ status: 'paused', next_run_at: null, schedule: { next_runs: [] } });
  });

  test('201: run_immediately starts a run in the same transaction', async () => {
    const { body } = await create({ ...(await sides()), run_immediately: true });
    expect(body.active_run_id).not.toBeNull();
    expect(body).toMatchObject({ health: 'running', last_run: { id: body.active_run_id, status: 'queued' } });
  });

  test('201: copies field settings of another connection', async () => {
    const fields = [{ path: ['name'], masking: 'redact' }];
    const { body: model } = await create({ ...(await sides()), streams: [{ name: 'stream_1', fields }] });
    const copied = await create({ ...(await sides()), copy_field_mapping_from_connection_id: model.id });
    expect(copied.body.streams[0].fields).toEqual(model.streams[0].fields);
  });

  test('201: emits an event with the caller as the actor', async () => {
    const { body } = await create(await sides());
    const [event] = await deps.db
      .select()
      .from(events)
      .where(and(eq(events.connection_id, body.id), eq(events.event, 'connection_created')));
    expect(event).toMatchObject({
      actor: { type: 'user', id: service.user_id },
      payload: { connection_name: body.name },
    });
  });
});
