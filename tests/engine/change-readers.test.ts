import { afterAll, describe, expect, test } from 'bun:test';
import { and, eq, sql } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, changeReaders, connectionStreams, connections, events } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { checkCdcConsumers } from '../../server/transfer/replication/watch-cdc-consumers.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { logServer } from '../support/postgres.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps();
const worker = await startWorker(service.deps);
const [from, to] = [await createPlainDatabase(await logServer()), await createPlainDatabase()];
const source = postgres(from.url, { max: 2, onnotice: () => {} });
const destination = postgres(to.url, { max: 2, onnotice: () => {} });

afterAll(async () => {
  await worker.stop();
  const slots =
    await source`select slot_name, active_pid from pg_replication_slots where database = current_database()`;
  for (const { slot_name } of slots) await source`select pg_drop_replication_slot(${slot_name})`;
  await Promise.all([source.end(), destination.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

async function follow(table: string, choice: Partial<Parameters<typeof makePipeline>[1]> = {}): Promise<Pipeline> {
  const pipeline = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: { ...postgresParameters(from.url), replication: 'logical', slot_lag_warning_mb: 4 },
    },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    only: [table],
    ...choice,
    stream: {
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      primary_key: [['id']],
      ...choice.stream,
    },
  });

  return pipeline;
}

async function run(pipeline: Pipeline) {
  const id = await pipeline.start();
  const ended = await runEnded(service, id);
  const [stream] = await getStreamRuns(service, id);
  return { ...ended, stream: stream! };
}

const streamOf = async (pipeline: Pipeline) => {
  const [row] = await service.deps.db
    .select()
    .from(connectionStreams)
    .where(eq(connectionStreams.connection_id, pipeline.connection.id));
  return row!;
};
const slotOf = async (pipeline: Pipeline) => {
  const name = `pipeline_${pipeline.connection.id.replaceAll('-', '')}`;
  const [slot] =
    await source`select confirmed_flush_lsn::text as confirmed from pg_replication_slots where slot_name = ${name}`;
  const [publication] = await source`select 1 from pg_publication where pubname = ${name}`;
  return { slot, publication };
};
const readerRow = async (pipeline: Pipeline) => {
  const [row] = await service.deps.db
    .select()
    .from(changeReaders)
    .where(eq(changeReaders.stream_id, (await streamOf(pipeline)).id));
  return row;
};
const eventsOf = (pipeline: Pipeline, event: string) =>
  service.deps.db
    .select()
    .from(events)
    .where(and(eq(events.connection_id, pipeline.connection.id), eq(events.event, event)));
const lookNow = async (pipeline: Pipeline) => {
  const row = await readerRow(pipeline);
  if (!row) return;
  await service.deps.db
    .update(changeReaders)
    .set({ next_look_at: sql`now()` })
    .where(eq(changeReaders.stream_id, row.stream_id));
  await checkCdcConsumers(service.deps);
};

describe('a CDC stream', () => {
  test('resumes from run to run; the slot confirms committed changes only', async () => {
    await source.unsafe(
      `create table followed (id int primary key, name text); insert into followed values (1, 'a'), (2, 'b')`,
    );
    const pipeline = await follow('followed');
    const first = await run(pipeline);
    expect(first.status).toBe('succeeded');
    expect(first.stream).toMatchObject({ rows_loaded: 2, cursor_before: null });
    await source.unsafe(
      `delete from followed where id = 1; update followed set name = 'c' where id = 2; insert into followed values (3, 'd')`,
    );
    const second = await run(pipeline);
    expect(second.stream).toMatchObject({ rows_deleted: 1, rows_updated: 1, rows_loaded: 2 });
    expect(second.stream.cursor_before).toBe(first.stream.cursor_after);
    expect([...(await destination`select id, name from followed order by id`)]).toEqual([
      { id: 2, name: 'c' },
      { id: 3, name: 'd' },
    ]);
    const { slot } = await slotOf(pipeline);
    const [same] =
      await source`select ${slot!.confirmed}::text::pg_lsn = ${second.stream.cursor_after}::text::pg_lsn as same`;
    expect(same!.same).toBe(true);
    expect(second.stream.log_lag_bytes).toBeGreaterThanOrEqual(0);
  });

  test('confirms nothing that the destination did not commit', async () => {
    await source.unsafe(`create table uncommitted (id int primary key); insert into uncommitted values (1)`);
    const pipeline = await follow('uncommitted');
    await run(pipeline);
    const before = await slotOf(pipeline);
    await destination`alter table uncommitted add constraint small check (id < 100)`;
    await source`insert into uncommitted values (100)`;
    expect((await run(pipeline)).status).toBe('failed');
    expect(await slotOf(pipeline)).toEqual(before);
    await destination`alter table uncommitted drop constraint small`;
    expect((await run(pipeline)).status).toBe('succeeded');
    expect([...(await destination`select id from uncommitted order by id`)]).toEqual([{ id: 1 }, { id: 100 }]);
  });

  test('applies masks and filters to changes: a row that no longer matches is deleted', async () => {
    await source.unsafe(`create table filtered (id int primary key, name text, region text);
      insert into filtered values (1, 'a', 'eu'), (2, 'b', 'us'), (3, 'c', 'eu')`);
    const pipeline = await follow('filtered', {
      stream: {
        filters: [{ field: 'region', operator: 'eq', value: 'eu' }],
        fields: [
          { path: ['name'], selected: true, destination_name: null, destination_type: null, masking: 'hash_sha256' },
        ],
      },
    });
    await run(pipeline);
    await source.unsafe(`update filtered set region = 'us' where id = 1; update filtered set region = 'eu' where id = 2;
      insert into filtered values (4, 'd', 'us'); update filtered set name = 'changed' where id = 3`);
    expect((await run(pipeline)).status).toBe('succeeded');
    const sha = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex');
    expect([...(await destination`select id, name from filtered order by id`)]).toEqual([
      { id: 2, name: sha('b') },
      { id: 3, name: sha('changed') },
    ]);
  });

  test('keeps rows that a filter excludes out of a history', async () => {
    await source.unsafe(
      `create table told (id int primary key, name text, region text); insert into told values (1, 'a', 'eu')`,
    );
    const pipeline = await follow('told', {
      stream: { destination_sync_mode: 'append', filters: [{ field: 'region', operator: 'eq', value: 'eu' }] },
    });
    expect((await run(pipeline)).stream.rows_loaded).toBe(1);
    await source.unsafe(
      `update told set region = 'us', name = 'secret' where id = 1; insert into told values (2, 'b', 'eu'); truncate told`,
    );
    await run(pipeline);
    const rows = await destination`select id, name, _cdc_operation as what from told`;
    expect(rows.map(({ id, name, what }) => [id, name, what])).toEqual([
      [1, 'a', 'read'],
      [2, 'b', 'insert'],
      [null, null, 'truncate'],
    ]);
  });

  test('reads the table without the log on a full refresh and keeps nothing at the source', async () => {
    await source.unsafe(`create table plainly (id int primary key, name text); insert into plainly values (1, 'a')`);
    const pipeline = await follow('plainly', {
      stream: { sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' },
    });
    expect((await run(pipeline)).stream.rows_loaded).toBe(1);
    expect(await slotOf(pipeline)).toEqual({ slot: undefined, publication: undefined });
    expect(await readerRow(pipeline)).toBeUndefined();
  });

  test('is refused for a destination that cannot apply deletes', async () => {
    await source.unsafe('create table refused (id int primary key)');
    const pipeline = await follow('refused', { destination: { name: 'sample', parameters: {} } });
    expect((await run(pipeline)).stream.error).toMatchObject({ code: 'changes_unsupported', type: 'config_error' });
  });
});

describe('the slot at the source', () => {
  test('is dropped with the connection and when the stream is deselected; selecting it again starts over', async () => {
    await source.unsafe(`create table released (id int primary key); insert into released values (1), (2)`);
    const pipeline = await follow('released');
    await run(pipeline);
    expect((await slotOf(pipeline)).slot).toBeDefined();
    const { db } = service.deps;
    const select = (selected: boolean) =>
      db.update(connectionStreams).set({ selected }).where(eq(connectionStreams.connection_id, pipeline.connection.id));
    await select(false);
    await until(async () => (await readerRow(pipeline)) === undefined);
    expect(await slotOf(pipeline)).toEqual({ slot: undefined, publication: undefined });
    expect((await streamOf(pipeline)).state).toBeNull();
    await source.unsafe('delete from released where id = 1; insert into released values (3)');
    await select(true);
    expect((await run(pipeline)).stream).toMatchObject({ status: 'succeeded', rows_deleted: 1 });
    expect((await destination`select id from released order by id`).map(({ id }) => id)).toEqual([2, 3]);
    await db
      .update(connections)
      .set({ deleted_at: new Date().toISOString() })
      .where(eq(connections.id, pipeline.connection.id));
    await until(async () => (await readerRow(pipeline)) === undefined);
    expect(await slotOf(pipeline)).toEqual({ slot: undefined, publication: undefined });
  });

  test('is dropped on a later try after a failure, which is reported once', async () => {
    await source.unsafe('create table kept (id int primary key)');
    const pipeline = await follow('kept');
    await run(pipeline);
    const { db } = service.deps;
    const aim = (port: number) =>
      db
        .update(accountConnectors)
        .set({ parameters: { ...pipeline.source.parameters, port } })
        .where(eq(accountConnectors.id, pipeline.source.id));
    await aim(1);
    await db
      .update(connections)
      .set({ deleted_at: new Date().toISOString() })
      .where(eq(connections.id, pipeline.connection.id));
    await until(async () => ((await readerRow(pipeline))?.failures ?? 0) >= 1);
    while (((await readerRow(pipeline))?.failures ?? 0) < 4) await lookNow(pipeline);
    expect((await readerRow(pipeline))?.error).toContain('Cannot reach');
    const [emitted, ...more] = await eventsOf(pipeline, 'change_log_not_released');
    expect(more).toEqual([]);
    expect(emitted?.payload).toMatchObject({
      stream_name: 'kept',
      error_message: expect.stringContaining('Cannot reach'),
    });
    await aim(Number(new URL(from.url).port));
    await lookNow(pipeline);
    expect(await readerRow(pipeline)).toBeUndefined();
    expect((await slotOf(pipeline)).slot).toBeUndefined();
  });

  test('is reported once when it grows beyond the limit unread, until it is read again', async () => {
    await source.unsafe('create table lagging (id int primary key, filler text)');
    const pipeline = await follow('lagging');
    await run(pipeline);
    await source.unsafe(`create table noise as select n, repeat(md5(n::text), 10) from generate_series(1, 20000) n`);
    await lookNow(pipeline);
    await lookNow(pipeline);
    // Although the commit did not wait for the server to write all of it.
    expect((await readerRow(pipeline))?.lag_bytes).toBeGreaterThan(6_000_000);
    const emitted = await eventsOf(pipeline, 'change_log_lagging');
    expect(emitted).toHaveLength(1);
    expect(emitted[0]?.payload).toMatchObject({ stream_name: 'lagging', lag_bytes: expect.any(Number) });
    // The server lets go of the log with the read after the one that confirmed it.
    await until(async () => (await run(pipeline)).stream.warnings.length === 0);
    expect((await readerRow(pipeline))?.is_lagging).toBe(false);
  });

  test('counts the log that an open transaction makes the source keep, although later commits are confirmed', async () => {
    await source.unsafe('create table held_back (id int primary key)');
    const pipeline = await follow('held_back');
    await run(pipeline);
    const writer = await source.reserve();
    try {
      await writer`begin`;
      await writer`insert into held_back values (1)`;
      await source.unsafe(`create table held as select n, repeat(md5(n::text), 10) from generate_series(1, 20000) n`);
      await source`insert into held_back values (2)`;
      const { stream } = await run(pipeline);
      expect(stream.rows_loaded).toBe(1);
      expect((await readerRow(pipeline))?.lag_bytes).toBeGreaterThan(1_000_000);
      expect(stream.warnings).toMatchObject([{ code: 'change_log_lagging' }]);
    } finally {
      await writer`rollback`;
      writer.release();
    }
  });

  test('is dropped beyond the limit with pause_and_drop_slot, and the next run asks for a reset', async () => {
    await source.unsafe('create table guarded (id int primary key, filler text)');
    const guard = { slot_lag_policy: 'pause_and_drop_slot', slot_lag_limit_mb: 2, slot_lag_warning_mb: 1 };
    const parameters = { ...postgresParameters(from.url), replication: 'logical', ...guard };
    const pipeline = await follow('guarded', { source: { name: 'postgres', parameters } });
    await run(pipeline);
    await lookNow(pipeline);
    expect((await slotOf(pipeline)).slot).toBeDefined();
    await source.unsafe(`create table more as select n, repeat(md5(n::text), 10) from generate_series(1, 20000) n`);
    await lookNow(pipeline);
    const shown = async () =>
      (await service.deps.db.select().from(connections).where(eq(connections.id, pipeline.connection.id)))[0]!;
    // The worker's own look may have taken it, and still be on its way.
    await until(async () => (await slotOf(pipeline)).slot === undefined && (await shown()).status === 'paused');
    const connection = await shown();
    expect(connection).toMatchObject({ status: 'paused', status_reason: 'change_log_limit', next_run_at: null });
    const [paused] = await eventsOf(pipeline, 'connection_paused');
    expect(paused?.summary).toContain('reset the cursors');
    const next = await run(pipeline);
    expect(next.stream.error).toMatchObject({ code: 'replication_slot_missing' });
  });

  test('is dropped beyond the limit although the run that reads it waits for its destination', async () => {
    await source.unsafe('create table waited_for (id int primary key, filler text)');
    const guard = { slot_lag_policy: 'pause_and_drop_slot', slot_lag_limit_mb: 2, slot_lag_warning_mb: 1 };
    const parameters = { ...postgresParameters(from.url), replication: 'logical', ...guard };
    const pipeline = await follow('waited_for', { source: { name: 'postgres', parameters } });
    await run(pipeline);
    const lock = await destination.reserve();
    try {
      await lock.unsafe('begin; lock table waited_for in access exclusive mode');
      await source.unsafe(`insert into waited_for values (1, 'a')`);
      const id = await pipeline.start();
      await until(async () => (await destination`select 1 from pg_locks where not granted`).length > 0);
      await source.unsafe(`create table beside as select n, repeat(md5(n::text), 10) from generate_series(1, 20000) n`);
      await lookNow(pipeline);
      expect((await runEnded(service, id)).status).toBe('stopped');
    } finally {
      await lock`rollback`;
      lock.release();
    }
    await until(async () => (await slotOf(pipeline)).slot === undefined);
    const [connection] = await service.deps.db
      .select()
      .from(connections)
      .where(eq(connections.id, pipeline.connection.id));
    expect(connection).toMatchObject({ status: 'paused', status_reason: 'change_log_limit' });
  });
});
