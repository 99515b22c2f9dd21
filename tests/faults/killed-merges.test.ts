import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { spread } from '../support/thorough.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const ROWS = 3000;
/** Parts are a quarter of it: some 125 rows. */
const CHECKPOINT_KB = '1000';

const service = await testDeps();
const from = await createPlainDatabase();
const to = await createPlainDatabase();
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 2, onnotice: () => {} });
afterAll(async () => {
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

// Every other row is there already.
await source.unsafe(`create table changes (id int primary key, at int not null, payload text not null);
  insert into changes select i, i, i || repeat('x', 2000) from generate_series(1, ${ROWS}) i`);
beforeEach(async () => {
  await target.unsafe(`drop table if exists changes, _pipeline_state;
    create table changes (id int primary key, at int not null, payload text not null);
    insert into changes select i, 0, 'old' from generate_series(2, ${ROWS}, 2) i; analyze changes`);
});

const pipeline = () =>
  makePipeline(service, {
    source: { name: 'postgres', parameters: postgresParameters(from.url) },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    only: ['changes'],
    stream: {
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      cursor_field: ['at'],
      primary_key: [['id']],
    },
  });
const streamRun = async (id: string) => (await getStreamRuns(service, id))[0];
const sessionsWith = async (condition: string) =>
  (await target.unsafe(`select 1 from pg_stat_activity where datname = current_database() and ${condition}`)).length;
const mergedAhead = async () => (await sessionsWith("query like '%pg_blocking_pids%' and pid <> pg_backend_pid()")) > 0;
const waits = async () => (await sessionsWith("wait_event_type = 'Lock'")) > 0;

describe('two merges side by side', () => {
  const hasCommitted = async (id: string) => ((await streamRun(id))?.rows_loaded ?? 0) > 0;
  const steps = [
    ['the first one waits, the second one is done', 2, mergedAhead],
    ['some are committed', ROWS, hasCommitted],
    [
      'the second one waits, the first one is committed',
      500,
      async (id: string) => (await hasCommitted(id)) && waits(),
    ],
  ] as const;
  test.each(spread(steps, 2))(
    'bring every row once where the worker is killed while %s',
    async (_, locked, reached) => {
      const { start } = await pipeline();
      const first = spawnWorker(service, { CHECKPOINT_KB });
      const id = await target.begin(async (holder) => {
        // So the run cannot end before its worker does.
        await holder.unsafe(`select from changes where id = ${locked} for update`);
        const run = await start();
        await until(() => reached(run));
        first.kill('SIGKILL');
        await first.exited;
        return run;
      });
      expect((await streamRun(id))?.rows_loaded).toBeLessThan(ROWS);
      const second = spawnWorker(service, { CHECKPOINT_KB });
      expect((await runEnded(service, id)).status).toBe('succeeded');
      second.kill('SIGKILL');
      await second.exited;
      expect(await streamRun(id)).toMatchObject({ attempt: 2, rows_loaded: ROWS, rows_updated: ROWS / 2 });
      const [found] = await target.unsafe(
        `select count(*)::int n, count(distinct id)::int ids, count(*) filter (where payload like id || 'x%')::int new,
         (select state ->> 'cursor' from _pipeline_state) as cursor from changes`,
      );
      expect({ ...found }).toEqual({ n: ROWS, ids: ROWS, new: ROWS, cursor: String(ROWS) });
    },
    120_000,
  );

  test('end with a stop, although the first one waits', async () => {
    const { start, stop } = await pipeline();
    const worker = spawnWorker(service, { CHECKPOINT_KB });
    await target.begin(async (holder) => {
      await holder.unsafe('select from changes where id = 2 for update');
      const id = await start();
      await until(mergedAhead);
      await stop(id);
      expect((await runEnded(service, id)).status).toBe('stopped');
    });
    const [found] = await target`select count(*)::int n, max(at) as at from changes`;
    expect({ ...found }).toEqual({ n: ROWS / 2, at: 0 });
    worker.kill('SIGKILL');
    await worker.exited;
  }, 120_000);
});
