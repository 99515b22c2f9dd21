import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { changeReaders, connectionStreams } from '../../db/schema/index.ts';
import type { StreamState } from '../../server/connectors/contract/connector.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { closeGate } from '../support/gate.ts';
import { startOwnServer } from '../support/postgres.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { type Limits, startTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

// So little that each batch of a large transaction is a part.
const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0, CHECKPOINT_KB: 64 } });
const worker = await startWorker(service.deps);
// Its slots are for these tests alone.
const sourceServer = await startOwnServer();
const [from, to] = [await createPlainDatabase(sourceServer), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  await worker.stop();
  await source`select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = current_database()`;
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
  await sourceServer.stop();
});

const ODD_TEXT = 'tab\t line\n return\r back\\slash \\N \\. \b\f\v ä 😀';

/** A connection that follows the tables of a schema, after its first run. */
async function follow(schema: string, tables: string, at = from.url): Promise<Pipeline> {
  await source.unsafe(`create schema ${schema}; set search_path = ${schema}; ${tables}; reset search_path`);
  const pipeline = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: { ...postgresParameters(at), replication: 'logical', schemas: [schema] },
    },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
    connection: { destination_schema: schema },
  });
  await succeeded(await pipeline.start());
  return pipeline;
}

const settings = `alter database ${new URL(from.url).pathname.slice(1)}`;
const slotOf = ({ connection }: Pipeline) => `pipeline_${connection.id.replaceAll('-', '')}`;

/** Of the slot, for reads by several statements. */
const copiesOf = (slot: string) => source`select 1 from pg_replication_slots where slot_name like ${`${slot}\\_%`}`;

const logBytes = (megabytes: number) =>
  source`select count(pg_logical_emit_message(false, '', repeat('x', 1_000_000))) from generate_series(1, ${megabytes}::int)`;

async function succeeded(run_id: string) {
  const { status } = await runEnded(service, run_id);
  const streams = await getStreamRuns(service, run_id);
  expect(streams.flatMap(({ error }) => error ?? [])).toEqual([]);
  expect(status).toBe('succeeded');
  return streams;
}

async function compare(table: string): Promise<void> {
  const text = `select count(*)::int as n, md5(string_agg(row(id, n, filler)::text, ',' order by id)) as sum from ${table}`;
  const [[theirs], [ours]] = await Promise.all([source.unsafe(text), target.unsafe(text)]);
  expect({ table, ...ours }).toEqual({ table, ...theirs });
}

/** @returns how many statements have put rows into the table since */
async function countMerges(schema: string, table: string): Promise<() => Promise<number>> {
  await target.unsafe(`create table ${schema}.merges (n int);
    create function ${schema}.count_merge() returns trigger language plpgsql as $$
      begin insert into ${schema}.merges values (1); return null; end $$;
    create trigger counted after insert on ${schema}.${table} for each statement execute function ${schema}.count_merge()`);
  return async () => {
    const [row] = await target.unsafe(`select count(*)::int as n from ${schema}.merges`);
    return row!.n as number;
  };
}

describe('a transaction that is larger than a commit', () => {
  test('is merged while it arrives, and shows whole', async () => {
    const pipeline = await follow(
      'arriving',
      `create table wide (id int primary key, n int, filler text);
       alter table wide alter filler set storage external;
       insert into wide select g, g, 'x' from generate_series(1, 20) g;
       create table beside (id int primary key, n int, filler text);
       insert into beside values (1, 1, 'x')`,
    );
    const merges = await countMerges('arriving', 'wide');
    await source.begin(async (tx) => {
      await tx`insert into arriving.wide select g, g, repeat('x', 500) from generate_series(101, 4100) g`;
      // Too long to be logged again by the updates below.
      await tx`insert into arriving.wide select g, g, repeat('y', 3000) from generate_series(5001, 5300) g`;
      await tx`update arriving.wide set n = 0 where id <= 20`;
      await tx`update arriving.wide set n = n + 1, filler = filler || '.' where id between 101 and 4100`;
      await tx`update arriving.wide set n = n + 1 where id between 5001 and 5300`;
      await tx`update arriving.wide set id = id + 100000 where id % 11 = 0`;
      await tx`delete from arriving.wide where id % 7 = 0`;
      await tx`update arriving.beside set n = 2`;
      await tx`insert into arriving.beside values (2, null, ${ODD_TEXT}), (3, 3, null), (4, 4, '')`;
      await tx`insert into arriving.wide values (999999, 1, 'last')`;
    });
    const gate = await closeGate(to.url, 'arriving.wide', 'new.id = 999999');
    const id = await pipeline.start();
    await gate.reached();
    const [seen] = await target`select count(*)::int as rows, sum(n)::int as sum from arriving.wide`;
    expect(seen).toMatchObject({ rows: 20, sum: 210 });
    await gate.open();
    await succeeded(id);
    expect(await merges()).toBeGreaterThan(2);
    for (const table of ['wide', 'beside']) await compare(`arriving.${table}`);
  });

  test('in which two rows exchange a unique value, far apart, is merged at its end', async () => {
    const pipeline = await follow(
      'swapped',
      `create table pairs (id int primary key, n int unique deferrable initially deferred, filler text);
       insert into pairs select g, g, 'x' from generate_series(1, 20) g`,
    );
    await target`alter table swapped.pairs add unique (n)`;
    const merges = await countMerges('swapped', 'pairs');
    await source.begin(async (tx) => {
      await tx`insert into swapped.pairs select g, g, repeat('x', 500) from generate_series(101, 3100) g`;
      await tx`update swapped.pairs set n = 2 where id = 1`;
      await tx`insert into swapped.pairs select g, g, repeat('x', 500) from generate_series(5001, 8000) g`;
      await tx`update swapped.pairs set n = 1 where id = 2`;
    });
    await succeeded(await pipeline.start());
    expect(await merges()).toBeGreaterThan(1);
    await compare('swapped.pairs');
    // The next one is merged in parts again.
    const before = await merges();
    await source`update swapped.pairs set filler = filler || '.'`;
    await succeeded(await pipeline.start());
    expect(await merges()).toBeGreaterThan(before + 2);
    await compare('swapped.pairs');
  });
});

test('changes of all kinds keep their order, in small transactions and in large ones', async () => {
  const pipeline = await follow(
    'mixed',
    `create table rows (id int primary key, n int, filler text); alter table rows alter filler set storage external;
     create table whole (like rows including all); alter table whole replica identity full`,
  );
  for (const [seed, changes, keepsInFile] of [
    [0.1, 50, true],
    [0.2, 50, false],
    [0.3, 6000, true],
    [0.4, 6000, false],
  ] as const) {
    // Of a server that limits them, the log is read as a stream.
    await source.unsafe(`${settings} set temp_file_limit = ${keepsInFile ? -1 : 1_000_000}`);
    await source.unsafe(`do $$ declare what float; key int; begin perform setseed(${seed});
      for at in 1 .. ${changes} loop
        what := random(); key := floor(random() * 200);
        if what < 0.35 then insert into mixed.rows values (key, at, case when at % 3 = 0 then repeat('long', 900) else e'\\t' || at end) on conflict do nothing;
        elsif what < 0.6 then update mixed.rows set n = at where id = key;
        elsif what < 0.7 then update mixed.rows set filler = null where id = key;
        elsif what < 0.8 then update mixed.rows set id = 1000 - id where id = key and not exists (select from mixed.rows r where r.id = 1000 - key);
        elsif what < 0.999 then delete from mixed.rows where id in (key, 1000 - key);
        else truncate mixed.rows; end if;
        if what < 0.3 then insert into mixed.whole values (key, at, 'x') on conflict (id) do update set n = at; end if;
        if what > 0.9 then delete from mixed.whole where id = key; end if;
        if ${changes < 100} and at % 3 = 0 then commit; end if;
      end loop; end $$`);
    await succeeded(await pipeline.start());
    for (const table of ['rows', 'whole']) await compare(`mixed.${table}`);
  }
  await source.unsafe(`${settings} reset temp_file_limit`);
});

test.each([
  ['by statements', 'confirmed_slices', -1],
  ['as a stream', 'confirmed_stream', 1_000_000],
])('a run that reads its log %s confirms what is committed meanwhile', async (_, schema, temp_file_limit) => {
  const pipeline = await follow(
    schema,
    `create table parts (id int primary key, n int, filler text); insert into parts values (0, 0, 'x')`,
  );
  const slot = slotOf(pipeline);
  const stateOf = async () => {
    const [row] = await service.deps.db
      .select({ state: connectionStreams.state })
      .from(connectionStreams)
      .where(eq(connectionStreams.connection_id, pipeline.connection.id));
    return (row!.state as StreamState).cursor;
  };
  const isConfirmed = async (cursor: string | null) => {
    const [row] =
      await source`select confirmed_flush_lsn > ${cursor}::pg_lsn as moved from pg_replication_slots where slot_name = ${slot}`;
    return row!.moved as boolean;
  };
  const before = await stateOf();
  await source.unsafe(`${settings} set temp_file_limit = ${temp_file_limit}`);
  // So much that it is confirmed as soon as something is committed.
  if (temp_file_limit === -1) await logBytes(300);
  // Some of them are committed before the first gate, and between the gates are more than are read ahead. The first
  // statement returns eleven of them, the second one twice as many.
  await source.unsafe(`do $$ begin for n in 1 .. 40 loop
    insert into ${schema}.parts select n * 10000 + g, n, repeat('x', 1000) from generate_series(1, 1500) g; commit;
  end loop; end $$`);
  const [first, last] = [
    await closeGate(to.url, `${schema}.parts`, 'new.n = 3'),
    await closeGate(to.url, `${schema}.parts`, 'new.n = 40'),
  ];
  const id = await pipeline.start();
  await first.reached();
  expect(await copiesOf(slot)).toHaveLength(temp_file_limit === -1 ? 1 : 0);
  await until(async () => (await stateOf()) !== before);
  await first.open();
  await last.reached();
  await until(() => isConfirmed(before));
  await last.open();
  await succeeded(id);
  await source.unsafe(`${settings} reset temp_file_limit`);
  await compare(`${schema}.parts`);
});

test('a log that is read by several statements arrives whole', async () => {
  const pipeline = await follow(
    'slices',
    `create table parts (id int primary key, n int, filler text); insert into parts select n, 0, 'x' from generate_series(1, 1000) n`,
  );
  const other = postgres(from.url, { max: 1, onnotice: () => {} });
  // Begins in the log that the first statement returns, and ends in that of the third one.
  await other.begin(async (tx) => {
    await tx`update slices.parts set filler = 'late' where id <= 10`;
    await tx`insert into slices.parts select 5000 + n, 1, repeat('y', 100) from generate_series(1, 3000) n`;
    for (let part = 0; part < 3; part += 1) {
      await source.unsafe(`do $$ begin for again in 1 .. 30 loop for key in 100 .. 300 loop
        update slices.parts set n = n + ${part} where id = key; commit;
        if key % 3 = 0 then delete from slices.parts where id = key + 300 * ${part}; commit; end if;
      end loop; end loop; end $$`);
    }
    await tx`delete from slices.parts where id > 7000`;
  });
  await other.end();
  await source`update slices.parts set n = -1 where id = 5001`;
  await succeeded(await pipeline.start());
  await compare('slices.parts');
  // The copy of the slot ends with the read.
  await until(async () => (await copiesOf(slotOf(pipeline))).length === 0);
});

test('soon after a run, its slot keeps little of the log that was read, and the next run decodes none of it again', async () => {
  const pipeline = await follow(
    'let_go',
    `create table parts (id int primary key, n int, filler text); insert into parts values (0, 0, 'x')`,
  );
  await source`insert into let_go.parts select n, n, repeat('x', 500) from generate_series(1, 60000) n`;
  // The server goes on to write: it vacuums the table.
  const [end] = await source`select pg_current_wal_lsn()::text as lsn`;
  const kept = async () => {
    const [row] = await source`select (${end!.lsn}::pg_lsn - restart_lsn)::float8 as bytes
      from pg_replication_slots where slot_name = ${slotOf(pipeline)}`;
    return row!.bytes as number;
  };
  expect(await kept()).toBeGreaterThan(30_000_000);
  await succeeded(await pipeline.start());
  await until(async () => (await kept()) < 1_000_000);
  const { db } = service.deps;
  await until(async () => {
    const [reader] = await db
      .select({ lag_bytes: changeReaders.lag_bytes })
      .from(changeReaders)
      .innerJoin(connectionStreams, eq(connectionStreams.id, changeReaders.stream_id))
      .where(eq(connectionStreams.connection_id, pipeline.connection.id));
    return reader!.lag_bytes! < 20_000_000;
  });
  await compare('let_go.parts');
});

test('a long log of a source without a free slot arrives as a stream', async () => {
  const pipeline = await follow(
    'no_slot',
    `create table parts (id int primary key, n int, filler text); insert into parts values (0, 0, 'x')`,
  );
  await source`insert into no_slot.parts select n, n, 'y' from generate_series(1, 2000) n`;
  await logBytes(130);
  const taken = await source`select pg_create_physical_replication_slot('taken_' || n) from generate_series(1,
    current_setting('max_replication_slots')::int - (select count(*) from pg_replication_slots)) n`;
  expect(taken.length).toBeGreaterThan(0);
  await succeeded(await pipeline.start());
  await compare('no_slot.parts');
  await source`select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name like 'taken%'`;
});

test('a source that ends the statement which reads its log loses and doubles nothing', async () => {
  const { hostname, port } = new URL(from.url);
  const line: Limits = {};
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) }, line);
  const through = new URL(from.url);
  through.host = `127.0.0.1:${proxy.port}`;
  const pipeline = await follow(
    'cut_off',
    `create table parts (id int primary key, n int, filler text); insert into parts values (0, 0, 'x')`,
    through.href,
  );
  // More than the first statement reads.
  await logBytes(40);
  await source.unsafe(`do $$ begin for n in 1 .. 60 loop
    insert into cut_off.parts select n * 1000 + g, n, repeat('x', 1500) from generate_series(1, 600) g;
    delete from cut_off.parts where id % 1000 = 1; commit;
  end loop; end $$`);
  const gate = await closeGate(to.url, 'cut_off.parts', 'new.n = 2');
  // So slow that the statement has not ended at the gate, however busy the machine is.
  line.bytes_per_second = 1_500_000;
  const id = await pipeline.start();
  await gate.reached();
  const ended = await source`select pg_terminate_backend(pid) from pg_stat_activity
    where state = 'active' and datname = current_database() and query like 'copy (select data from pg_catalog.pg_logical%'`;
  expect(ended).toHaveLength(1);
  delete line.bytes_per_second;
  await gate.open();
  const [stream] = await succeeded(id);
  expect(stream?.attempt).toBeGreaterThan(1);
  await compare('cut_off.parts');
  proxy.stop();
});
