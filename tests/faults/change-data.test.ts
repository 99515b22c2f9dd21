import { afterAll, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import postgres from 'postgres';
import { connectionRuns, connections, connectionStreams } from '../../db/schema/index.ts';
import { stateSetTo } from '../../server/runs/set-state.ts';
import { releaseDeadWorkers } from '../../server/runs/worker-deaths.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { logServer } from '../support/postgres.ts';
import { closeGate } from '../support/gate.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { isThorough } from '../support/thorough.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

/** Rows of one transaction. 400,000 more cost some 5 s of processor time. */
const LARGE_TRANSACTION = isThorough ? 500_000 : 100_000;
/** Between transfers: as fast as they can go, they take a processor for themselves. */
const PACE_MS = 5;

const service = await testDeps();
const [from, to] = [await createPlainDatabase(await logServer()), await createPlainDatabase()];
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
    insert into moved select g, 0, repeat('x', 1000) from generate_series(1, 2400) g`);
  const make = (destination_sync_mode: 'append' | 'append_dedup') =>
    makePipeline(service, {
      source: { name: 'postgres', parameters: { ...postgresParameters(from.url), replication: 'logical' } },
      destination: { name: 'postgres', parameters: postgresParameters(to.url) },
      stream: { sync_mode: 'incremental', destination_sync_mode, primary_key: [['id']] },
      connection: { table_prefix: `${destination_sync_mode}_` },
      only: ['moved'],
    });
  const pipelines = { append_dedup_moved: await make('append_dedup'), append_moved: await make('append') };
  // So little that there are commits before and after the gate.
  const environment = { CHECKPOINT_KB: '256' };
  let worker = spawnWorker(service, environment);
  for (const pipeline of Object.values(pipelines)) {
    expect((await runEnded(service, await pipeline.start())).status).toBe('succeeded');
  }
  // Separate transactions, so that there are positions to resume from in between.
  for (let part = 0; part < 60; part += 1) {
    await source`update moved set n = n + 1, filler = filler || '.' where id % 20 = ${part % 20}`;
    await source`delete from moved where id = ${part + 1}`;
  }
  for (const [table, pipeline] of Object.entries(pipelines)) {
    const gate = await closeGate(to.url, table, 'new.n = 3');
    const id = await pipeline.start();
    await gate.reached();
    worker.kill('SIGKILL');
    await worker.exited;
    await gate.open();
    worker = spawnWorker(service, environment);
    expect((await runEnded(service, id, 90_000)).status).toBe('succeeded');
    expect((await getStreamRuns(service, id))[0]!.attempt).toBe(2);
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
  expect(history).toMatchObject({ read: 2400, deleted: 60 });
  expect(history!.changes).toBe(2400 + history!.updated + 60);
});

test('a worker killed at any step of a group moves each transaction once, and whole', async () => {
  await source.unsafe(`create schema pair; create table pair.giro (id int primary key, n int, filler text);
    create table pair.savings (like pair.giro including all);
    insert into pair.giro select g, 100, repeat('x', 500) from generate_series(1, 3000) g;
    insert into pair.savings select g, 100, repeat('y', 500) from generate_series(1, 3000) g`);
  const pipeline = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: { ...postgresParameters(from.url), replication: 'logical', schemas: ['pair'] },
    },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
    // One table after the other, so that a worker can be killed in between.
    connection: { destination_schema: 'pair', max_parallel_streams: 1 },
  });
  const slot = `pipeline_${pipeline.connection.id.replaceAll('-', '')}`;
  const total = async () => {
    const [tables] =
      await destination`select to_regclass('pair.giro') is not null and to_regclass('pair.savings') is not null as there`;
    if (!tables!.there) return null;
    const [row] =
      await destination`select (select sum(n) from pair.giro)::int + (select sum(n) from pair.savings)::int as n`;
    return row!.n as number;
  };
  const isCreated = async () => (await source`select 1 from pg_replication_slots where slot_name = ${slot}`).length > 0;
  const isCopiedInPart = async () => {
    const [found] = await destination`select to_regclass('pair._pipeline_state') is not null as there`;
    if (!found!.there) return false;
    return (await destination`select 1 from pair._pipeline_state where state is not null`).length > 0;
  };
  const isStaging = async () =>
    (
      await destination`select 1 from pg_stat_activity where datname = current_database() and state = 'active'
      and (query like 'copy %stage%' or query like 'with %merged as%')`
    ).length > 0;
  const sessionsWith = async (condition: string) =>
    (await destination.unsafe(`select 1 from pg_stat_activity where datname = current_database() and (${condition})`))
      .length;
  /** While a commit waits at the gate, whose trigger makes it an upsert, the next one is staged, and may have tried to merge. */
  const isStagedBeside = async () =>
    (await sessionsWith("query like 'with %' and wait_event_type = 'Lock'")) === 1 &&
    (await sessionsWith("query like 'copy %stage%' or query like 'rollback to savepoint before_ahead%'")) === 1;
  /** While a commit waits for a row, the next one is merged, and looks from time to time whether it is in the way. */
  const isMergedBeside = async () =>
    (await sessionsWith("query like 'merge %' and wait_event_type = 'Lock'")) === 1 &&
    (await sessionsWith("query like '%pg_blocking_pids%' and state = 'idle in transaction'")) === 1;
  const isCommitted = (before: number) => async () => {
    const [row] = await destination`select max(state_version)::int as at from pair._pipeline_state`;
    return row!.at > before;
  };
  const isAcknowledged = (before: string) => async () => {
    const [row] =
      await source`select confirmed_flush_lsn::text as at from pg_replication_slots where slot_name = ${slot}`;
    return row!.at !== before;
  };
  const environment = { CHECKPOINT_KB: '512' };
  let worker = spawnWorker(service, environment);
  const runKilledWhen = async (...conditions: (() => Promise<boolean>)[]) => {
    const id = await pipeline.start();
    let ended = false;
    void runEnded(service, id, 90_000).then(() => (ended = true));
    for (const holds of conditions) {
      await until(async () => ended || (await holds()));
      worker.kill('SIGKILL');
      await worker.exited;
      const dead = (await getStreamRuns(service, id)).flatMap(({ worker_id }) => worker_id ?? []);
      expect([null, 600_000]).toContain(await total());
      // As the supervisor of a worker does.
      await releaseDeadWorkers(service.deps, dead);
      worker = spawnWorker(service, environment);
    }
    const { status } = await runEnded(service, id, 90_000);
    expect((await getStreamRuns(service, id)).flatMap(({ error }) => error ?? [])).toEqual([]);
    expect(status).toBe('succeeded');
    expect(await total()).toBe(600_000);
  };
  const transfers = async () => {
    for (let part = 0; part < 10; part += 1) {
      await source.begin(async (tx) => {
        await tx`update pair.giro set n = n - 3, filler = filler || '.' where id % 10 = ${part}`;
        await tx`update pair.savings set n = n + 3, filler = filler || '.' where id % 10 = ${part}`;
      });
    }
  };
  await runKilledWhen(isCreated, isCopiedInPart);
  await transfers();
  await runKilledWhen(isStaging);
  for (let round = 0; round < 3; round += 1) await transfers();
  const gate = await closeGate(to.url, 'pair.giro', 'new.id = 10');
  await runKilledWhen(isStagedBeside, async () => {
    await gate.open();
    return true;
  });
  await transfers();
  const holder = postgres(to.url, { max: 1, onnotice: () => {} });
  await holder.unsafe('begin; select from pair.giro where id = 10 for update');
  await runKilledWhen(isMergedBeside, async () => {
    await holder.end();
    return true;
  });
  await transfers();
  const [row] = await destination`select max(state_version)::int as at from pair._pipeline_state`;
  await runKilledWhen(isCommitted(row!.at));
  await transfers();
  const [place] =
    await source`select confirmed_flush_lsn::text as at from pg_replication_slots where slot_name = ${slot}`;
  await runKilledWhen(isAcknowledged(place!.at));
  worker.kill('SIGKILL');
  for (const table of ['giro', 'savings']) {
    const text = `select count(*)::int as n, md5(string_agg(row(id, n, filler)::text, ',' order by id)) as sum from pair.${table}`;
    const [[ours], [theirs]] = await Promise.all([destination.unsafe(text), source.unsafe(text)]);
    expect({ ...ours }).toEqual({ ...theirs });
  }
  expect(
    (await source`select 1 from pg_replication_slots where database = current_database() and slot_name = ${slot}`)
      .length,
  ).toBe(1);
}, 180_000);

test('a worker killed while a run follows the log shows no total that the source never had', async () => {
  await source.unsafe(`create schema flow; create table flow.giro (id int primary key, n int);
    create table flow.savings (like flow.giro including all); create table flow.late (like flow.giro including all);
    insert into flow.giro select g, 100 from generate_series(1, 20) g;
    insert into flow.savings select g, 100 from generate_series(1, 20) g`);
  const untimed = { interval_minutes: null, cron_expression: null, timezone: 'UTC', time_of_day: null };
  const { connection } = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: { ...postgresParameters(from.url), replication: 'logical', schemas: ['flow'] },
    },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
    connection: {
      destination_schema: 'flow',
      schedule: { type: 'continuous', ...untimed },
      next_run_at: new Date().toISOString(),
    },
  });
  const { db } = service.deps;
  const runs = () => db.select().from(connectionRuns).where(eq(connectionRuns.connection_id, connection.id));
  const selectLate = (selected: boolean) =>
    db
      .update(connectionStreams)
      .set({ selected })
      .where(and(eq(connectionStreams.connection_id, connection.id), eq(connectionStreams.name, 'late')));
  await selectLate(false);
  let worker = spawnWorker(service);
  // The first copy shows its tables one after the other, in any order.
  const there = () =>
    destination`select 1 from pg_tables where schemaname = 'flow' and tablename in ('giro', 'savings')`;
  await until(async () => (await there()).length === 2);
  const goesOn = { transfers: true };
  const writer = postgres(from.url, { max: 1, onnotice: () => {} });
  const transferring = (async () => {
    for (let at = 0; goesOn.transfers; at += 1) {
      await writer.begin(async (tx) => {
        await tx`update flow.giro set n = n - 7 where id = ${(at % 20) + 1}`;
        await tx`update flow.savings set n = n + 7 where id = ${((at * 7) % 20) + 1}`;
      });
      await Bun.sleep(PACE_MS);
    }
  })();
  const totals = new Set<string>();
  const changes = async (count: number) => {
    const seen = new Set<string>();
    await until(
      async () => {
        const [row] =
          await destination`select (select sum(n) from flow.giro) + (select sum(n) from flow.savings) as total, (select sum(n) from flow.giro) as giro`;
        totals.add(String(row!.total));
        return seen.add(String(row!.giro)).size > count;
      },
      { timeout_ms: 60_000 },
    );
  };
  await changes(15);
  worker.kill('SIGKILL');
  await worker.exited;
  // The worker that takes the run over has not seen the change.
  await selectLate(true);
  const [run] = await runs();
  const dead = (await getStreamRuns(service, run!.id)).flatMap(({ worker_id }) => worker_id ?? []);
  await releaseDeadWorkers(service.deps, dead);
  worker = spawnWorker(service);
  await changes(15);
  const isThere = () => destination`select 1 from pg_tables where schemaname = 'flow' and tablename = 'late'`;
  await until(async () => (await isThere()).length === 1);
  const counts = new Set<number>();
  await source.unsafe(`insert into flow.giro select g, 0 from generate_series(101, ${100 + LARGE_TRANSACTION}) g`);
  await until(
    async () => {
      const [row] = await destination`select count(*)::int as n from flow.giro`;
      return counts.add(row!.n).has(20 + LARGE_TRANSACTION);
    },
    { timeout_ms: 60_000 },
  );
  expect([...counts].filter((count) => count !== 20)).toEqual([20 + LARGE_TRANSACTION]);
  goesOn.transfers = false;
  await transferring;
  await writer.end();
  const sum = (table: string) => `select md5(string_agg(row(id, n)::text, ',' order by id)) as sum from flow.${table}`;
  for (const table of ['giro', 'savings']) {
    const [theirs] = await source.unsafe(sum(table));
    await until(async () => (await destination.unsafe(sum(table)))[0]!.sum === theirs!.sum);
  }
  expect([...totals]).toEqual(['4000']);
  // The run ends with its worker, and another worker begins the next one.
  worker.kill('SIGTERM');
  await worker.exited;
  const ended = await runs();
  expect(ended.map(({ status }) => status).slice(0, 1)).toEqual(['succeeded']);
  await db.update(connections).set({ status: 'paused', next_run_at: null }).where(eq(connections.id, connection.id));
}, 180_000);

test('a table that is reset after the death of its worker is read again by the worker that takes the run over', async () => {
  await source.unsafe(`create schema renewed; create table renewed.stock (id int primary key, n int);
    insert into renewed.stock values (1, 10), (2, 20)`);
  const untimed = { interval_minutes: null, cron_expression: null, timezone: 'UTC', time_of_day: null };
  const { connection, start } = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: { ...postgresParameters(from.url), replication: 'logical', schemas: ['renewed'] },
    },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
    connection: { destination_schema: 'renewed', schedule: { type: 'continuous', ...untimed } },
  });
  let worker = spawnWorker(service);
  const id = await start();
  const held = async () => {
    const [found] = await destination`select to_regclass('renewed.stock') is not null as there`;
    if (!found!.there) return '';
    return (await destination`select n from renewed.stock order by id`).map(({ n }) => n).join(' ');
  };
  const becomes = (rows: string) => until(async () => (await held()) === rows);
  await becomes('10 20');
  await source`update renewed.stock set n = 11 where id = 1`;
  await becomes('11 20');
  worker.kill('SIGKILL');
  await worker.exited;
  await destination`update renewed.stock set n = 77 where id = 2`;
  const own = eq(connectionStreams.connection_id, connection.id);
  await service.deps.db.update(connectionStreams).set(stateSetTo(null)).where(own);
  const dead = (await getStreamRuns(service, id)).flatMap(({ worker_id }) => worker_id ?? []);
  await releaseDeadWorkers(service.deps, dead);
  worker = spawnWorker(service);
  await becomes('11 20');
  await service.deps.db.update(connections).set({ status: 'paused' }).where(eq(connections.id, connection.id));
  expect((await runEnded(service, id)).status).toBe('succeeded');
  worker.kill('SIGKILL');
  await worker.exited;
});

test('a worker killed while a continuous run catches up by statements, or goes over to the stream, moves each transaction once', async () => {
  await source.unsafe(`create schema behind; create table behind.giro (id int primary key, n int, moves int default 0, note text);
    create table behind.savings (like behind.giro including all);
    insert into behind.giro select g, 100 from generate_series(1, 20) g;
    insert into behind.savings select g, 100 from generate_series(1, 20) g`);
  const { connection, start } = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: { ...postgresParameters(from.url), replication: 'logical', schemas: ['behind'] },
    },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
    connection: { destination_schema: 'behind' },
  });
  const { db } = service.deps;
  const change = (columns: Partial<typeof connections.$inferInsert>) =>
    db.update(connections).set(columns).where(eq(connections.id, connection.id));
  const slot = `pipeline_${connection.id.replaceAll('-', '')}`;
  let worker = spawnWorker(service);
  expect((await runEnded(service, await start())).status).toBe('succeeded');
  // By statements a log is read only while much of it is left, and its rows are too large to be read ahead at once.
  const transfers = (moves: number) =>
    source.unsafe(`do $$ begin for at in 1 .. ${moves} loop
      update behind.giro set n = n - 7, moves = moves + 1, note = repeat(chr(97 + at % 26), 3000) where id = at % 20 + 1;
      update behind.savings set n = n + 7, moves = moves + 1, note = repeat(chr(97 + at % 26), 3000)
        where id = (at * 7) % 20 + 1; commit;
    end loop; perform pg_logical_emit_message(false, '', repeat('x', 1000000)) from generate_series(1, 40); end $$`);
  for (let part = 0; part < 3; part += 1) await transfers(2000);
  const totals = new Set<string>();
  const look = async () => {
    const [row] =
      await destination`select (select sum(n) from behind.giro) + (select sum(n) from behind.savings) as total,
      (select sum(moves) from behind.giro)::int as moves`;
    totals.add(String(row!.total));
    return row!.moves as number;
  };
  const isRead = async (by: 'statements' | 'stream') => {
    const found =
      by === 'stream'
        ? await source`select 1 from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid
            where s.slot_name = ${slot} and r.state = 'streaming'`
        : await source`select 1 from pg_replication_slots where slot_name like ${`${slot}\\_%`}`;
    return found.length > 0;
  };
  const replaceWorker = async () => {
    worker.kill('SIGKILL');
    await worker.exited;
    const [run] = await db
      .select()
      .from(connectionRuns)
      .where(and(eq(connectionRuns.connection_id, connection.id), eq(connectionRuns.status, 'running')));
    const dead = (await getStreamRuns(service, run!.id)).flatMap(({ worker_id }) => worker_id ?? []);
    await releaseDeadWorkers(service.deps, dead);
    worker = spawnWorker(service);
  };
  const gate = await closeGate(to.url, 'behind.giro', 'new.moves >= 10');
  const untimed = { interval_minutes: null, cron_expression: null, timezone: 'UTC', time_of_day: null };
  await change({ schedule: { type: 'continuous', ...untimed }, next_run_at: new Date().toISOString() });
  await gate.reached();
  expect(await isRead('statements')).toBeTrue();
  await look();
  await replaceWorker();
  await gate.open();
  await until(() => isRead('stream'));
  await replaceWorker();
  await until(async () => (await look()) === 6000);
  await until(() => isRead('stream'));
  expect(await isRead('statements')).toBeFalse();
  await source`update behind.giro set n = n - 1, moves = moves + 1 where id = 1`;
  await until(async () => (await look()) === 6001);
  expect([...totals].sort()).toEqual(['3999', '4000']);
  for (const table of ['giro', 'savings']) {
    const sum = `select md5(string_agg(row(id, n, moves)::text, ',' order by id)) as sum from behind.${table}`;
    const [[ours], [theirs]] = await Promise.all([destination.unsafe(sum), source.unsafe(sum)]);
    expect({ table, ...ours }).toEqual({ table, ...theirs });
  }
  worker.kill('SIGTERM');
  await worker.exited;
  await change({ status: 'paused', next_run_at: null });
}, 180_000);
