import { afterAll, describe, expect, test } from 'bun:test';
import { and, eq, inArray, sql } from 'drizzle-orm';
import postgres from 'postgres';
import {
  accountConnectors,
  changeReaders,
  connectionRuns,
  connections,
  connectionStreams,
} from '../../db/schema/index.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { selectConnection } from '../../server/resources/connections/query.ts';
import { stateSetTo } from '../../server/runs/set-state.ts';
import { checkCdcConsumers } from '../../server/transfer/replication/watch-cdc-consumers.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { logServer } from '../support/postgres.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

/** Between transfers and between looks: as fast as they can go, they take a processor for themselves. */
const PACE_MS = 5;

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { db } = service.deps;
const worker = await startWorker(service.deps);
const [from, to] = [await createPlainDatabase(await logServer()), await createPlainDatabase()];
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

const CONTINUOUS = {
  schedule: {
    type: 'continuous' as const,
    interval_minutes: null,
    cron_expression: null,
    timezone: 'UTC',
    time_of_day: null,
  },
  next_run_at: new Date().toISOString(),
};

const runsOf = ({ connection }: Pipeline) =>
  db
    .select()
    .from(connectionRuns)
    .where(eq(connectionRuns.connection_id, connection.id))
    .orderBy(connectionRuns.number);

/** Changes the connection as an update does. */
const change = ({ connection }: Pipeline, columns: Partial<typeof connections.$inferInsert>) =>
  db
    .update(connections)
    .set({ ...columns, revision: sql`${connections.revision} + 1` })
    .where(eq(connections.id, connection.id));

/** Both sides have the same rows, which they have within moments while a run follows the log. */
const arrives = (text: string) =>
  until(async () => {
    const [[ours], [theirs]] = await Promise.all([target.unsafe(text), source.unsafe(text)]);
    return Bun.deepEquals({ ...ours }, { ...theirs });
  });

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
        await Bun.sleep(PACE_MS);
      }
    })();
    const totals = new Map<string, number>();
    const looking = (async () => {
      while (goesOn.looks) {
        const [tables] = await target`select to_regclass('bank.giro') a, to_regclass('bank.savings') b`;
        const looked = [tables!.a, tables!.b].some((table) => table === null)
          ? [{ total: null }]
          : await target`select (select sum(n) from bank.giro) + (select sum(n) from bank.savings) as total`;
        const total = String(looked[0]!.total);
        totals.set(total, (totals.get(total) ?? 0) + 1);
        await Bun.sleep(PACE_MS);
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
    // null: until both are copied. They appear one after the other, and are of one moment.
    expect([...totals.keys()].toSorted()).toEqual(['4000', 'null']);
    await compare('bank', ['giro', 'savings']);
  });

  test('have one slot and one publication, however many they are', async () => {
    const tables = Array.from({ length: 11 }, (_, at) => `t${at}`);
    const others = (await slots()).length;
    await create('many', tables);
    const pipeline = await follow('many');
    const first = await succeeded(pipeline);
    const copied = first.streams.filter(({ log }) => log.some(({ code }) => code === 'copying'));
    expect(copied).toHaveLength(tables.length);
    // Of one moment.
    expect(new Set(first.streams.map(({ cursor_after }) => cursor_after)).size).toBe(1);
    await source`insert into many.t3 values (21, 1)`;
    await source`delete from many.t7 where id = 5`;
    await source`truncate many.t9, many.t10`;
    const second = await succeeded(pipeline);
    expect(second.streams.map(({ fence }) => fence)).toEqual(tables.map(() => second.streams[0]!.fence));
    expect([second.of('t3').rows_loaded, second.of('t7').rows_deleted, second.of('t0').rows_read]).toEqual([1, 1, 0]);
    expect(second.of('t9').rows_deleted).toBe(20);
    await compare('many', tables);
    expect(await slots()).toHaveLength(others + 1);
    const [slot] = await source`select failover from pg_replication_slots where slot_name = ${slotOf(pipeline)}`;
    expect(slot!.failover).toBe(true);
    const [published] =
      await source`select count(*)::int as n from pg_publication_tables where pubname = ${slotOf(pipeline)}`;
    expect(published!.n).toBe(tables.length);
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

  test('keep foreign keys of their tables, whatever the order of the changes in a transaction', async () => {
    await create('keys', ['a_child', 'parent']);
    const pipeline = await follow('keys');
    await succeeded(pipeline);
    await target.unsafe(`alter table keys.a_child add foreign key (id) references keys.parent`);
    await source.begin(async (tx) => {
      await tx`insert into keys.parent select i, 1 from generate_series(21, 30) i`;
      await tx`insert into keys.a_child select i, 1 from generate_series(21, 30) i`;
      await tx`delete from keys.a_child where id < 5`;
      await tx`delete from keys.parent where id < 5`;
    });
    await succeeded(pipeline);
    await compare('keys', ['a_child', 'parent']);
    const [key] = await target`select condeferrable, condeferred from pg_constraint where contype = 'f'`;
    expect(key).toMatchObject({ condeferrable: true, condeferred: false });
    // The source has no such key.
    await source`insert into keys.a_child values (99, 1)`;
    await source`insert into keys.parent values (31, 1)`;
    const broken = await run(pipeline);
    expect(broken.of('a_child').error).toMatchObject({ code: 'foreign_key_violation', origin: 'destination' });
    expect(broken.of('parent').status).toBe('succeeded');
    await compare('keys', ['parent']);
    await source`insert into keys.parent values (99, 1)`;
    await succeeded(pipeline);
    await compare('keys', ['a_child', 'parent']);
  });

  test('go on when one of them cannot be applied, and the slot moves on; after a reset its table is read again', async () => {
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
    expect(failed.of('bad').warnings.map(({ code }) => code)).toContain('stream_parked');
    expect(failed.of('fine')).toMatchObject({ status: 'succeeded', rows_updated: 1 });
    const shown = await selectConnection(db, pipeline.connection);
    expect(shown!.streams.map(({ name, parked }) => [name, parked?.code, parked?.origin])).toEqual([
      ['bad', failed.of('bad').error!.code, 'destination'],
      ['fine', undefined, undefined],
    ]);
    await compare('parked', ['fine']);
    const confirmed = async () => {
      const [slot] =
        await source`select confirmed_flush_lsn >= ${failed.of('fine').cursor_after}::pg_lsn as moved from pg_replication_slots where slot_name = ${slotOf(pipeline)}`;
      return slot!.moved as boolean;
    };
    expect(await confirmed()).toBe(true);
    await target`alter table parked.bad drop constraint small`;
    await source`delete from parked.bad where id = 2`;
    await source`insert into parked.fine values (30, 30)`;
    const still = await run(pipeline);
    expect(still.status).toBe('partially_succeeded');
    expect(still.of('bad').error).toMatchObject({ code: failed.of('bad').error!.code, origin: 'destination' });
    const { message } = still.of('bad').error!;
    expect(message).toContain("Reset the stream's cursor");
    expect((await run(pipeline)).of('bad').error!.message).toBe(message);
    await compare('parked', ['fine']);
    const bad = and(ofConnection(pipeline), eq(connectionStreams.name, 'bad'));
    await db.update(connectionStreams).set(stateSetTo(null)).where(bad);
    const whole = await succeeded(pipeline);
    expect([whole.of('bad').rows_read, whole.of('fine').rows_read]).toEqual([19, 0]);
    await compare('parked', ['bad', 'fine']);
    await source`update parked.bad set n = n + 1`;
    await succeeded(pipeline);
    await compare('parked', ['bad', 'fine']);
  });

  test('whose slot was dropped fail, and leave the source to other connections; after a reset they are read again', async () => {
    await create('dropped', ['one', 'two', 'three']);
    const pipeline = await follow('dropped');
    await succeeded(pipeline);
    await source`select pg_drop_replication_slot(${slotOf(pipeline)})`;
    const failed = await run(pipeline);
    expect(failed.streams.map(({ error }) => error?.code)).toEqual(Array(3).fill('replication_slot_missing'));
    const [{ status } = {}] = await db
      .select({ status: accountConnectors.status })
      .from(accountConnectors)
      .where(eq(accountConnectors.id, pipeline.connection.source_id));
    expect(status).toBe('active');
    await source`update dropped.one set n = 7 where id = 7`;
    await db.update(connectionStreams).set(stateSetTo(null)).where(ofConnection(pipeline));
    await succeeded(pipeline);
    await compare('dropped', ['one', 'two', 'three']);
  });
});

describe('a continuous connection', () => {
  test('moves each commit as it comes, ends its run at a change of settings, and begins the next without a gap', async () => {
    await create('flow', ['giro', 'savings']);
    const pipeline = await follow('flow');
    await change(pipeline, CONTINUOUS);
    const bothThere = () =>
      target`select to_regclass('flow.giro') is not null and to_regclass('flow.savings') is not null as yes`;
    await until(async () => (await bothThere())[0]!.yes);
    const goesOn = { transfers: true };
    const transferring = (async () => {
      for (let at = 0; goesOn.transfers; at += 1) {
        await source.begin(async (tx) => {
          await tx`update flow.giro set n = n - 7 where id = ${(at % 20) + 1}`;
          await tx`update flow.savings set n = n + 7 where id = ${((at * 7) % 20) + 1}`;
        });
        await Bun.sleep(PACE_MS);
      }
    })();
    const totals = new Set<string>();
    const look = async () => {
      const [row] =
        await target`select (select sum(n) from flow.giro) + (select sum(n) from flow.savings) as total, (select sum(n) from flow.giro) as giro`;
      totals.add(String(row!.total));
      return String(row!.giro);
    };
    const seen = new Set<string>();
    await until(async () => seen.add(await look()).size > 30);
    const before = await runsOf(pipeline);
    await change(pipeline, { description: 'changed' });
    await until(async () => (seen.add(await look()), (await runsOf(pipeline)).length > before.length));
    const again = new Set<string>();
    await until(async () => again.add(await look()).size > 10);
    goesOn.transfers = false;
    await transferring;
    expect([...totals]).toEqual(['4000']);
    const runs = await runsOf(pipeline);
    const last = runs.pop();
    expect(runs.length).toBeGreaterThanOrEqual(before.length);
    for (const one of runs) expect([one.status, one.trigger_type]).toEqual(['succeeded', 'schedule']);
    expect(last!.status).toBe('running');
    await arrives('select sum(n)::int as n from flow.giro');
    await compare('flow', ['giro', 'savings']);
    await change(pipeline, { status: 'paused' });
    expect((await runEnded(service, last!.id)).status).toBe('succeeded');
    const streams = await getStreamRuns(service, last!.id);
    expect(streams.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
    expect((await runsOf(pipeline)).at(-1)!.id).toBe(last!.id);
  });

  test('goes on while a table is copied, and without one that cannot be applied', async () => {
    await create('steady', ['one', 'two', 'late']);
    const pipeline = await follow('steady', { selected: ['one', 'two'] });
    await succeeded(pipeline);
    await change(pipeline, { status: 'paused' });
    await select(pipeline, ['late'], true);
    // The copy has to wait for this transaction, which could have written to the table before it was published.
    const blocker = await source.reserve();
    await blocker`begin`;
    await blocker`select pg_current_xact_id()`;
    await change(pipeline, { ...CONTINUOUS, status: 'active' });
    await source`update steady.one set n = 1`;
    await arrives('select sum(n)::int as n from steady.one');
    expect((await target`select to_regclass('steady.late') as there`)[0]!.there).toBeNull();
    await blocker`commit`;
    blocker.release();
    await until(async () => (await target`select to_regclass('steady.late') as there`)[0]!.there !== null);
    await source`update steady.late set n = 2`;
    await arrives('select count(*)::int as c, sum(n)::int as n from steady.late');
    await target`alter table steady.two add constraint small check (n < 1000)`;
    await source`update steady.two set n = 5000 where id = 1`;
    const [newest] = await runsOf(pipeline).then((all) => all.slice(-1));
    const parked = async () =>
      (await getStreamRuns(service, newest!.id)).find(({ stream_name }) => stream_name === 'two')!;
    await until(async () => (await parked()).status === 'failed');
    expect((await parked()).warnings.map(({ code }) => code)).toContain('stream_parked');
    await source`update steady.one set n = 3`;
    await arrives('select sum(n)::int as n from steady.one');
    await change(pipeline, { status: 'paused' });
    expect((await runEnded(service, newest!.id)).status).toBe('partially_succeeded');
    await compare('steady', ['one', 'late']);
  });

  test('parks tables that exchange their names, or are no longer published, while it is running', async () => {
    await create('names', ['one', 'two', 'left', 'fine']);
    const pipeline = await follow('names');
    await change(pipeline, CONTINUOUS);
    await until(async () => (await target`select to_regclass('names.fine') is not null as there`)[0]!.there);
    await source`update names.fine set n = 1`;
    await arrives('select sum(n)::int as n from names.fine');
    const [running] = await runsOf(pipeline);
    const parked = async () => {
      const streams = (await selectConnection(db, pipeline.connection))!.streams;
      return streams.flatMap(({ name, parked: reason }) => (reason ? [`${name} ${reason.code}`] : [])).sort();
    };
    await source.unsafe(
      `alter table names.one rename to other; alter table names.two rename to one; alter table names.other rename to two;
        insert into names.one values (101, 1); insert into names.two values (102, 2)`,
    );
    await until(async () => (await parked()).length === 2);
    await source`alter publication ${source(slotOf(pipeline))} drop table names.left`;
    await source`update names.fine set n = 2`;
    await arrives('select sum(n)::int as n from names.fine');
    await until(async () => (await parked()).length === 3);
    expect(await parked()).toEqual(['left publication_missing', 'one publication_altered', 'two publication_altered']);
    expect((await target`select id from names.one union select id from names.two`).length).toBe(20);
    await change(pipeline, { status: 'paused' });
    expect((await runEnded(service, running!.id)).status).toBe('partially_succeeded');
  });
});
