import { afterAll, describe, expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { DuckDBInstance } from '@duckdb/node-api';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { and, eq, sql as expression } from 'drizzle-orm';
import postgres from 'postgres';
import { connectionStreams, events } from '../../db/schema/index.ts';
import type { HeldPosition } from '../../server/connectors/contract/connector.ts';
import { continuationOf } from '../../server/pipeline/destination-position.ts';
import { stateSetTo } from '../../server/runs/set-state.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { logServer } from '../support/postgres.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';

const service = await testDeps();
const worker = await startWorker(service.deps);
const [from, to] = [await createPlainDatabase(await logServer()), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  await worker.stop();
  const slots = await source`select slot_name from pg_replication_slots where database = current_database()`;
  for (const { slot_name } of slots) await source`select pg_drop_replication_slot(${slot_name})`;
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

test.each<[Partial<HeldPosition>, 'append' | 'append_dedup', number | null, string]>([
  [{}, 'append', 3, 'continue'],
  [{ state_version: 4 }, 'append', 3, 'continue'],
  [{ state_version: 2 }, 'append', null, 'continue'],
  [{ state_version: 2 }, 'append', 3, 'go_back'],
  [{ state_version: 2 }, 'append_dedup', 3, 'go_back'],
  [{ state_version: 0, state: null }, 'append', 3, 'refuse'],
  [{ state_version: 0, state: null }, 'append_dedup', 3, 'restart'],
  [{ has_table: false }, 'append', 3, 'restart'],
  [{ was_emptied: true }, 'append', 3, 'restart'],
  [{ was_emptied: true }, 'append', null, 'continue'],
  [{ state_version: 0, state: null, has_table: false }, 'append', 3, 'restart'],
])(
  'a destination that holds %j continues %s after commit %p: %s',
  (held, destination_sync_mode, committed_version, how) => {
    const holds = { state: { cursor: '7' }, state_version: 3, stream_run_id: null, has_table: true, ...held };
    expect(continuationOf({ state: { cursor: '9' }, committed_version, destination_sync_mode }, holds)).toBe(
      how as never,
    );
  },
);

const FIRST = 40;
const MORE = 10;
type Mode = 'append' | 'append_dedup';
let counter = 0;

interface Loaded {
  pipeline: Pipeline;
  table: string;
  schema: string;
}

/** A table whose first rows are loaded. */
async function loaded(mode: Mode, read: 'cursor' | 'log'): Promise<Loaded> {
  const table = `t${++counter}`;
  const schema = `s${counter}`;
  await source.unsafe(`create table ${table} (id int primary key, name text)`);
  await addRows(table, FIRST);
  const pipeline = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: { ...postgresParameters(from.url), replication: read === 'log' ? 'logical' : 'cursor' },
    },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    only: [table],
    connection: { destination_schema: schema },
    stream: {
      sync_mode: 'incremental',
      destination_sync_mode: mode,
      primary_key: [['id']],
      ...(read === 'cursor' && { cursor_field: ['id'] }),
    },
  });
  expect((await run(pipeline)).status).toBe('succeeded');
  return { pipeline, table, schema };
}

const addRows = (table: string, rows: number) =>
  source.unsafe(`insert into ${table} select n + i, 'name ' || n + i
    from (select coalesce(max(id), 0) n from ${table}) t, generate_series(1, ${rows}) i`);

async function run({ start, connection }: Pipeline) {
  const id = await start();
  const ended = await runEnded(service, id);
  const [stream] = await getStreamRuns(service, id);
  const told = await service.deps.db
    .select()
    .from(events)
    .where(and(eq(events.connection_id, connection.id), eq(events.event, 'destination_went_back')));
  return { ...ended, stream: stream!, codes: ended.warnings.map(({ code }) => code), events: told.length };
}

const rowsOf = (sql: postgres.Sql, table: string) => sql.unsafe(`select id, name from ${table} order by id, name`);
async function expectEqual({ table, schema }: Loaded) {
  expect([...(await rowsOf(target, `${schema}.${table}`))]).toEqual([...(await rowsOf(source, table))]);
}
const setCursor = ({ pipeline }: Loaded, cursor: string | null) =>
  service.deps.db
    .update(connectionStreams)
    .set(stateSetTo(cursor === null ? null : { cursor }))
    .where(eq(connectionStreams.connection_id, pipeline.connection.id));

/** Keeps a copy of a schema of the destination, as a backup or a standby does. @returns what restores it */
async function backUp({ schema }: Loaded): Promise<() => Promise<void>> {
  const tables = (await target`select tablename from pg_tables where schemaname = ${schema}`).map(
    (row) => row.tablename,
  );
  for (const name of tables) await target.unsafe(`create table public.${schema}_${name} as table ${schema}.${name}`);
  return async () => {
    for (const name of tables) {
      await target.unsafe(
        `delete from ${schema}.${name}; insert into ${schema}.${name} table public.${schema}_${name}`,
      );
    }
  };
}

describe.each<Mode>(['append', 'append_dedup'])('an incremental stream (%s)', (mode) => {
  const MISSING = 'destination_table_missing';
  test.each([
    ['table', MISSING, ({ schema, table }: Loaded) => `drop table ${schema}.${table}`],
    ['schema', MISSING, ({ schema }: Loaded) => `drop schema ${schema} cascade`],
    ['rows', 'destination_went_back', ({ schema, table }: Loaded) => `truncate ${schema}.${table}`],
    [
      'table and got an empty one',
      'destination_went_back',
      ({ schema, table }: Loaded) =>
        `create table ${schema}.copy (like ${schema}.${table}); drop table ${schema}.${table}; alter table ${schema}.copy rename to ${table}`,
    ],
  ])('whose destination lost its %s is read again from the start, with an event and %s', async (_, code, lose) => {
    const created = await loaded(mode, 'cursor');
    await addRows(created.table, MORE);
    await target.unsafe(lose(created));
    const second = await run(created.pipeline);
    expect(second).toMatchObject({ status: 'succeeded', codes: [code], events: 1 });
    expect(second.stream.rows_loaded).toBe(FIRST + MORE);
    await expectEqual(created);
    expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: [], events: 1 });
  });

  test('whose destination rewrote and altered its table continues, and so it does after a run without rows', async () => {
    const created = await loaded(mode, 'cursor');
    const { schema, table } = created;
    await target.unsafe(`alter table ${schema}.${table} alter column name type varchar(200)`);
    await target.unsafe(`vacuum full ${schema}.${table}`);
    expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: [], events: 0 });
    await target.unsafe(`truncate ${schema}.${table}`);
    expect(await run(created.pipeline)).toMatchObject({ codes: ['destination_went_back'], events: 1 });
    expect((await rowsOf(target, `${schema}.${table}`)).length).toBe(FIRST);
  });

  test('whose destination lost a column gets it again, with a warning that earlier rows have no value', async () => {
    const created = await loaded(mode, 'cursor');
    const { schema, table } = created;
    await target.unsafe(`alter table ${schema}.${table} drop column name`);
    await addRows(table, MORE);
    const second = await run(created.pipeline);
    expect(second).toMatchObject({ status: 'succeeded', codes: ['columns_lost'], events: 0 });
    expect(second.warnings[0]!.message).toContain('were added again: name.');
    const filled = (await rowsOf(target, `${schema}.${table}`)).filter(({ name }) => name !== null);
    expect(filled.map(({ id }) => id)).toEqual(Array.from({ length: MORE }, (_, at) => FIRST + 1 + at));
    expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
  });

  test('whose destination lost its last commits is read again from the position that it holds', async () => {
    const created = await loaded(mode, 'cursor');
    const restore = await backUp(created);
    await addRows(created.table, MORE);
    await run(created.pipeline);
    await restore();
    await addRows(created.table, MORE);
    const third = await run(created.pipeline);
    expect(third).toMatchObject({ status: 'succeeded', codes: ['destination_went_back'], events: 1 });
    expect(third.warnings[0]!.message).toContain(
      `the destination is at cursor ${FIRST} (commit 1), and the last run reached cursor ${FIRST + MORE} (commit 2)`,
    );
    expect(third.stream.rows_loaded).toBe(2 * MORE);
    await expectEqual(created);
    expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
  });
});

test('a merge into a table whose position is lost is read again from the start', async () => {
  const created = await loaded('append_dedup', 'cursor');
  await target.unsafe(
    `delete from ${created.schema}._pipeline_state; delete from ${created.schema}.${created.table} where id < 9`,
  );
  await addRows(created.table, MORE);
  expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: ['destination_went_back'] });
  await expectEqual(created);
});

test('an append to a table whose position is lost fails and names the choice; the cursor set by a user is taken', async () => {
  const created = await loaded('append', 'cursor');
  await target.unsafe(`delete from ${created.schema}._pipeline_state`);
  await addRows(created.table, MORE);
  const failed = await run(created.pipeline);
  expect(failed.error).toMatchObject({ code: 'destination_went_back', origin: 'destination', retryable: false });
  expect(failed.error!.message).toMatch(
    /has no record of a commit, and the last run reached cursor 40 .*Reset the cursor/,
  );
  expect(await run(created.pipeline)).toMatchObject({ status: 'failed' });
  await setCursor(created, String(FIRST + 1));
  expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
  expect((await rowsOf(target, `${created.schema}.${created.table}`)).length).toBe(FIRST + MORE);
});

describe('a stream read from the log', () => {
  const slotOf = ({ pipeline }: Loaded) => `pipeline_${pipeline.connection.id.replaceAll('-', '')}`;
  const change = (table: string) =>
    source.unsafe(
      `update ${table} set name = 'changed ' || clock_timestamp() where id <= 5; delete from ${table} where id = 6`,
    );

  test.each(['kept', 'gone'])('whose destination lost its last commits: the log since then is %s', async (log) => {
    const created = await loaded('append_dedup', 'log');
    const restore = await backUp(created);
    const slot = slotOf(created);
    if (log === 'kept') await source`select pg_copy_logical_replication_slot(${slot}, ${`${slot}_kept`})`;
    await change(created.table);
    await run(created.pipeline);
    await restore();
    if (log === 'kept') {
      await source`select pg_drop_replication_slot(${slot})`;
      await source`select pg_copy_logical_replication_slot(${`${slot}_kept`}, ${slot})`;
    }
    await addRows(created.table, MORE);
    const third = await run(created.pipeline);
    if (log === 'kept') {
      expect(third).toMatchObject({ status: 'succeeded', codes: ['destination_went_back'] });
    } else {
      expect(third.error).toMatchObject({ code: 'destination_went_back', origin: 'destination' });
      await setCursor(created, null);
      expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
    }
    await expectEqual(created);
  });

  test('whose destination lost a column gets it again, with a warning', async () => {
    const created = await loaded('append_dedup', 'log');
    await target.unsafe(`alter table ${created.schema}.${created.table} drop column name`);
    await addRows(created.table, MORE);
    expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: ['columns_lost'] });
  });

  test('whose destination lost its table is read again from a new snapshot', async () => {
    const created = await loaded('append_dedup', 'log');
    await change(created.table);
    await target.unsafe(`drop schema ${created.schema} cascade`);
    expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: ['destination_table_missing'] });
    await expectEqual(created);
    await change(created.table);
    expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
    await expectEqual(created);
  });
});

describe('files', () => {
  const filesRoot = join(service.deps.config.DATA_DIR, 'files');

  async function written(name: 'duckdb' | 'file', parameters: Record<string, unknown>) {
    const table = `t${++counter}`;
    await source.unsafe(`create table ${table} (id int primary key, name text)`);
    await addRows(table, FIRST);
    const pipeline = await makePipeline(service, {
      source: { name: 'postgres', parameters: postgresParameters(from.url) },
      destination: { name, parameters },
      only: [table],
      stream: { sync_mode: 'incremental', destination_sync_mode: 'append', cursor_field: ['id'] },
    });
    expect((await run(pipeline)).status).toBe('succeeded');
    return { pipeline, table };
  }

  test('a DuckDB file restored from yesterday is filled up from its own position', async () => {
    const { pipeline, table } = await written('duckdb', { path: 'went.duckdb' });
    const path = join(filesRoot, 'went.duckdb');
    copyFileSync(path, `${path}.copy`);
    await addRows(table, MORE);
    await run(pipeline);
    rmSync(`${path}.wal`, { force: true });
    copyFileSync(`${path}.copy`, path);
    const third = await run(pipeline);
    expect(third).toMatchObject({ status: 'succeeded', codes: ['destination_went_back'] });
    expect(third.stream.rows_loaded).toBe(MORE);
  });

  test('a folder that is gone is written again; files that were moved away are not missed', async () => {
    const { pipeline, table } = await written('file', { path: 'out', format: 'jsonl' });
    const folder = join(filesRoot, 'out', table);
    const lines = () =>
      readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'));
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    await addRows(table, MORE);
    expect(await run(pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
    expect(lines().length).toBe(MORE);
    rmSync(join(filesRoot, 'out'), { recursive: true });
    expect(await run(pipeline)).toMatchObject({ status: 'succeeded', codes: ['destination_table_missing'] });
    expect(lines().length).toBe(FIRST + MORE);
  });

  test('a folder that lost the record of its commits is not written twice', async () => {
    const { pipeline } = await written('file', { path: 'kept', format: 'jsonl' });
    rmSync(join(filesRoot, 'kept', '_pipeline_state'), { recursive: true });
    const failed = await run(pipeline);
    expect(failed.error).toMatchObject({ code: 'destination_went_back' });
    expect(await run(pipeline)).toMatchObject({ status: 'failed' });
  });
});

describe('a source', () => {
  const filesRoot = join(service.deps.config.DATA_DIR, 'files');
  const write: Record<string, (path: string, statements: string[]) => Promise<void>> = {
    async sqlite(path, statements) {
      const database = new Database(path);
      for (const statement of statements) database.run(statement);
      database.close();
    },
    async duckdb(path, statements) {
      const instance = await DuckDBInstance.create(path);
      const connection = await instance.connect();
      for (const statement of statements) await connection.run(statement);
      connection.closeSync();
      instance.closeSync();
    },
  };

  test.each(Object.keys(write))('in a %s file that became an older copy or another file', async (name) => {
    const file = `source.${name}`;
    const path = join(filesRoot, file);
    mkdirSync(filesRoot, { recursive: true });
    await write[name]!(path, ['create table t (id integer)', 'insert into t values (1), (2)']);
    const pipeline = await makePipeline(service, {
      source: { name, parameters: { path: file } },
      destination: { name: 'postgres', parameters: postgresParameters(to.url) },
      only: ['t'],
      connection: { destination_schema: `from_${name}` },
      stream: { sync_mode: 'incremental', destination_sync_mode: 'append', cursor_field: ['id'] },
    });
    expect(await run(pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
    copyFileSync(path, `${path}.copy`);
    await write[name]!(path, ['insert into t values (3)']);
    expect(await run(pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
    copyFileSync(`${path}.copy`, path);
    const refused = await run(pipeline);
    expect(refused.error).toMatchObject({ code: 'source_went_back', origin: 'source', retryable: false });
    expect(refused.error!.message).toMatch(
      /cannot continue from cursor 3: .* change \d+.* change \d+.*no row at or after/,
    );
    // A file that was built again, with the rows that were read and one more.
    rmSync(path);
    await write[name]!(path, ['create table t as select 1 as id union all select 3 union all select 4']);
    expect(await run(pipeline)).toMatchObject({ status: 'succeeded', codes: ['source_changed'] });
    expect(await run(pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
    expect((await target.unsafe(`select id from from_${name}.t order by 1`)).map(({ id }) => Number(id))).toEqual([
      1, 2, 3, 4,
    ]);
  });

  test('of another server is refused by both records of it, until the cursor is set', async () => {
    const created = await loaded('append', 'cursor');
    const { id } = created.pipeline.connection;
    await service.deps.db
      .update(connectionStreams)
      .set({ state: expression`jsonb_set(${connectionStreams.state}, '{origin,system_identifier}', '"7"')` })
      .where(eq(connectionStreams.connection_id, id));
    expect((await run(created.pipeline)).error).toMatchObject({
      code: 'source_went_back',
      message: expect.stringMatching(/it was read from the server 7, and this is \d+\. Reset the cursor/),
    });
    const [held] = await target.unsafe(
      `select state::jsonb -> 'origin' ->> 'system_identifier' as server from ${created.schema}._pipeline_state`,
    );
    expect(held!.server).toMatch(/^\d{10,}$/);
    await setCursor(created, String(FIRST));
    expect(await run(created.pipeline)).toMatchObject({ status: 'succeeded', codes: [] });
  });
});
