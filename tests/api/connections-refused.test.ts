import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors, connections, events } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';
import postgres from 'postgres';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const other = await api.otherAccount();
const foreign = await makerOf(other.call).source();
const database = await createPlainDatabase();

const UNKNOWN = '01900000-0000-7000-8000-000000000000';
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

describe('POST /connections refused', () => {
  test('400: duplicate_name, ignoring case, and nothing is stored', async () => {
    const { body } = await create(await sides());
    const again = await create({ ...(await sides()), name: body.name.toUpperCase() });
    expect(again.status).toBe(400);
    expect(again.body).toMatchObject({ code: 'duplicate_name', field: 'name' });
    const rows = await deps.db.select().from(events).where(eq(events.event, 'connection_created'));
    const ids = await deps.db.select({ id: connections.id }).from(connections);
    expect(rows).toHaveLength(ids.length);
  });

  test('400: twenty parallel creates of one name create one connection', async () => {
    const ends = await sides();
    const name = uniqueName('race');
    const answers = await Promise.all(Array.from({ length: 20 }, () => create({ ...ends, name })));
    expect(answers.filter((one) => one.status === 201)).toHaveLength(1);
    expect(answers.filter((one) => one.body.code === 'duplicate_name')).toHaveLength(19);
  });

  test('400: invalid_reference for an unknown, foreign, deleted or wrong-sided connector', async () => {
    const ends = await sides();
    const deleted = await make.source();
    await call('DELETE', `/account_connectors/${deleted.id}`);
    const anotherDestination = await make.destination();
    for (const source_id of [UNKNOWN, foreign.id, deleted.id, anotherDestination.id]) {
      const { status, body } = await create({ ...ends, source_id });
      expect([source_id, status, body.code, body.field]).toEqual([source_id, 400, 'invalid_reference', 'source_id']);
    }
    const { body } = await create({ ...ends, destination_id: UNKNOWN });
    expect(body).toMatchObject({ code: 'invalid_reference', field: 'destination_id' });
    const copy = await create({ ...ends, copy_field_mapping_from_connection_id: UNKNOWN });
    expect(copy.body).toMatchObject({ code: 'invalid_reference', field: 'copy_field_mapping_from_connection_id' });
  });

  test('400: same_account_connector', async () => {
    const { source_id } = await sides();
    const { status, body } = await create({ source_id, destination_id: source_id });
    expect(status).toBe(400);
    expect(body.code).toBe('same_account_connector');
  });

  test('400: connector_pair_unsupported when a connector no longer exists', async () => {
    const ends = await sides();
    await deps.db
      .update(accountConnectors)
      .set({ connector_name: 'gone' })
      .where(eq(accountConnectors.id, ends.destination_id));
    const { status, body } = await create(ends);
    expect(status).toBe(400);
    expect(body.code).toBe('connector_pair_unsupported');
  });

  test('400: catalog_not_ready with the error of the source', async () => {
    const source = await make.connector('source', 'postgres', {
      ...postgresParameters(database.url),
      database: 'gone',
    });
    const { status, body } = await create({ ...(await sides()), source_id: source.id });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'catalog_not_ready', field: 'source_id', account_connector_id: source.id });
    expect(body.detail).toContain('gone');
  });

  test('400: account_connector_not_ready, but only with run_immediately', async () => {
    const ends = await sides();
    await deps.db
      .update(accountConnectors)
      .set({ status: 'broken' })
      .where(eq(accountConnectors.id, ends.destination_id));
    const { status, body } = await create({ ...ends, run_immediately: true });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'account_connector_not_ready', account_connector_id: ends.destination_id });
    expect((await create(ends)).status).toBe(201);
  });

  test.each(['* * * * * *', '@daily', '0 0 L * *', '61 * * * *', '0 0 30 2 *'])(
    '400: invalid_cron for "%s"',
    async (cron_expression) => {
      const { status, body } = await create({ ...(await sides()), schedule: { type: 'cron', cron_expression } });
      expect(status).toBe(400);
      expect(body).toMatchObject({ code: 'invalid_cron', field: 'schedule.cron_expression' });
    },
  );

  const one = (stream: object) => [{ name: 'stream_1', ...stream }];
  test.each([
    ['unknown_stream', 'streams.0.name', {}, [{ name: 'nothing' }]],
    ['duplicate_stream', 'streams.1.name', {}, [{ name: 'stream_1' }, { name: 'stream_1' }]],
    ['unsupported_sync_mode', 'streams.0.sync_mode', KEYLESS, one({ sync_mode: 'incremental' })],
    [
      'unsupported_sync_mode',
      'streams.0.destination_sync_mode',
      {},
      one({ sync_mode: 'full_refresh', destination_sync_mode: 'update' }),
    ],
    [
      'unsupported_sync_mode',
      'streams.0.destination_sync_mode',
      {},
      one({ sync_mode: 'full_refresh', destination_sync_mode: 'append_dedup' }),
    ],
    [
      'primary_key_required',
      'streams.0.primary_key',
      { primary_key: false },
      one({ sync_mode: 'incremental', destination_sync_mode: 'append_dedup' }),
    ],
    ['primary_key_required', 'streams.0.fields.0.selected', {}, one({ fields: [{ path: ['id'], selected: false }] })],
    [
      'cursor_required',
      'streams.0.fields.0.selected',
      {},
      one({ fields: [{ path: ['updated_at'], selected: false }] }),
    ],
    ['unknown_field', 'streams.0.cursor_field', {}, one({ cursor_field: ['nothing'] })],
    ['unknown_field', 'streams.0.primary_key.0', {}, one({ primary_key: [['nothing']] })],
    ['unknown_field', 'streams.0.fields.0.path', {}, one({ fields: [{ path: ['nothing'] }] })],
    ['unknown_field', 'streams.0.filters.0.field', {}, one({ filters: [{ field: 'nothing', operator: 'is_null' }] })],
    [
      'duplicate_destination_column',
      'streams.0.fields.0.destination_name',
      {},
      one({ fields: [{ path: ['name'], destination_name: 'id' }] }),
    ],
    [
      'reserved_name',
      'streams.0.fields.0.destination_name',
      {},
      one({ fields: [{ path: ['name'], destination_name: 'xmin' }] }),
    ],
    ['reverse_etl_only', 'streams.0.dataset_sql', {}, one({ dataset_sql: 'select 1' })],
    [
      'duplicate_destination_table',
      'streams.1.destination_table',
      { streams: 2 },
      [{ name: 'stream_1', destination_table: 'stream_2' }, { name: 'stream_2' }],
    ],
  ])('400: %s at %s', async (code, field, source, streams) => {
    const { status, body } = await create({ ...(await sides(source)), streams });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code, field });
  });

  test('400: duplicate_destination_table for a table that the connection itself reads', async () => {
    const sql = postgres(database.url, { max: 1, onnotice: () => {} });
    await sql.unsafe('create schema books; create table books.orders (id int primary key)');
    await sql.end();
    const parameters = postgresParameters(database.url);
    const ends = {
      source_id: (await make.connector('source', 'postgres', { ...parameters, schemas: ['books'] })).id,
      destination_id: (await make.connector('destination', 'postgres', parameters)).id,
    };
    const refused = await create({ ...ends, destination_schema: 'books' });
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({
      code: 'duplicate_destination_table',
      stream_name: 'orders',
      field: 'streams.destination_table',
    });
    const { status, body } = await create({ ...ends, destination_schema: 'books', table_prefix: 'copy_' });
    expect(status).toBe(201);
    const moved = await call('POST', `/connections/${body.id}`, { table_prefix: '' });
    expect([moved.status, moved.body.code]).toEqual([400, 'duplicate_destination_table']);
    expect((await create({ ...ends, destination_schema: 'copies' })).status).toBe(201);
  });

  test('400: cursor_required for a source without a default cursor', async () => {
    const sql = postgres(database.url, { max: 1, onnotice: () => {} });
    await sql.unsafe('create schema if not exists plain; create table plain.t (id int primary key, at timestamptz)');
    await sql.end();
    const parameters = { ...postgresParameters(database.url), schemas: ['plain'] };
    const source_id = (await make.connector('source', 'postgres', parameters)).id;
    const ends = { ...(await sides()), source_id };
    const stream = { name: 't', sync_mode: 'incremental' };
    const { status, body } = await create({ ...ends, streams: [stream] });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'cursor_required', field: 'streams.0.cursor_field' });
    const given = await create({ ...ends, streams: [{ ...stream, cursor_field: ['at'] }] });
    expect(given.body.streams[0]).toMatchObject({ sync_mode: 'incremental', destination_sync_mode: 'append_dedup' });
  });

  test('400: date_range_conflict', async () => {
    const { status, body } = await create(await sides(), '?date_range=today&end_date=2026-01-01');
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'date_range_conflict', field: 'end_date' });
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', '/connections', {})).status).toBe(401);
  });

  test('403: without connections.create, before the body is parsed', async () => {
    const runner = api.as(await api.keyWith(['connections.run']));
    const { status, body } = await runner('POST', '/connections', { nonsense: true });
    expect(status).toBe(403);
    expect(body.required_permission).toBe('connections.create');
  });

  test('422: reports every problem of the body at once', async () => {
    const { status, body } = await call('POST', '/connections', {
      name: ' ',
      source_id: 'x',
      backfill_days: 366,
      schedule: { type: 'interval', interval_minutes: 7 },
      streams: [{ sync_mode: 'sometimes' }],
      colour: 'red',
    });
    expect(status).toBe(422);
    const locations = body.detail.map((issue: { loc: string[] }) => issue.loc.join('.'));
    expect(locations).toEqual(
      expect.arrayContaining([
        'body.name',
        'body.source_id',
        'body.destination_id',
        'body.backfill_days',
        'body.schedule.interval_minutes',
        'body.streams.0.name',
        'body.streams.0.sync_mode',
        'body.colour',
      ]),
    );
  });

  test.each([
    [{ type: 'manual', interval_minutes: 5 }, 'interval_minutes'],
    [{ type: 'interval' }, 'interval_minutes'],
    [{ type: 'cron' }, 'cron_expression'],
    [{ type: 'interval', interval_minutes: 60, time_of_day: '08:00' }, 'time_of_day'],
    [{ type: 'manual', timezone: 'Mars/Olympus' }, 'timezone'],
  ])('422: a schedule has exactly the fields of its type: %j', async (schedule, field) => {
    const { status, body } = await create({ source_id: UNKNOWN, destination_id: UNKNOWN, schedule });
    expect(status).toBe(422);
    expect(body.detail).toMatchObject([{ loc: ['body', 'schedule', field], type: 'value_error' }]);
  });
});
