import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { changeReaders, connections } from '../../db/schema/index.ts';
import { type Cluster, startCluster } from '../bench/cluster.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { followedTables } from '../support/followed-tables.ts';
import { runEnded } from '../support/pipeline.ts';
import { postgresParameters, uniqueName } from '../support/resources.ts';
import { sshdMissing, startSshd } from '../support/sshd.ts';
import { until } from '../support/until.ts';

const service = await testDeps();
const { deps } = service;
const { call } = testApi(service);
const { from, to, source, target, make, show, logSource, follow, run, update, streamOf, reset } = await followedTables(
  service,
  call,
);
const sshd = await startSshd();
const clusters: Cluster[] = [];
afterAll(() => Promise.all(clusters.map((cluster) => cluster.stop())));

// oxlint-disable-next-line typescript/no-explicit-any -- responses of any shape
type Json = any;
/** Between changes: as fast as they can go, they take a processor for themselves. */
const PACE_MS = 5;
const slotName = (stream: Json) => `pipeline_${stream.connection_id.replaceAll('-', '')}`;
const kept = async (stream: Json, server = source) => {
  const name = slotName(stream);
  const [slot] = await server`select restart_lsn::text as at from pg_replication_slots where slot_name = ${name}`;
  const [publication] = await server`select 1 from pg_publication where pubname = ${name}`;
  return { slot: slot !== undefined, publication: publication !== undefined };
};
const isReleased = async (stream: Json) =>
  (await deps.db.select().from(changeReaders).where(eq(changeReaders.stream_id, stream.id))).length === 0;
const idsOf = async (table: string) =>
  (await target.unsafe(`select id from ${table} order by id`)).map(({ id }) => id as number);
const GONE = { slot: false, publication: false };
const THERE = { slot: true, publication: true };

describe('a destination that cannot apply changes', () => {
  const httpDestination = async (): Promise<string> =>
    (await make.connector('destination', 'http', { url: 'http://127.0.0.1:1/{{ table }}', check_method: 'none' })).id;

  test('400: changes_unsupported on create and on update', async () => {
    await source`create table pairs (id int primary key)`;
    const ends = { source_id: await logSource(), destination_id: await httpDestination() };
    const create = (stream: object) =>
      call('POST', '/connections', {
        name: uniqueName('pair'),
        ...ends,
        streams: [{ name: 'pairs', sync_mode: 'incremental', ...stream }],
      });
    const refused = await create({ destination_sync_mode: 'append_dedup' });
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({
      code: 'changes_unsupported',
      field: 'streams.0.destination_sync_mode',
      stream_name: 'pairs',
    });
    const created = await create({});
    expect(created.status).toBe(201);
    expect(created.body.streams[0]).toMatchObject({ sync_mode: 'incremental', destination_sync_mode: 'append' });
    const changed = await update(created.body, { streams: [{ name: 'pairs', destination_sync_mode: 'append_dedup' }] });
    expect([changed.status, changed.body.code]).toEqual([400, 'changes_unsupported']);
    expect((await streamOf(created.body)).destination_sync_mode).toBe('append');
  });

  test('accepts rows that are read by cursor', async () => {
    await source`create table plain_pairs (id int primary key, at timestamptz not null)`;
    const { id } = await make.connector('source', 'postgres', postgresParameters(from.url));
    await until(async () => (await show('source', id)).catalog_status === 'ready');
    const stream = { name: 'plain_pairs', sync_mode: 'incremental', cursor_field: ['at'] };
    const created = await make.connection({
      source_id: id,
      destination_id: await httpDestination(),
      streams: [{ ...stream, destination_sync_mode: 'append_dedup' }],
    });
    expect((await streamOf(created)).destination_sync_mode).toBe('append_dedup');
  });
});

test('a history of some rows shows which of its rows are deletes, and can be one of deletes alone', async () => {
  await source`create table orders (id int primary key, total int not null)`;
  await source`insert into orders values (1, 50), (2, 5)`;
  const source_id = await logSource();
  const history = (table: string, filter: object) =>
    follow('orders', {
      source_id,
      stream: {
        sync_mode: 'incremental',
        destination_sync_mode: 'append',
        destination_table: table,
        filters: [filter],
      },
    });
  const large = await history('large_orders', { field: 'total', operator: 'gte', value: 10 });
  const gone = await history('gone_orders', { field: '_cdc_operation', operator: 'eq', value: 'delete' });
  for (const connection of [large, gone]) expect((await run(connection)).status).toBe('succeeded');
  await source`update orders set total = 60 where id = 1`;
  await source`delete from orders`;
  for (const connection of [large, gone]) expect((await run(connection)).status).toBe('succeeded');
  const rowsOf = async (table: string) =>
    (await target.unsafe(`select * from ${table} order by _cdc_lsn nulls first, id`)).map(
      ({ id, total, _cdc_operation }) => `${id} ${total} ${_cdc_operation}`,
    );
  expect(await rowsOf('large_orders')).toEqual(['1 50 read', '1 60 update', '1 null delete', '2 null delete']);
  expect(await rowsOf('gone_orders')).toEqual(['1 null delete', '2 null delete']);
  const refused = await update(gone, { streams: [{ name: 'orders', destination_sync_mode: 'append_dedup' }] });
  expect([refused.status, refused.body.code, refused.body.field]).toEqual([
    400,
    'invalid_filter',
    'streams.0.filters.0.field',
  ]);
});

describe('a continuous schedule', () => {
  const continuous = { schedule: { type: 'continuous' } };

  test('goes on with other streams in its next run, which begins when they change', async () => {
    await source`create schema changing`;
    for (const table of ['kept', 'added', 'left']) {
      await source.unsafe(
        `create table changing.${table} (id int primary key); insert into changing.${table} values (1)`,
      );
    }
    const source_id = await logSource({ schemas: ['changing'] });
    const chosen = { sync_mode: 'incremental', destination_sync_mode: 'append_dedup' };
    const connection = await follow('kept', {
      source_id,
      stream: chosen,
      connection: { ...continuous, destination_schema: 'changing' },
    });
    const shown = async () => (await call('GET', `/connections/${connection.id}`)).body;
    const arrives = async (table: string, ids: number[]) =>
      until(async () => {
        const there = await target.unsafe(`select to_regclass('changing.${table}') is not null as there`);
        return there[0]!.there && Bun.deepEquals(await idsOf(`changing.${table}`), ids);
      });
    await arrives('kept', [1]);
    const select = (name: string, selected: boolean) =>
      update(connection, { streams: [{ name, namespace: 'changing', ...chosen, selected }] });
    const first = (await shown()).active_run_id;
    for (const name of ['added', 'left']) expect((await select(name, true)).status).toBe(200);
    await arrives('added', [1]);
    await arrives('left', [1]);
    const second = (await shown()).active_run_id;
    expect(second).not.toBe(first);
    expect((await runEnded(service, first)).status).toBe('succeeded');
    expect((await select('left', false)).status).toBe(200);
    await until(async () => (await shown()).active_run_id !== second && (await shown()).active_run_id !== null);
    for (const table of ['kept', 'added', 'left']) await source.unsafe(`insert into changing.${table} values (2)`);
    await arrives('kept', [1, 2]);
    await arrives('added', [1, 2]);
    expect(await idsOf('changing.left')).toEqual([1]);
    await update(connection, { status: 'paused' });
    await until(async () => (await shown()).active_run_id === null);
    await call('DELETE', `/connections/${connection.id}`);
  });

  test('reads a table again that was reset, and fills other tables, in the run that begins with the change', async () => {
    await source`create schema moving`;
    for (const table of ['stock', 'other']) {
      await source.unsafe(`create table moving.${table} (id int primary key, n int not null);
        insert into moving.${table} select g, 0 from generate_series(1, 3) g`);
    }
    const source_id = await logSource({ schemas: ['moving'] });
    const connection = await follow('stock', {
      source_id,
      stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup' },
      connection: {
        ...continuous,
        destination_schema: 'moving',
        streams: ['stock', 'other'].map((name) => ({ name })),
      },
    });
    const shown = async () => (await call('GET', `/connections/${connection.id}`)).body;
    const rowsOf = async (table: string) => {
      const [there] = await target`select to_regclass(${`moving.${table}`}) as name`;
      if (there!.name === null) return [];
      return (await target.unsafe(`select id, n from moving.${table} order by id`)).map(({ id, n }) => `${id} ${n}`);
    };
    const becomes = (table: string, rows: string[]) => until(async () => Bun.deepEquals(await rowsOf(table), rows));
    for (const table of ['stock', 'other']) await becomes(table, ['1 0', '2 0', '3 0']);
    // Commits after the change, up to the end of the run, must not bring back the position that was reset.
    const busy = new AbortController();
    const changing = (async () => {
      while (!busy.signal.aborted) {
        await source`update moving.stock set n = n + 1 where id = 1`;
        await Bun.sleep(PACE_MS);
      }
    })();
    try {
      await target`update moving.stock set n = 77 where id = 2`;
      await target`update moving.other set n = 77 where id = 2`;
      const { active_run_id, streams } = await shown();
      const stock = streams.find((one: Json) => one.name === 'stock');
      const resetTo = (value: string | null) => update(connection, { reset_cursor: [{ stream_id: stock.id, value }] });
      expect((await resetTo('0/1')).body).toMatchObject({ code: 'run_active', connection_run_id: active_run_id });
      expect((await resetTo(null)).status).toBe(200);
      await until(async () => (await rowsOf('stock'))[1] === '2 0');
      expect((await rowsOf('other'))[1]).toBe('2 77');
      expect((await runEnded(service, active_run_id)).status).toBe('succeeded');
    } finally {
      busy.abort();
      await changing;
    }
    await source`update moving.stock set n = 5`;
    await becomes('stock', ['1 5', '2 5', '3 5']);
    expect((await update(connection, { table_prefix: 'new_' })).status).toBe(200);
    await becomes('new_stock', ['1 5', '2 5', '3 5']);
    await becomes('new_other', ['1 0', '2 0', '3 0']);
    await source`update moving.stock set n = 6`;
    await becomes('new_stock', ['1 6', '2 6', '3 6']);
    expect(await rowsOf('stock')).toEqual(['1 5', '2 5', '3 5']);
    await update(connection, { status: 'paused' });
    await until(async () => (await shown()).active_run_id === null);
    await call('DELETE', `/connections/${connection.id}`);
  });

  test('is followed until the connection is paused', async () => {
    await source`create table live (id int primary key)`;
    const connection = await follow('live', { connection: continuous });
    expect(connection).toMatchObject({ next_run_at: null, schedule: { type: 'continuous', next_runs: [] } });
    const stream = await streamOf(connection);
    const shown = async () => (await call('GET', `/connections/${connection.id}`)).body;
    await until(async () => (await target`select to_regclass('live') as there`)[0]!.there !== null);
    for (const id of [1, 2]) {
      await source`insert into live values (${id})`;
      await until(async () => (await idsOf('live')).length === id);
    }
    await until(async () => (await shown()).log_lag?.seconds != null);
    expect((await shown()).log_lag).toMatchObject({ bytes: expect.any(Number), measured_at: expect.any(String) });
    const { active_run_id } = await shown();
    expect((await call('POST', `/connections/${connection.id}/run`)).body.code).toBe('run_already_active');
    expect((await update(connection, { status: 'paused' })).status).toBe(200);
    await until(async () => (await shown()).active_run_id === null);
    expect((await shown()).last_run).toMatchObject({ id: active_run_id, status: 'succeeded' });
    await source`insert into live values (3)`;
    expect((await reset(connection)).status).toBe(200);
    await update(connection, { status: 'active' });
    await until(async () => (await idsOf('live')).length === 3);
    await call('DELETE', `/connections/${connection.id}`);
    await until(() => isReleased(stream));
    expect(await kept(stream)).toEqual(GONE);
  });

  test('begins its next run at once when it is changed, whatever the pause after failures', async () => {
    await source`create table waiting (id int primary key)`;
    const connection = await follow('waiting', { connection: continuous });
    const shown = async () => (await call('GET', `/connections/${connection.id}`)).body;
    await until(async () => (await target`select to_regclass('waiting') as there`)[0]!.there !== null);
    await update(connection, { status: 'paused' });
    await until(async () => (await shown()).active_run_id === null);
    await source`select pg_drop_replication_slot(${slotName(await streamOf(connection))})`;
    await source`insert into waiting values (1)`;
    await update(connection, { status: 'active' });
    await until(async () => {
      const { active_run_id, last_run } = await shown();
      return active_run_id === null && last_run.status === 'failed';
    });
    const next_run_at = new Date(Date.now() + 3_600_000).toISOString();
    await deps.db.update(connections).set({ next_run_at }).where(eq(connections.id, connection.id));
    expect((await reset(connection)).status).toBe(200);
    await until(async () => (await idsOf('waiting')).length === 1);
    await update(connection, { status: 'paused' });
    await until(async () => (await shown()).active_run_id === null);
    await call('DELETE', `/connections/${connection.id}`);
  });

  test('400: continuous_unsupported without a log, or for a destination without common commits', async () => {
    await source`create table quiet (id int primary key)`;
    const create = async (source_id: string, destination_id: string) =>
      (await call('POST', '/connections', { name: uniqueName('quiet'), source_id, destination_id, ...continuous }))
        .body;
    const http = await make.connector('destination', 'http', { url: 'http://127.0.0.1:1/x', check_method: 'none' });
    const plain = await make.connector('source', 'postgres', postgresParameters(from.url));
    await until(async () => (await show('source', plain.id)).catalog_status === 'ready');
    const warehouse = await make.connector('destination', 'postgres', postgresParameters(to.url));
    for (const refused of [await create(await logSource(), http.id), await create(plain.id, warehouse.id)]) {
      expect(refused).toMatchObject({ code: 'continuous_unsupported', field: 'schedule.type' });
    }
  });
});

describe('a custom run of a CDC stream', () => {
  test('reads the table as it is and leaves the slot alone; it cannot be limited to days', async () => {
    await source`create table customs (id int primary key, at timestamptz not null default now())`;
    await source`insert into customs values (1), (2)`;
    const connection = await follow('customs', { stream: { cursor_field: ['at'] } });
    expect((await run(connection)).status).toBe('succeeded');
    const stream = await streamOf(connection);
    const before =
      await source`select confirmed_flush_lsn from pg_replication_slots where slot_name = ${slotName(stream)}`;
    await source`insert into customs values (3)`;
    for (const mode of ['backfill', 'incremental', 'full_refresh']) {
      const windowed = await call('POST', `/connections/${connection.id}/run`, { mode, start_date: '2026-01-01' });
      const code = mode === 'full_refresh' ? 'invalid_window' : 'window_unsupported';
      expect([mode, windowed.status, windowed.body.code]).toEqual([mode, 400, code]);
      const custom = await run(connection, { mode, split: { unit: 'none' } });
      expect([mode, custom.status, custom.stream.error, custom.stream.rows_read]).toEqual([mode, 'succeeded', null, 3]);
    }
    const after =
      await source`select confirmed_flush_lsn from pg_replication_slots where slot_name = ${slotName(stream)}`;
    expect([...after]).toEqual([...before]);
    expect((await streamOf(connection)).cursor).toEqual(stream.cursor);
    await source`delete from customs where id = 1`;
    expect((await run(connection)).stream).toMatchObject({ status: 'succeeded', rows_deleted: 1 });
    expect(await idsOf('customs')).toEqual([2, 3]);
  });
});

describe('when the log cannot be continued', () => {
  test('a cursor reset to null reads the table again and removes rows that are gone', async () => {
    await source`create table resets (id int primary key)`;
    await source`insert into resets values (1), (2)`;
    const connection = await follow('resets');
    await run(connection);
    await target`insert into resets (id, _cdc_operation) values (77, 'read')`;
    await source`delete from resets where id = 1`;
    await source`insert into resets values (3)`;
    expect((await reset(connection)).status).toBe(200);
    expect((await run(connection)).stream).toMatchObject({ status: 'succeeded', cursor_before: null, rows_read: 2 });
    expect(await idsOf('resets')).toEqual([2, 3]);
    await source`insert into resets values (4)`;
    expect((await run(connection)).stream).toMatchObject({ status: 'succeeded', rows_read: 1 });
    expect(await idsOf('resets')).toEqual([2, 3, 4]);
  });

  test('a manually dropped slot is reported, and a reset recovers from it', async () => {
    await source`create table dropped (id int primary key)`;
    const connection = await follow('dropped');
    await run(connection);
    await source`select pg_drop_replication_slot(${slotName(await streamOf(connection))})`;
    await source`insert into dropped values (1)`;
    const failed = await run(connection);
    expect(failed.status).toBe('failed');
    expect(failed.stream.error).toMatchObject({ code: 'replication_slot_missing', type: 'config_error' });
    expect((failed.stream.error as Json).message).toContain("Reset the stream's cursor");
    expect(failed.stream.attempt).toBe(1);
    await reset(connection);
    expect((await run(connection)).status).toBe('succeeded');
    expect(await idsOf('dropped')).toEqual([1]);
  });

  test('a slot whose log the server discarded is reported; a reset leaves no missing or extra row', async () => {
    const settings = ['wal_level=logical', 'max_slot_wal_keep_size=16MB', 'max_wal_size=32MB', 'min_wal_size=32MB'];
    const cluster = await startCluster(settings);
    clusters.push(cluster);
    const server = postgres(cluster.url('src'), { max: 1, onnotice: () => {} });
    await server`create table overrun (id int primary key)`;
    await server`insert into overrun values (1), (2)`;
    const connection = await follow('overrun', { source_id: await logSource({ url: cluster.url('src') }) });
    await run(connection);
    const stream = await streamOf(connection);
    await server`delete from overrun where id = 1`;
    await server`insert into overrun values (3)`;
    await server`create table filler as select repeat(md5(n::text), 20) as text from generate_series(1, 100000) n`;
    await server`checkpoint`;
    const [slot] = await server`select wal_status from pg_replication_slots where slot_name = ${slotName(stream)}`;
    expect(slot?.wal_status).toBe('lost');
    const failed = await run(connection);
    expect(failed.stream.error).toMatchObject({ code: 'replication_slot_lost', type: 'config_error' });
    expect((failed.stream.error as Json).message).toContain('max_slot_wal_keep_size');
    expect((failed.stream.error as Json).message).toContain("Reset the stream's cursor");
    expect(await idsOf('overrun')).toEqual([1, 2]);
    // A full refresh does not repair the slot.
    expect((await run(connection, { mode: 'full_refresh' })).status).toBe('succeeded');
    expect((await run(connection)).stream.error).toMatchObject({ code: 'replication_slot_lost' });
    await reset(connection);
    expect((await run(connection)).status).toBe('succeeded');
    expect(await idsOf('overrun')).toEqual([2, 3]);
    await server`insert into overrun values (4)`;
    expect((await run(connection)).stream).toMatchObject({ status: 'succeeded', rows_read: 1 });
    await call('DELETE', `/connections/${connection.id}`);
    await until(() => isReleased(stream));
    expect(await kept(stream, server)).toEqual(GONE);
    await server.end();
  });
});

describe('slot and publication', () => {
  test('are removed when the stream is deselected, and with the connection', async () => {
    await source`create table leaving (id int primary key)`;
    const source_id = await logSource();
    const [one, two] = [
      await follow('leaving', { source_id }),
      await follow('leaving', { source_id, stream: { destination_table: 'leaving_too' } }),
    ];
    const streams: Json[] = [];
    for (const connection of [one, two]) {
      expect((await run(connection)).status).toBe('succeeded');
      const stream = await streamOf(connection);
      streams.push(stream);
      expect(await kept(stream)).toEqual(THERE);
    }
    expect((await update(one, { streams: [{ name: 'leaving', selected: false }] })).status).toBe(200);
    await until(() => isReleased(streams[0]));
    expect([await kept(streams[0]), await kept(streams[1])]).toEqual([GONE, THERE]);
    expect((await call('DELETE', `/connections/${two.id}`)).status).toBe(204);
    await until(() => isReleased(streams[1]));
    expect(await kept(streams[1])).toEqual(GONE);
  });
});

describe.skipIf(sshdMissing !== null)('a log behind an SSH tunnel', () => {
  test('is followed and released through the tunnel', async () => {
    await source`create table tunnelled (id int primary key, note text)`;
    await source`insert into tunnelled select g, md5(g::text) from generate_series(1, 5000) g`;
    const { encrypted_private_key, public_key } = (await call('POST', '/account_connectors/generate_ssh_key')).body;
    sshd.authorize(public_key);
    const ssh_tunnel = { host: sshd.host, port: sshd.port, username: sshd.username, encrypted_private_key };
    const connection = await follow('tunnelled', { source_id: await logSource({ ssh_tunnel }) });
    expect((await run(connection)).stream).toMatchObject({ status: 'succeeded', rows_loaded: 5000 });
    await source`update tunnelled set note = 'changed' where id <= 3000`;
    await source`delete from tunnelled where id > 4000`;
    const second = await run(connection);
    expect(second.stream).toMatchObject({ status: 'succeeded', rows_updated: 3000, rows_deleted: 1000, warnings: [] });
    const [sum] =
      await target`select count(*)::int as n, count(*) filter (where note = 'changed')::int as changed from tunnelled`;
    expect({ ...sum }).toEqual({ n: 4000, changed: 3000 });
    await until(() => sshd.logins() === 0);
    const stream = await streamOf(connection);
    // The source is unreachable without its tunnel, so removing the slot proves that the tunnel is used.
    await sshd.kill();
    await call('DELETE', `/connections/${connection.id}`);
    const failures = async () =>
      (await deps.db.select().from(changeReaders).where(eq(changeReaders.stream_id, stream.id)))[0]?.failures ?? 0;
    await until(async () => (await failures()) > 0);
    expect(await kept(stream)).toEqual(THERE);
    await sshd.restart('same');
    await until(() => isReleased(stream));
    expect(await kept(stream)).toEqual(GONE);
  });
});
