import { afterAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const service = await testDeps();
const target = await createPlainDatabase();
const rows = postgres(target.url, { max: 2, onnotice: () => {} });
afterAll(async () => {
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
});
