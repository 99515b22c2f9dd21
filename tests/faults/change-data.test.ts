import { afterAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const service = await testDeps();
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const destination = postgres(to.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  const slots =
    await source`select slot_name, active_pid from pg_replication_slots where database = current_database()`;
  for (const { slot_name, active_pid } of slots) {
    if (active_pid) await source`select pg_terminate_backend(${active_pid})`;
    await until(async () => {
      const [slot] = await source`select active from pg_replication_slots where slot_name = ${slot_name}`;
      return !slot?.active;
    });
    await source`select pg_drop_replication_slot(${slot_name})`;
  }
  await Promise.all([source.end(), destination.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

test('a worker killed while it applies changes neither loses nor duplicates one, in a merge and in a history', async () => {
  await source.unsafe(`create table moved (id int primary key, n int, filler text);
    insert into moved select g, 0, repeat('x', 1000) from generate_series(1, 20000) g`);
  const make = (destination_sync_mode: 'append' | 'append_dedup') =>
    makePipeline(service, {
      source: { name: 'postgres', parameters: { ...postgresParameters(from.url), replication: 'logical' } },
      destination: { name: 'postgres', parameters: postgresParameters(to.url) },
      stream: { sync_mode: 'incremental', destination_sync_mode, primary_key: [['id']] },
      connection: { table_prefix: `${destination_sync_mode}_` },
      only: ['moved'],
    });
  const pipelines = [await make('append_dedup'), await make('append')];
  let worker = spawnWorker(service);
  for (const pipeline of pipelines) expect((await runEnded(service, await pipeline.start())).status).toBe('succeeded');
  // Separate transactions, so that there are positions to resume from in between.
  for (let part = 0; part < 60; part += 1) {
    await source`update moved set n = n + 1, filler = filler || '.' where id % 20 = ${part % 20}`;
    await source`delete from moved where id = ${part + 1}`;
  }
  for (const pipeline of pipelines) {
    const id = await pipeline.start();
    const stream = async () => (await getStreamRuns(service, id))[0]!;
    await until(async () => (await stream()).rows_read > 0);
    worker.kill('SIGKILL');
    await worker.exited;
    worker = spawnWorker(service);
    expect((await runEnded(service, id, 90_000)).status).toBe('succeeded');
    expect((await stream()).attempt).toBe(2);
  }
  worker.kill('SIGKILL');
  const sum = (table: string) =>
    `select count(*)::int as n, md5(string_agg(id || ' ' || n || ' ' || filler, ',' order by id)) as sum from ${table}`;
  const [[ours], [theirs]] = await Promise.all([
    destination.unsafe(sum('append_dedup_moved')),
    source.unsafe(sum('moved')),
  ]);
  expect({ ...ours }).toEqual({ ...theirs });
  const [history] = await destination`select count(*) filter (where _cdc_operation = 'read')::int as read,
    count(*) filter (where _cdc_operation = 'update')::int as updated,
    count(*) filter (where _cdc_operation = 'delete')::int as deleted,
    count(distinct (_cdc_lsn, id))::int as changes from append_moved`;
  expect(history).toMatchObject({ read: 20_000, deleted: 60 });
  expect(history!.changes).toBe(20_000 + history!.updated + 60);
});
