import { afterAll, describe, expect, test } from 'bun:test';
import { and, eq, inArray } from 'drizzle-orm';
import postgres from 'postgres';
import { changeReaders, connectionStreams } from '../../db/schema/index.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { stateSetTo } from '../../server/runs/set-state.ts';
import { checkCdcConsumers } from '../../server/transfer/watch-cdc-consumers.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { db } = service.deps;
const worker = await startWorker(service.deps);
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 4, onnotice: () => {} });
const target = postgres(to.url, { max: 2, onnotice: () => {} });
afterAll(async () => {
  await worker.stop();
  for (const { slot_name } of await slots()) await source`select pg_drop_replication_slot(${slot_name})`;
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

const slots = () => source`select slot_name from pg_replication_slots where database = current_database()`;
const slotOf = ({ connection }: Pipeline) => `pipeline_${connection.id.replaceAll('-', '')}`;
const ofConnection = ({ connection }: Pipeline) => eq(connectionStreams.connection_id, connection.id);

/** A connection that follows all tables of a schema into a schema of the same name. */
async function follow(schema: string, more: { selected?: string[] } = {}): Promise<Pipeline> {
  const pipeline = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: { ...postgresParameters(from.url), replication: 'logical', schemas: [schema] },
    },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
    connection: { destination_schema: schema, max_parallel_streams: 2 },
  });
  if (more.selected) {
    await db.update(connectionStreams).set({ selected: false }).where(ofConnection(pipeline));
    await select(pipeline, more.selected, true);
  }
  return pipeline;
}

const select = (pipeline: Pipeline, names: string[], selected: boolean) =>
  db
    .update(connectionStreams)
    .set({ selected })
    .where(and(ofConnection(pipeline), inArray(connectionStreams.name, names)));

async function run(pipeline: Pipeline) {
  const id = await pipeline.start();
  const { status } = await runEnded(service, id);
  const streams = await getStreamRuns(service, id);
  return { id, status, streams, of: (name: string) => streams.find(({ stream_name }) => stream_name === name)! };
}

async function succeeded(pipeline: Pipeline) {
  const ended = await run(pipeline);
  expect(ended.streams.flatMap(({ error }) => error ?? [])).toEqual([]);
  expect(ended.status).toBe('succeeded');
  return ended;
}

/** Number and sum of the rows of a table, the same on both sides. */
async function compare(schema: string, tables: string[]) {
  for (const table of tables) {
    const text = `select count(*)::int as n, md5(coalesce(string_agg(row(id, n)::text, ',' order by id), '')) as sum from ${schema}.${table}`;
    const [[theirs], [ours]] = await Promise.all([source.unsafe(text), target.unsafe(text)]);
    expect({ table, ...ours }).toEqual({ table, ...theirs });
  }
}

const create = (schema: string, tables: string[]) =>
  source.unsafe(
    `create schema ${schema};` +
      tables
        .map(
          (table) =>
            `create table ${schema}.${table} (id int primary key, n int); insert into ${schema}.${table} select i, 100 from generate_series(1, 20) i;`,
        )
        .join(''),
  );

describe('streams of one connection that are read from the log', () => {
  test('show a total that the source had, at every look, while transfers between two tables go on', async () => {
    await create('bank', ['giro', 'savings']);
    const pipeline = await follow('bank');
    const goesOn = { transfers: true, looks: true };
    let transfers = 0;
    const transferring = (async () => {
      while (goesOn.transfers) {
        transfers += 1;
        const [a, b] = transfers % 2 ? ['giro', 'savings'] : ['savings', 'giro'];
        await source.begin(async (tx) => {
          await tx.unsafe(`update bank.${a} set n = n - 7 where id = ${(transfers % 20) + 1}`);
          await tx.unsafe(`update bank.${b} set n = n + 7 where id = ${((transfers * 7) % 20) + 1}`);
        });
      }
    })();
    const totals = new Map<string, number>();
    const looking = (async () => {
      while (goesOn.looks) {
        const [tables] = await target`select to_regclass('bank.giro') a, to_regclass('bank.savings') b`;
        const looked = [tables!.a, tables!.b].some((table) => table === null)
          ? [{ total: tables!.a ?? tables!.b }]
          : await target`select (select sum(n) from bank.giro) + (select sum(n) from bank.savings) as total`;
        const total = String(looked[0]!.total);
        totals.set(total, (totals.get(total) ?? 0) + 1);
      }
    })();
    for (let round = 0; round < 3; round += 1) {
      const done = transfers + 20;
      await until(() => transfers >= done);
      await succeeded(pipeline);
    }
    goesOn.transfers = false;
    await transferring;
    await succeeded(pipeline);
    goesOn.looks = false;
    await looking;
    // null: before the first commit there are no tables.
    expect([...totals.keys()].toSorted()).toEqual(['4000', 'null']);
    await compare('bank', ['giro', 'savings']);
  });

  test('have one slot and one publication, however many they are', async () => {
    const tables = Array.from({ length: 20 }, (_, at) => `t${at}`);
    const others = (await slots()).length;
    await create('many', tables);
    const pipeline = await follow('many');
    await succeeded(pipeline);
    await source`insert into many.t3 values (21, 1)`;
    await source`delete from many.t7 where id = 5`;
    await source`truncate many.t9, many.t10`;
    const second = await succeeded(pipeline);
    expect(second.streams.map(({ fence }) => fence)).toEqual(tables.map(() => second.streams[0]!.fence));
    expect([second.of('t3').rows_loaded, second.of('t7').rows_deleted, second.of('t0').rows_read]).toEqual([1, 1, 0]);
    expect(second.of('t9').rows_deleted).toBe(20);
    await compare('many', tables);
    expect(await slots()).toHaveLength(others + 1);
    const [published] =
      await source`select count(*)::int as n from pg_publication_tables where pubname = ${slotOf(pipeline)}`;
    expect(published!.n).toBe(20);
  });

  test('that had slots of their own are taken over without a gap', async () => {
    await create('older', ['one', 'two', 'three']);
    const pipeline = await follow('older', { selected: ['one', 'two'] });
    const { replication } = postgresSource;
    delete postgresSource.replication;
    await succeeded(pipeline);
    await source`update older.one set n = n + 1`;
    await succeeded(pipeline);
    postgresSource.replication = replication;
    const before = (await slots()).map(({ slot_name }) => slot_name as string);
    expect(before).not.toContain(slotOf(pipeline));
    await source`update older.one set n = n + 1 where id < 10`;
    await source`delete from older.two where id < 5`;
    await select(pipeline, ['three'], true);
    await succeeded(pipeline);
    await compare('older', ['one', 'two', 'three']);
    await source`update older.two set n = n + 1`;
    await source`update older.three set n = n + 1`;
    await succeeded(pipeline);
    await compare('older', ['one', 'two', 'three']);
    const streams = await db.select().from(connectionStreams).where(ofConnection(pipeline));
    const left = (await slots()).map(({ slot_name }) => slot_name as string);
    expect(left).toContain(slotOf(pipeline));
    for (const { id } of streams) expect(left).not.toContain(`pipeline_${id.replaceAll('-', '')}`);
  });

  test('go on when one is added, reset or removed', async () => {
    await create('growing', ['one', 'two', 'three']);
    const pipeline = await follow('growing', { selected: ['one', 'two'] });
    await succeeded(pipeline);
    await source`update growing.one set n = 1 where id = 1`;
    await source`update growing.three set n = 1 where id = 1`;
    await select(pipeline, ['three'], true);
    const added = await succeeded(pipeline);
    expect([added.of('one').rows_read, added.of('three').rows_read]).toEqual([1, 20]);
    await source`delete from growing.two where id = 1`;
    await source`update growing.three set n = 2`;
    const two = and(ofConnection(pipeline), eq(connectionStreams.name, 'two'));
    await db.update(connectionStreams).set(stateSetTo(null)).where(two);
    const reset = await succeeded(pipeline);
    expect([reset.of('two').rows_read, reset.of('three').rows_read]).toEqual([19, 20]);
    await compare('growing', ['one', 'two', 'three']);
    await select(pipeline, ['one'], false);
    const [stream] = await db
      .select()
      .from(connectionStreams)
      .where(and(ofConnection(pipeline), eq(connectionStreams.name, 'one')));
    await until(async () => {
      await checkCdcConsumers(service.deps);
      return (await db.select().from(changeReaders).where(eq(changeReaders.stream_id, stream!.id))).length === 0;
    });
    const published = await source`select tablename from pg_publication_tables where pubname = ${slotOf(pipeline)}`;
    expect(published.map(({ tablename }) => tablename).toSorted()).toEqual(['three', 'two']);
    await source`update growing.two set n = 3`;
    await succeeded(pipeline);
    await compare('growing', ['two', 'three']);
    await select(pipeline, ['two', 'three'], false);
    // Like two workers that release the last two streams at the same time.
    await Promise.all([checkCdcConsumers(service.deps), checkCdcConsumers(service.deps)]);
    await until(async () => !(await slots()).some(({ slot_name }) => slot_name === slotOf(pipeline)));
  });

  test('go on when one of them fails, which continues later from where it stopped', async () => {
    await create('parked', ['bad', 'fine']);
    const pipeline = await follow('parked');
    await succeeded(pipeline);
    await target`alter table parked.bad add constraint small check (n < 1000)`;
    await source.begin(async (tx) => {
      await tx`update parked.bad set n = 5000 where id = 1`;
      await tx`update parked.fine set n = 5000 where id = 1`;
    });
    const failed = await run(pipeline);
    expect(failed.status).toBe('partially_succeeded');
    expect(failed.of('bad').error).toMatchObject({ origin: 'destination', stream_name: 'bad' });
    expect(failed.of('fine')).toMatchObject({ status: 'succeeded', rows_updated: 1 });
    await compare('parked', ['fine']);
    await source`delete from parked.bad where id = 2`;
    await source`insert into parked.fine values (30, 30)`;
    expect((await run(pipeline)).status).toBe('partially_succeeded');
    await compare('parked', ['fine']);
    await target`alter table parked.bad drop constraint small`;
    const whole = await succeeded(pipeline);
    expect(whole.of('bad')).toMatchObject({ rows_updated: 1, rows_deleted: 1 });
    await compare('parked', ['bad', 'fine']);
  });
});
