import { afterAll, describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import postgres from 'postgres';
import { connectionRuns, connectionStreams, events } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { LIVE_RUN } from '../../server/pipeline/run-states.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0 } });
const { db } = service.deps;
const { call } = testApi(service);
const target = await createPlainDatabase();
const sql = postgres(target.url, { max: 2, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await sql.end();
  await target.drop();
});

type Created = Awaited<ReturnType<typeof pipeline>>;
let counter = 0;

async function pipeline(
  source: { name: string; parameters?: Record<string, unknown> },
  rest: Partial<Parameters<typeof makePipeline>[1]> & { timezone?: string } = {},
) {
  counter += 1;
  const { timezone = 'UTC', ...more } = rest;
  const schedule = {
    type: 'manual' as const,
    interval_minutes: null,
    cron_expression: null,
    timezone,
    time_of_day: null,
  };
  const created = await makePipeline(service, {
    source: {
      name: source.name,
      parameters: { ...(source.name === 'sample' && { counter: `c${counter}` }), ...source.parameters },
    },
    destination: { name: 'postgres', parameters: postgresParameters(target.url) },
    connection: { table_prefix: `t${counter}_`, schedule, ...more.connection },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', ...more.stream },
    only: more.only,
  });
  return { ...created, prefix: `t${counter}_` };
}

/** Three months of rows, across the European clock change. */
const demo = { name: 'demo', parameters: { rows: 4000, start_date: '2025-02-01', end_date: '2025-05-01' } };
/** One row per minute, starting on 2025-01-01. */
const sample = (days: number, parameters: Record<string, unknown> = {}) => ({
  name: 'sample',
  parameters: { rows: days * 1440, batch_rows: 500, ...parameters },
});
const window = (start_date: string, end_date: string, unit = 'day') => ({
  start_date,
  end_date,
  split: { unit, size: 1 },
});

const launch = async ({ connection }: Created, body: object): Promise<string> => {
  const { status, body: id } = await call('POST', `/connections/${connection.id}/run`, body);
  if (status !== 200) throw new Error(JSON.stringify(id));
  return id;
};
const runsOf = ({ connection }: Created) =>
  db
    .select()
    .from(connectionRuns)
    .where(eq(connectionRuns.connection_id, connection.id))
    .orderBy(connectionRuns.number);
async function allEnded(created: Created) {
  const over = async () => (await runsOf(created)).every((run) => !LIVE_RUN.includes(run.status));
  await until(over);
  return runsOf(created);
}
const plain = async (created: Created) => runEnded(service, await created.start());
const count = async (table: string, where = 'true') =>
  (await sql.unsafe(`select count(*)::int n from "${table}" where ${where}`))[0]!.n as number;
const differences = async (a: string, b: string) =>
  (await sql.unsafe(`select count(*)::int n from ((${a} except all ${b}) union all (${b} except all ${a})) d`))[0]!
    .n as number;
const streamState = async ({ connection }: Created) =>
  (await db.select().from(connectionStreams).where(eq(connectionStreams.connection_id, connection.id)))[0]!;

describe('the chunks of a custom run', () => {
  test.each([
    ['UTC', 'day', '2025-03-27', '2025-04-02'],
    ['Europe/Berlin', 'day', '2025-03-27', '2025-04-02'],
    ['America/New_York', 'week', '2025-02-20', '2025-03-20'],
    ['Asia/Kathmandu', 'month', '2025-02-11', '2025-04-20'],
  ])(
    'together load exactly the rows of the window: %s by %s',
    async (timezone, unit, start, end) => {
      const all = await pipeline(demo, { only: ['events', 'orders'] });
      await plain(all);
      const created = await pipeline(demo, { only: ['events', 'orders'], timezone });
      await launch(created, { ...window(start, end, unit), max_parallel_runs: 3 });
      const runs = await allEnded(created);
      expect(new Set(runs.map((run) => run.status))).toEqual(new Set(['succeeded']));
      expect(runs.length).toBeGreaterThan(2);
      for (const [table, cursor] of [
        ['events', 'created_at'],
        ['orders', 'updated_at'],
      ] as const) {
        const local = `(${cursor} at time zone '${timezone}')::date`;
        const inside = `select * from "${all.prefix}${table}" where ${local} between '${start}' and '${end}'`;
        expect(await count(`${created.prefix}${table}`)).toBeGreaterThan(50);
        expect(await differences(inside, `select * from "${created.prefix}${table}"`)).toBe(0);
      }
      // No row was loaded by two chunks.
      const parts = (await Promise.all(runs.map((run) => getStreamRuns(service, run.id)))).flat();
      const loaded = parts.reduce((sum, part) => sum + part.rows_loaded, 0);
      expect(loaded).toBe((await count(`${created.prefix}events`)) + (await count(`${created.prefix}orders`)));
    },
    60_000,
  );

  test('of PostgreSQL support each kind of date cursor: timestamps by the days of the time zone, dates as they are', async () => {
    await sql.unsafe(`create schema src`);
    const kinds = { zoned: 'timestamptz', naive: 'timestamp', dated: 'date' };
    for (const [table, type] of Object.entries(kinds)) {
      await sql.unsafe(`create table src.${table} as select n id,
        ('2025-03-25 00:30'::timestamp + n * interval '37 minutes')::${type} updated_at from generate_series(1, 500) n`);
      await sql.unsafe(`alter table src.${table} add primary key (id)`);
    }
    const source = { name: 'postgres', parameters: { ...postgresParameters(target.url), schemas: ['src'] } };
    const created = await pipeline(source, { timezone: 'Europe/Berlin' });
    await launch(created, { ...window('2025-03-28', '2025-03-31'), max_parallel_runs: 2 });
    expect((await allEnded(created)).map((run) => run.status)).toEqual(Array(4).fill('succeeded'));
    const days = {
      zoned: `(updated_at at time zone 'Europe/Berlin')::date`,
      naive: `(updated_at at time zone 'UTC' at time zone 'Europe/Berlin')::date`,
      dated: 'updated_at',
    };
    for (const [table, own] of Object.entries(days)) {
      const inside = `select * from src.${table} where ${own} between '2025-03-28' and '2025-03-31'`;
      expect(await count(`${created.prefix}${table}`)).toBeGreaterThan(100);
      expect(await differences(inside, `select * from "${created.prefix}${table}"`)).toBe(0);
    }
  });

  test('change nothing when they run again, in every sync mode', async () => {
    for (const destination_sync_mode of ['append_dedup', 'append', 'overwrite'] as const) {
      const created = await pipeline(sample(3), { stream: { sync_mode: 'incremental', destination_sync_mode } });
      const table = `${created.prefix}stream_1`;
      await plain(created);
      for (const _ of [1, 2]) {
        await launch(created, window('2025-01-02', '2025-01-03'));
        expect((await allEnded(created)).at(-1)).toMatchObject({ status: 'succeeded' });
        expect(await count(table)).toBe(3 * 1440);
      }
    }
  });

  test('duplicate nothing in a stream without a key, and report that they replace the rows of their days', async () => {
    for (const destination_sync_mode of ['append', 'overwrite'] as const) {
      const created = await pipeline(sample(1, { primary_key: false }), { stream: { destination_sync_mode } });
      for (const _ of [1, 2]) {
        await launch(created, window('2025-01-01', '2025-01-01'));
        const warnings = [{ code: 'replaces_window' }];
        expect((await allEnded(created)).at(-1)).toMatchObject({ status: 'succeeded', warnings });
        expect(await count(`${created.prefix}stream_1`)).toBe(1440);
      }
    }
  });

  test('run one at a time, in either order', async () => {
    for (const order of ['chronological', 'reverse_chronological']) {
      const created = await pipeline(sample(4));
      await launch(created, { ...window('2025-01-01', '2025-01-04'), order });
      const runs = await allEnded(created);
      const days = runs.map((run) => run.window_start);
      const expected = ['2025-01-01', '2025-01-02', '2025-01-03', '2025-01-04'];
      expect(days).toEqual(order === 'chronological' ? expected : expected.toReversed());
      for (const [index, run] of runs.entries()) {
        if (index > 0) expect(run.started_at! >= runs[index - 1]!.finished_at!).toBe(true);
      }
    }
  });

  test('run in parallel up to max_parallel_runs', async () => {
    const created = await pipeline(sample(6, { batch_delay_ms: 60 }));
    await launch(created, { ...window('2025-01-01', '2025-01-06'), max_parallel_runs: 2 });
    const runs = await allEnded(created);
    const sideBySide = runs.map(
      (run) => runs.filter((one) => one.started_at! <= run.started_at! && run.started_at! < one.finished_at!).length,
    );
    expect(Math.max(...sideBySide)).toBe(2);
    expect(await count(`${created.prefix}stream_1`)).toBe(6 * 1440);
  });

  test('continue after a failure or stop there, and the final event has the number of failures', async () => {
    // The first day succeeds; the second fails in the middle, and so would the third.
    const faulty = sample(3, { fault: 'config', fault_at_row: 2000 });
    const outcomes = async (on_chunk_failure: string) => {
      const created = await pipeline(faulty);
      await launch(created, { ...window('2025-01-01', '2025-01-03'), on_chunk_failure });
      const runs = await allEnded(created);
      const [completed, ...more] = await db
        .select()
        .from(events)
        .where(and(eq(events.connection_id, created.connection.id), eq(events.event, 'custom_run_completed')));
      expect(more).toEqual([]);
      const payload = completed?.payload as { failed_chunks: number };
      expect(await count(`${created.prefix}stream_1`)).toBe(1440);
      return [...runs.map((run) => [run.status, run.stop_reason]), payload.failed_chunks];
    };
    expect(await outcomes('continue')).toEqual([['succeeded', null], ['failed', null], ['failed', null], 2]);
    expect(await outcomes('stop')).toEqual([
      ['succeeded', null],
      ['failed', null],
      ['stopped', 'predecessor_failed'],
      1,
    ]);
  });

  test('stop and rerun one by one, and then every row is there once', async () => {
    const created = await pipeline(sample(3, { batch_delay_ms: 150 }));
    const first = await launch(created, window('2025-01-01', '2025-01-03'));
    await until(async () => (await getStreamRuns(service, first))[0]?.status === 'running');
    await created.stop(first);
    const runs = await allEnded(created);
    expect(runs.map((run) => run.status)).toEqual(['stopped', 'succeeded', 'succeeded']);
    expect(await count(`${created.prefix}stream_1`, `updated_at < '2025-01-02'`)).toBe(0);
    const { body: again } = await call('POST', `/connections/${first}/rerun`);
    expect(await runEnded(service, again)).toMatchObject({
      status: 'succeeded',
      window_start: '2025-01-01',
      window_end: '2025-01-01',
    });
    expect(await count(`${created.prefix}stream_1`)).toBe(3 * 1440);
  });

  test('that failed run again with reprocess "failed" or "missing"', async () => {
    const created = await pipeline(sample(3, { fault: 'config', fault_at_row: 2000, faulty_attempts: 2 }));
    const body = window('2025-01-01', '2025-01-03');
    await launch(created, body);
    const statuses = (await allEnded(created)).map((run) => run.status);
    expect(statuses).toContain('failed');
    const failed = (await runsOf(created)).filter((run) => run.status === 'failed').map((run) => run.window_start);
    await launch(created, { ...body, reprocess: 'failed' });
    const again = (await allEnded(created)).slice(3);
    expect(again.map((run) => [run.window_start, run.status])).toEqual(failed.map((day) => [day, 'succeeded']));
    expect(await count(`${created.prefix}stream_1`)).toBe(3 * 1440);
    expect(
      (await call('POST', `/connections/${created.connection.id}/run`, { ...body, reprocess: 'missing' })).body,
    ).toBeNull();
  });
});

describe('the live cursor', () => {
  test('stays unchanged, as does the failure count of the connection', async () => {
    const created = await pipeline(sample(4));
    await plain(created);
    const before = await streamState(created);
    expect(before.state?.cursor).toStartWith('2025-01-04');
    await launch(created, window('2025-01-01', '2025-01-02'));
    await allEnded(created);
    const after = await streamState(created);
    expect(after).toMatchObject({ state: before.state, state_version: before.state_version });
    expect((await getStreamRuns(service, (await plain(created)).id))[0]).toMatchObject({ rows_loaded: 0 });
  });

  test.each(['chronological', 'reverse_chronological'])(
    'moves to the end with update_cursor (%s), and the next run continues from there',
    async (order) => {
      const created = await pipeline(sample(4));
      await launch(created, {
        ...window('2025-01-01', '2025-01-03'),
        order,
        update_cursor: true,
        max_parallel_runs: 2,
      });
      await allEnded(created);
      expect((await streamState(created)).state?.cursor).toStartWith('2025-01-03 23:59');
      const next = await plain(created);
      expect((await getStreamRuns(service, next.id))[0]).toMatchObject({ rows_loaded: 1440 });
      expect(await count(`${created.prefix}stream_1`)).toBe(4 * 1440);
    },
    30_000,
  );

  test('does not pass a failed chunk, and never moves back', async () => {
    const created = await pipeline(sample(4, { fault: 'config', fault_at_row: 2000, faulty_attempts: 1 }));
    await launch(created, {
      ...window('2025-01-01', '2025-01-03'),
      order: 'reverse_chronological',
      update_cursor: true,
    });
    const runs = await allEnded(created);
    const failed = runs.find((run) => run.status === 'failed');
    expect(failed?.window_start).toBe('2025-01-03');
    expect((await streamState(created)).state?.cursor).toStartWith('2025-01-02 23:59');
    await runEnded(service, (await call('POST', `/connections/${failed?.id}/rerun`)).body);
    expect((await streamState(created)).state?.cursor).toStartWith('2025-01-03 23:59');
    await launch(created, { ...window('2025-01-01', '2025-01-01'), update_cursor: true });
    await allEnded(created);
    expect((await streamState(created)).state?.cursor).toStartWith('2025-01-03 23:59');
  });
});

describe('a full refresh', () => {
  test('that clears the destination leaves exactly the rows of the source', async () => {
    const created = await pipeline(sample(2));
    await plain(created);
    const table = `${created.prefix}stream_1`;
    await sql.unsafe(`update "${table}" set id = id + 1000000`);
    const { body: plan } = await call('POST', `/connections/${created.connection.id}/run/preview`, {
      mode: 'full_refresh',
      clear_destination: true,
    });
    const launched = await call('POST', `/connections/${created.connection.id}/run/launch-plan`, {
      plan_id: plan.plan_id,
      confirm: true,
    });
    expect(await runEnded(service, launched.body.first_connection_run_id)).toMatchObject({
      status: 'succeeded',
      run_type: 'full_refresh',
    });
    expect(await count(table, 'id <= 2880')).toBe(2880);
    expect(await count(table)).toBe(2880);
  });
});
