import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { eq, sql } from 'drizzle-orm';
import postgres from 'postgres';
import { connections, connectionStreams, snapshots } from '../../db/schema/index.ts';
import { canShowOneMoment } from '../../server/runs/snapshot/members.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const service = await testDeps();
const { db } = service.deps;
const bank = await createPlainDatabase();
const warehouse = await createPlainDatabase();
const source = postgres(bank.url, { max: 4, onnotice: () => {} });
const target = postgres(warehouse.url, { max: 6, onnotice: () => {} });
afterAll(async () => {
  await Promise.all([source.end(), target.end()]);
  await Promise.all([bank.drop(), warehouse.drop()]);
});

const parametersOf = (url: string) => {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
  };
};

/** Two accounts with a total of 1,000. Each transfer between them is one transaction. */
await source.unsafe(`
  create table checking (id int primary key, balance numeric not null);
  create table savings (id int primary key, balance numeric not null);
  insert into checking values (1, 600);
  insert into savings values (1, 400)`);
const transfer = (amount: number) =>
  source.begin(async (tx) => {
    await tx`update checking set balance = balance - ${amount}`;
    await tx`update savings set balance = balance + ${amount}`;
  });

/** Each case has a schema of its own at the destination. */
async function pipelineTo(schema: string, connection: { max_parallel_streams?: number } = {}): Promise<Pipeline> {
  return makePipeline(service, {
    source: { name: 'postgres', parameters: parametersOf(bank.url) },
    destination: { name: 'postgres', parameters: parametersOf(warehouse.url) },
    stream: { destination_sync_mode: 'overwrite', primary_key: [['id']] },
    connection: { destination_schema: schema, ...connection },
    only: ['checking', 'savings'],
  });
}

/** `checking` is read first. */
const ONE_BY_ONE = { max_parallel_streams: 1 };

async function shown(schema: string): Promise<number> {
  return target.begin('isolation level repeatable read read only', async (tx) => {
    const [a] = await tx.unsafe(`select sum(balance)::int n from ${schema}.checking`);
    const [b] = await tx.unsafe(`select sum(balance)::int n from ${schema}.savings`);
    return Number(a?.n) + Number(b?.n);
  });
}
const checkingAt = async (schema: string) =>
  Number((await target.unsafe(`select balance from ${schema}.checking`))[0]?.balance);

const tablesOf = async (schema: string) => {
  const rows = await target`select relname from pg_class where relnamespace = ${schema}::regnamespace
    and relkind = 'r' order by 1`;
  return rows.map(({ relname }) => relname as string);
};
const FINAL_TABLES = ['_pipeline_state', 'checking', 'savings'];

const shared = async (run_id: string) =>
  (await db.select().from(snapshots).where(eq(snapshots.connection_run_id, run_id)))[0];
const settled = (run_id: string) => until(async () => (await shared(run_id))?.settled_at != null);
const isReady = async (run_id: string, name: string) =>
  (await getStreamRuns(service, run_id)).some((one) => one.stream_name === name && one.ready !== null);

/**
 * Blocks the opening of `savings` at the destination until it is released. The stream must have been loaded before, and
 * runs `ONE_BY_ONE`: streams that open their tables wait for each other.
 */
async function holdSavings({ connection }: Pipeline, schema: string): Promise<() => Promise<void>> {
  const [row] = await db
    .select({ id: connectionStreams.id })
    .from(connectionStreams)
    .where(sql`${connectionStreams.connection_id} = ${connection.id} and ${connectionStreams.name} = 'savings'`);
  const line = await target.reserve();
  await line`begin`;
  await line.unsafe(`select from ${schema}._pipeline_state where stream_id = '${row!.id}' for update`);
  return async () => {
    await line`rollback`;
    line.release();
  };
}

describe('in one worker', () => {
  let worker: Awaited<ReturnType<typeof startWorker>>;
  beforeAll(async () => {
    worker = await startWorker(service.deps);
  });
  afterAll(() => worker.stop());

  test('every state that the destination shows is one that the source had, while transfers go on', async () => {
    const made = await pipelineTo('looked_at');
    await runEnded(service, await made.start());
    const end = new AbortController();
    const moving = (async () => {
      for (let amount = 1; !end.signal.aborted; amount = -amount) await Promise.all([transfer(amount), Bun.sleep(10)]);
    })();
    const seen: number[] = [];
    const looking = (async () => {
      while (!end.signal.aborted) {
        seen.push(await shown('looked_at'));
        await Bun.sleep(10);
      }
    })();
    const ended: string[] = [];
    try {
      for (let run = 0; run < 3; run++) ended.push((await runEnded(service, await made.start())).status);
    } finally {
      end.abort();
      await Promise.all([moving, looking]);
    }
    expect(ended).toEqual(Array.from(ended, () => 'succeeded'));
    expect(seen.length).toBeGreaterThan(10);
    expect(seen.filter((total) => total !== 1000)).toEqual([]);
    expect(await tablesOf('looked_at')).toEqual(FINAL_TABLES);
  });

  test('a lost keeper has all streams read again from a new snapshot', async () => {
    const made = await pipelineTo('keeper', ONE_BY_ONE);
    await runEnded(service, await made.start());
    const letGo = await holdSavings(made, 'keeper');
    const run_id = await made.start();
    await until(() => isReady(run_id, 'checking'));
    await transfer(7);
    await source`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'idle in transaction' and pid <> pg_backend_pid()`;
    await until(async () => ((await shared(run_id))?.generation ?? 0) > 1);
    await letGo();
    expect((await runEnded(service, run_id)).status).toBe('succeeded');
    expect(await shown('keeper')).toBe(1000);
    expect(await checkingAt('keeper')).toBe(Number((await source`select balance from checking`)[0]?.balance));
    expect(await tablesOf('keeper')).toEqual(FINAL_TABLES);
    await settled(run_id);
  });

  test('a stop publishes nothing and leaves no table behind', async () => {
    const made = await pipelineTo('stopped', ONE_BY_ONE);
    await runEnded(service, await made.start());
    const before = await checkingAt('stopped');
    const letGo = await holdSavings(made, 'stopped');
    const run_id = await made.start();
    await until(() => isReady(run_id, 'checking'));
    await transfer(5);
    await made.stop(run_id);
    expect((await runEnded(service, run_id)).status).toBe('stopped');
    await letGo();
    await settled(run_id);
    expect(await tablesOf('stopped')).toEqual(FINAL_TABLES);
    expect(await checkingAt('stopped')).toBe(before);
    expect((await getStreamRuns(service, run_id)).map((one) => [one.status, one.rows_loaded])).toEqual([
      ['stopped', 0],
      ['stopped', 0],
    ]);
    expect((await runEnded(service, await made.start())).status).toBe('succeeded');
  });

  test('one stream that fails keeps the others from being published; streams outside keep their rows', async () => {
    await source`create table audit (id int primary key)`;
    await source`insert into audit values (1)`;
    const made = await makePipeline(service, {
      source: { name: 'postgres', parameters: parametersOf(bank.url) },
      destination: { name: 'postgres', parameters: parametersOf(warehouse.url) },
      stream: { destination_sync_mode: 'overwrite', primary_key: [['id']] },
      connection: { destination_schema: 'partly' },
      only: ['checking', 'savings', 'audit'],
    });
    await db
      .update(connectionStreams)
      .set({ destination_sync_mode: 'append' })
      .where(sql`${connectionStreams.connection_id} = ${made.connection.id} and ${connectionStreams.name} = 'audit'`);
    await target.unsafe('create schema partly; create table partly.savings (id int); create view partly.v as select 1');
    // A view in place of a table accepts no rows.
    await target.unsafe('drop table partly.savings; create view partly.savings as select 1 as id');
    const run_id = await made.start();
    const run = await runEnded(service, run_id);
    expect(run).toMatchObject({ status: 'partially_succeeded' });
    await settled(run_id);
    const streams = await getStreamRuns(service, run_id);
    expect(streams.map((one) => [one.stream_name, one.status, one.error?.code ?? null, one.rows_loaded])).toEqual([
      ['audit', 'succeeded', null, 1],
      ['checking', 'failed', 'group_not_published', 0],
      ['savings', 'failed', 'not_a_table', 0],
    ]);
    expect(await tablesOf('partly')).toEqual(['_pipeline_state', 'audit']);
  });

  test('tables with views and foreign keys get their rows replaced, all in the same commit', async () => {
    const made = await pipelineTo('attached');
    await runEnded(service, await made.start());
    await target.unsafe(`create view attached.v as select * from attached.checking;
      alter table attached.savings add foreign key (id) references attached.checking (id)`);
    const amount = 11;
    await transfer(amount);
    expect((await runEnded(service, await made.start())).status).toBe('succeeded');
    expect(await shown('attached')).toBe(1000);
    const [row] = await target`select balance from attached.v`;
    expect(row?.balance).toBe((await source`select balance from checking`)[0]?.balance);
    expect(await tablesOf('attached')).toEqual(FINAL_TABLES);
    await target.unsafe('create table attached.other (id int references attached.savings (id))');
    const run = await runEnded(service, await made.start());
    expect(run.error).toMatchObject({ code: 'table_is_referenced' });
    expect(await shown('attached')).toBe(1000);
    await target.unsafe('drop table attached.other');

    await transfer(0.5);
    await target.unsafe('alter table attached.savings alter balance type numeric(6)');
    expect((await runEnded(service, await made.start())).error).toMatchObject({ code: 'value_does_not_fit' });
    await db.update(connections).set({ inexact_values: 'allow' }).where(eq(connections.id, made.connection.id));
    expect(await runEnded(service, await made.start())).toMatchObject({
      status: 'succeeded',
      warnings: [{ code: 'values_changed', message: expect.stringMatching(/^1 value of savings\.balance /) }],
    });
    await transfer(-0.5);
  });

  test('an SQLite file and a DuckDB file are read at one moment, and DuckDB shows the tables together', async () => {
    const filesRoot = join(service.deps.config.DATA_DIR, 'files');
    mkdirSync(filesRoot, { recursive: true });
    const file = new Database(join(filesRoot, 'bank.db'));
    file.run('pragma journal_mode = wal');
    for (const [name, balance] of [
      ['checking', 600],
      ['savings', 400],
    ] as const) {
      file.run(`create table ${name} (id integer primary key, balance integer not null)`);
      file.run(`insert into ${name} values (1, ${balance})`);
    }
    const stream = { destination_sync_mode: 'overwrite' as const, primary_key: [['id']] };
    const sqlite = { name: 'sqlite', parameters: { path: 'bank.db' } };
    const duckdb = { name: 'duckdb', parameters: { path: 'bank.duckdb' } };
    const intoPostgres = { name: 'postgres', parameters: parametersOf(warehouse.url) };
    const held = await makePipeline(service, {
      source: sqlite,
      destination: intoPostgres,
      stream,
      connection: { destination_schema: 'from_sqlite', ...ONE_BY_ONE },
    });
    expect(await runEnded(service, await held.start(), 60_000)).toMatchObject({ status: 'succeeded', warnings: [] });
    const letGo = await holdSavings(held, 'from_sqlite');
    const held_run = await held.start();
    await until(() => isReady(held_run, 'checking'), { timeout_ms: 60_000 });
    file.run('begin; update checking set balance = balance - 5; update savings set balance = balance + 5; commit');
    await letGo();
    expect((await runEnded(service, held_run, 60_000)).status).toBe('succeeded');
    expect([await shown('from_sqlite'), await checkingAt('from_sqlite')]).toEqual([1000, 600]);

    const intoFile = await makePipeline(service, { source: sqlite, destination: duckdb, stream });
    for (let run = 0; run < 2; run++) {
      const run_id = await intoFile.start();
      expect(await runEnded(service, run_id, 60_000)).toMatchObject({ status: 'succeeded', warnings: [] });
      expect(await shared(run_id)).toMatchObject({ settled_at: expect.any(String), error: null });
    }
    const fromFile = await makePipeline(service, {
      source: duckdb,
      destination: intoPostgres,
      stream,
      connection: { destination_schema: 'from_duckdb' },
      only: ['checking', 'savings'],
    });
    const run_id = await fromFile.start();
    expect(await runEnded(service, run_id, 60_000)).toMatchObject({ status: 'succeeded', warnings: [] });
    expect(await shared(run_id)).toMatchObject({ generation: 1, error: null });
    expect([await shown('from_duckdb'), await checkingAt('from_duckdb')]).toEqual([1000, 595]);
    // Nothing can be written to a file that is read.
    expect(canShowOneMoment({ source: fromFile.source, destination: intoFile.destination })).toBe(false);
    file.close();
  }, 180_000);

  test('an old snapshot is a warning, and one stream or consistency: stream need none', async () => {
    const made = await pipelineTo('aged', ONE_BY_ONE);
    await runEnded(service, await made.start());
    const letGo = await holdSavings(made, 'aged');
    const run_id = await made.start();
    await until(() => isReady(run_id, 'checking'));
    await db
      .update(snapshots)
      .set({ opened_at: sql`clock_timestamp() - interval '2 hours'` })
      .where(eq(snapshots.connection_run_id, run_id));
    await until(async () => (await getRun(service, run_id)).warnings.length > 0);
    await letGo();
    const run = await runEnded(service, run_id);
    expect(run.warnings.map(({ code }) => code)).toEqual(['snapshot_held_long']);
    await db
      .update(connectionStreams)
      .set({ selected: false })
      .where(sql`${connectionStreams.connection_id} = ${made.connection.id} and ${connectionStreams.name} = 'savings'`);
    const single = await made.start();
    expect((await runEnded(service, single)).status).toBe('succeeded');
    expect(await shared(single)).toBeUndefined();
  });
});

describe('with workers that die', () => {
  test('tables that are complete are published by another worker', async () => {
    const first = spawnWorker(service);
    const made = await pipelineTo('killed');
    await runEnded(service, await made.start());
    await transfer(3);
    // A reader keeps the tables from being swapped.
    const reader = await target.reserve();
    await reader`begin`;
    await reader`select from killed.savings`;
    const run_id = await made.start();
    await until(async () => (await shared(run_id))?.publishing_at != null);
    first.kill('SIGKILL');
    await first.exited;
    expect(await tablesOf('killed')).toHaveLength(5);
    const second = spawnWorker(service);
    await reader`rollback`;
    reader.release();
    expect((await runEnded(service, run_id)).status).toBe('succeeded');
    second.kill('SIGKILL');
    expect(await shown('killed')).toBe(1000);
    expect(await tablesOf('killed')).toEqual(FINAL_TABLES);
    expect((await getStreamRuns(service, run_id)).map((one) => [one.status, one.rows_loaded])).toEqual([
      ['succeeded', 1],
      ['succeeded', 1],
    ]);
  }, 60_000);

  test('a run whose worker dies before its tables are complete starts from a new snapshot', async () => {
    const first = spawnWorker(service);
    const made = await pipelineTo('died', ONE_BY_ONE);
    await runEnded(service, await made.start());
    const letGo = await holdSavings(made, 'died');
    const run_id = await made.start();
    await until(() => isReady(run_id, 'checking'));
    first.kill('SIGKILL');
    await first.exited;
    await transfer(2);
    await letGo();
    const second = spawnWorker(service);
    expect((await runEnded(service, run_id, 50_000)).status).toBe('succeeded');
    second.kill('SIGKILL');
    expect(await shown('died')).toBe(1000);
    expect(await tablesOf('died')).toEqual(FINAL_TABLES);
  }, 60_000);
});
