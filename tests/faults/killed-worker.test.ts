import { afterAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { type Limits, startTcpProxy } from '../support/tcp-proxy.ts';
import { spread } from '../support/thorough.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const service = await testDeps();
const target = await createPlainDatabase();
const rows = postgres(target.url, { max: 2, onnotice: () => {} });
afterAll(async () => {
  proxy.stop();
  await rows.end();
  await target.drop();
});

const { hostname, port, username, password, pathname } = new URL(target.url);
const database = {
  host: hostname,
  port: Number(port),
  username: decodeURIComponent(username),
  password: decodeURIComponent(password),
  database: pathname.slice(1),
};
/** The line to the destination. */
const line: Limits = {};
const proxy = await startTcpProxy(database, line);

describe('a worker killed during a run', () => {
  test.each(['append', 'append_dedup'] as const)(
    'neither loses nor duplicates a row (incremental, %s): another worker resumes from the checkpoint within 30 s',
    async (destination_sync_mode) => {
      const created = await makePipeline(service, {
        source: {
          name: 'sample',
          parameters: { rows: 4000, value_bytes: 3_000, batch_rows: 20, batch_delay_ms: 20 },
        },
        destination: { name: 'postgres', parameters: database },
        stream: { sync_mode: 'incremental', destination_sync_mode },
        connection: { table_prefix: `${destination_sync_mode}_` },
      });
      const first = spawnWorker(service, { CHECKPOINT_KB: '500' });
      const id = await created.start();
      const stream = async () => (await getStreamRuns(service, id))[0];
      await until(async () => ((await stream())?.rows_loaded ?? 0) > 0);
      const committed = (await stream())?.rows_loaded ?? 0;
      first.kill('SIGKILL');
      await first.exited;
      const killed = performance.now();
      expect((await getRun(service, id)).status).toBe('running');
      const second = spawnWorker(service, {});
      await until(async () => (await stream())?.attempt === 2);
      expect(performance.now() - killed).toBeLessThan(30_000);
      expect((await runEnded(service, id)).status).toBe('succeeded');
      second.kill('SIGKILL');
      expect(committed).toBeGreaterThan(0);
      expect(committed).toBeLessThan(4000);
      expect(await stream()).toMatchObject({ attempt: 2, rows_loaded: 4000 });
      const [found] = await rows.unsafe(
        `select count(*)::int n, count(distinct id)::int ids from ${destination_sync_mode}_stream_1`,
      );
      expect({ ...found }).toEqual({ n: 4000, ids: 4000 });
    },
    120_000,
  );

  test('leaves the old table in place until the next attempt has loaded the whole new one (full refresh)', async () => {
    const created = await makePipeline(service, {
      source: { name: 'sample', parameters: { rows: 200, batch_rows: 2, batch_delay_ms: 60 } },
      destination: { name: 'postgres', parameters: database },
      stream: { destination_sync_mode: 'overwrite', primary_key: [['id']] },
      connection: { table_prefix: 'refresh_' },
    });
    await rows.unsafe(`create table refresh_stream_1 (id bigint primary key, note text)`);
    await rows.unsafe(`insert into refresh_stream_1 values (-1, 'of the last run')`);
    const first = spawnWorker(service);
    const id = await created.start();
    await until(async () => ((await getStreamRuns(service, id))[0]?.rows_read ?? 0) > 0);
    first.kill('SIGKILL');
    await first.exited;
    expect([...(await rows`select id::int from refresh_stream_1`)]).toEqual([{ id: -1 }]);
    const second = spawnWorker(service);
    expect((await runEnded(service, id)).status).toBe('succeeded');
    second.kill('SIGKILL');
    const [found] = await rows`select count(*)::int n, min(id)::int low from refresh_stream_1`;
    expect({ ...found }).toEqual({ n: 200, low: 1 });
    const leftovers =
      await rows`select relname from pg_class where relkind = 'r' and relname like 'refresh%' order by 1`;
    expect(leftovers.map((one) => one.relname)).toEqual(['refresh_stream_1']);
  });

  const copies = async () =>
    (
      await rows`select 1 from pg_stat_progress_copy p join pg_class c on c.oid = p.relid
        where p.datname = current_database() and c.relname like 'parts%\\_\\_new%'`
    ).length;
  const noted = () => rows`select 1 from _pipeline_state where pending_table is not null`;
  const held = () =>
    rows`select 1 from pg_locks l join pg_database d on d.oid = l.database
      where d.datname = current_database() and not l.granted and l.mode = 'AccessExclusiveLock'`;

  /** Some 15 MB. */
  const ROWS = 5000;
  const steps = [
    ['while several sessions copy into a missing table', null, 'append', 'missing'],
    ['while several sessions copy beside a table', null, 'append', 'kept'],
    ['while several sessions copy', null, 'overwrite', 'replaced'],
    ['once the new table is visible', async () => (await noted()).length > 0, 'overwrite', 'replaced'],
    [
      'after their commits, before the swap',
      async () => (await noted()).length > 0 && (await held()).length > 0,
      'overwrite',
      'replaced',
    ],
  ] as const;
  test.each(spread(steps, 4))(
    'leaves no row of several sessions that fill a table, and no table beside it: %s',
    async (step, reached, destination_sync_mode, old) => {
      const table_prefix = `parts_${steps.findIndex(([name]) => name === step)}_`;
      const name = `${table_prefix}stream_1`;
      const parameters = { ...database, host: '127.0.0.1', port: proxy.port, ssl_mode: 'disable', parallel_writes: 3 };
      const created = await makePipeline(service, {
        source: { name: 'sample', parameters: { rows: ROWS, value_bytes: 3000 } },
        destination: { name: 'postgres', parameters },
        stream: { destination_sync_mode, primary_key: [['id']] },
        connection: { table_prefix },
      });
      const isMissing = old === 'missing';
      const before = isMissing ? name.replace('stream', 'before') : name;
      await rows.unsafe(`create table ${before} (id bigint primary key); insert into ${before} values (-1)`);
      // So slow that other sessions join even where the worker waits for a processor.
      line.upload_bytes_per_second = 2_000_000;
      const first = spawnWorker(service);
      const id = await created.start();
      await until(async () => (await copies()) > 1);
      // A reader of the old table delays the swap.
      await rows.begin(async (reader) => {
        await reader.unsafe(`select from ${before}`);
        if (reached) {
          delete line.upload_bytes_per_second;
          await until(reached);
        }
        first.kill('SIGKILL');
        await first.exited;
        expect([...(await reader.unsafe(`select id::int from ${before}`))]).toEqual([{ id: -1 }] as never);
        const [seen] = await reader`select to_regclass(${name}) is null as missing`;
        expect(seen!.missing).toBe(isMissing);
      });
      delete line.upload_bytes_per_second;
      const second = spawnWorker(service);
      expect((await runEnded(service, id)).status).toBe('succeeded');
      second.kill('SIGKILL');
      expect((await getStreamRuns(service, id))[0]).toMatchObject({
        attempt: 2,
        rows_read: ROWS,
        rows_loaded: ROWS,
      });
      const [found] = await rows.unsafe(
        `select count(*)::int n, count(distinct id)::int ids, min(id)::int low from ${name}`,
      );
      const all = old === 'kept' ? ROWS + 1 : ROWS;
      expect({ ...found }).toEqual({ n: all, ids: all, low: old === 'kept' ? -1 : 1 });
      const tables = await rows`select relname from pg_class where relkind = 'r' and relname like 'parts%new%'`;
      expect([tables.length, (await noted()).length]).toEqual([0, 0]);
    },
    120_000,
  );
});
