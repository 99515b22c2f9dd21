import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import postgres from 'postgres';
import {
  accountConnectors,
  connectionRuns,
  connections,
  connectionStreams,
  snapshots,
  streamRuns,
} from '../../db/schema/index.ts';
import { releaseDeadWorkers } from '../../server/runs/worker-deaths.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { closeGate, closeMariaDbGate } from '../support/gate.ts';
import { type MariaDb, mariaDbMissing, startMariaDb, testBinlogServer } from '../support/mariadb.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const service = await testDeps();
const to = await createPlainDatabase();
const destination = postgres(to.url, { max: 4, onnotice: () => {} });

describe.skipIf(mariaDbMissing !== null)('the binary log of MariaDB as a source', () => {
  const { db } = service.deps;
  let server: MariaDb;
  let replica: Awaited<ReturnType<typeof startMariaDb>> | null = null;
  beforeAll(async () => {
    server = await testBinlogServer();
    await server.sql(CREATE_READER);
  });
  afterAll(async () => {
    await destination.end();
    await to.drop();
    await replica?.stop();
  });

  const access = ({ host, port, username, password }: MariaDb, database: string) => ({
    host,
    port,
    username,
    password,
    database,
    ssl_mode: 'disable',
  });
  const logOf = (database: string) => ({
    name: 'mysql',
    parameters: { ...access(server, database), ...READER, replication: 'logical' },
  });
  /** As the supervisor of a worker does. */
  const killed = async (worker: Bun.Subprocess) => {
    worker.kill('SIGKILL');
    await worker.exited;
    const runs = await db.select({ worker_id: streamRuns.worker_id }).from(streamRuns);
    await releaseDeadWorkers(
      service.deps,
      runs.flatMap(({ worker_id }) => worker_id ?? []),
    );
    return spawnWorker(service, { CHECKPOINT_KB: '256' });
  };
  const stream = (destination_sync_mode: 'append' | 'append_dedup') => ({
    sync_mode: 'incremental' as const,
    destination_sync_mode,
    primary_key: [['id']],
  });

  test('a killed worker neither loses nor repeats a change, in merges and in a history', async () => {
    const [database, other] = [await server.database(), await server.database()];
    const source = await server.session(database);
    await source.run(`create table moved (id int primary key, n int, filler text);
      insert into moved select seq, 0, repeat('x', 1000) from seq_1_to_4000`);
    const make = (mode: 'append' | 'append_dedup', into: { name: string; parameters: Record<string, unknown> }) =>
      makePipeline(service, {
        source: logOf(database),
        destination: into,
        stream: stream(mode),
        connection: { table_prefix: `${mode}_` },
      });
    const intoPostgres = { name: 'postgres', parameters: postgresParameters(to.url) };
    const late = 'new.n = 2';
    const pipelines = [
      {
        ...(await make('append_dedup', intoPostgres)),
        closed: () => closeGate(to.url, 'append_dedup_moved', late),
      },
      { ...(await make('append', intoPostgres)), closed: () => closeGate(to.url, 'append_moved', late) },
      {
        ...(await make('append_dedup', { name: 'mysql', parameters: access(server, other) })),
        closed: () => closeMariaDbGate(server, { database: other, table: 'append_dedup_moved', condition: late }),
      },
    ];
    let worker = spawnWorker(service, { CHECKPOINT_KB: '256' });
    for (const { start } of pipelines) expect((await runEnded(service, await start())).status).toBe('succeeded');
    let updated = 0;
    for (let part = 0; part < 40; part += 1) {
      const [result] = (await source.run(
        `update moved set n = n + 1, filler = concat(filler, '.') where id % 20 = ${part % 20}`,
      )) as [{ affectedRows: number }];
      updated += result.affectedRows;
      await source.run(`delete from moved where id = ${part + 1}`);
    }
    for (const { start, closed } of pipelines) {
      const gate = await closed();
      const id = await start();
      await gate.reached();
      worker = await killed(worker);
      await gate.open();
      expect((await runEnded(service, id, 90_000)).status).toBe('succeeded');
      expect((await getStreamRuns(service, id))[0]!.attempt).toBe(2);
    }
    worker.kill('SIGKILL');
    const sum = (table: string) =>
      `select count(*) as rows_there, sum(n) as n, sum(length(filler)) as size from ${table}`;
    const numbers = (row: object | undefined) => Object.values(row ?? {}).map(Number);
    const expected = numbers((await server.sql(sum('moved'), database))[0]);
    expect(numbers((await destination.unsafe(sum('append_dedup_moved')))[0])).toEqual(expected);
    expect(numbers((await server.sql(sum('append_dedup_moved'), other))[0])).toEqual(expected);
    const history =
      await destination`select _cdc_operation as operation, count(*)::int as n from append_moved group by 1`;
    expect(Object.fromEntries(history.map(({ operation, n }) => [operation, n]))).toEqual({
      read: 4000,
      update: updated,
      delete: 40,
    });
    await source.close();
  }, 180_000);

  test('a followed log shows whole transactions only, through a new column, a killed worker and a promoted replica', async () => {
    replica = await replicaOf(server);
    const database = await server.database();
    await server.sql(
      `create table giro (id int primary key, n int); create table savings (id int primary key, n int);
       insert into giro select seq, 100 from seq_1_to_20; insert into savings select seq, 100 from seq_1_to_20`,
      database,
    );
    const untimed = { interval_minutes: null, cron_expression: null, timezone: 'UTC', time_of_day: null };
    const { connection, source } = await makePipeline(service, {
      source: logOf(database),
      destination: { name: 'postgres', parameters: postgresParameters(to.url) },
      stream: stream('append_dedup'),
      connection: {
        destination_schema: 'bank',
        schedule: { type: 'continuous', ...untimed },
        schema_change_policy: 'propagate_columns',
        next_run_at: new Date().toISOString(),
      },
    });
    const totals = new Set<string>();
    const giro = async () => {
      const [row] =
        await destination`select (select sum(n) from bank.giro) + (select sum(n) from bank.savings) as total,
        (select sum(n) from bank.giro) as giro`;
      totals.add(String(row!.total));
      return String(row!.giro);
    };
    /** Transfers between the tables until the destination has shown so many states. */
    const transfers = async (at: MariaDb, states: number) => {
      const session = await at.session(database);
      const seen = new Set<string>();
      let step = 0;
      await until(
        async () => {
          step += 1;
          await session.run(`start transaction; update giro set n = n - 7 where id = ${(step % 20) + 1};
            update savings set n = n + 7 where id = ${((step * 7) % 20) + 1}; commit`);
          return seen.add(await giro()).size > states;
        },
        { timeout_ms: 60_000, what: 'changes arrive' },
      );
      await session.close();
    };
    const isEqual = async (at: MariaDb) => {
      const [row] = await at.sql('select sum(n) as n from giro', database);
      await until(async () => (await giro()) === String(row!.n), { timeout_ms: 60_000, what: 'the log is read' });
    };
    const followed = () =>
      until(async () => (await destination`select to_regclass('bank.savings') as there`)[0]!.there !== null);

    let worker = spawnWorker(service);
    await followed();
    await transfers(server, 5);
    await server.sql('alter table giro add column note varchar(10) not null default "old"', database);
    await server.sql(`update giro set note = 'new' where id = 1`, database);
    const notes = async () => {
      const rows = await destination`select to_jsonb(giro) ->> 'note' as note from bank.giro where id = 1`;
      return rows[0]?.note;
    };
    await until(async () => (await notes()) === 'new', { timeout_ms: 60_000, what: 'the new column is loaded' });
    await transfers(server, 5);
    worker = await killed(worker);
    await transfers(server, 5);
    await isEqual(server);

    const copy = replica;
    const [row] = await server.sql('select @@gtid_binlog_pos as position');
    await copy.sql(`select master_gtid_wait('${String(row!.position)}'); stop slave`);
    const [before] = await db.select().from(accountConnectors).where(eq(accountConnectors.id, source.id));
    await db
      .update(accountConnectors)
      .set({ parameters: { ...before!.parameters, port: copy.port } })
      .where(eq(accountConnectors.id, source.id));
    worker = await killed(worker);
    await transfers(copy, 5);
    await isEqual(copy);
    expect([...totals]).toEqual(['4000']);
    await db.update(connections).set({ status: 'paused' }).where(eq(connections.id, connection.id));
    worker.kill('SIGTERM');
    await worker.exited;
    const runs = await db.select().from(connectionRuns).where(eq(connectionRuns.connection_id, connection.id));
    expect(runs.filter(({ status }) => status === 'failed')).toEqual([]);
  }, 240_000);

  describe('a full refresh of one moment', () => {
    const overwrite = { destination_sync_mode: 'overwrite' as const, primary_key: [['id']] };
    /** Two accounts with a total of 1,000. */
    const bank = async () => {
      const database = await server.database();
      await server.sql(
        `create table checking (id int primary key, n int); create table savings (id int primary key, n int);
         insert into checking values (1, 600); insert into savings values (1, 400)`,
        database,
      );
      return database;
    };
    const transfer = (database: string, amount: number) =>
      server.sql(
        `start transaction; update checking set n = n - ${amount}; update savings set n = n + ${amount}; commit`,
        database,
      );
    const balances = async (schema: string) => {
      const rows = await destination.unsafe(`select (select n from ${schema}.checking) as checking,
        (select n from ${schema}.savings) as savings`);
      return Object.values(rows[0] ?? {}).map(Number);
    };
    /** Starts a run, and keeps `savings` from being opened at the destination once `checking` is complete. */
    const started = async ({ connection, start }: Pipeline, schema: string) => {
      const [savings] = await db
        .select({ id: connectionStreams.id })
        .from(connectionStreams)
        .where(and(eq(connectionStreams.connection_id, connection.id), eq(connectionStreams.name, 'savings')));
      const line = await destination.reserve();
      await line`begin`;
      await line.unsafe(`select from ${schema}._pipeline_state where stream_id = '${savings!.id}' for update`);
      const run_id = await start();
      const isReady = async () => (await getStreamRuns(service, run_id)).some((one) => one.ready !== null);
      await until(isReady, { timeout_ms: 60_000, what: 'the first table is complete' });
      const letGo = async () => {
        await line`rollback`;
        line.release();
      };
      return { run_id, letGo };
    };
    const generation = async (run_id: string) =>
      (await db.select().from(snapshots).where(eq(snapshots.connection_run_id, run_id)))[0]?.generation;

    test('is read again as a whole after its sessions or its worker are killed', async () => {
      const database = await bank();
      const made = await makePipeline(service, {
        source: { name: 'mysql', parameters: access(server, database) },
        destination: { name: 'postgres', parameters: postgresParameters(to.url) },
        stream: overwrite,
        connection: { destination_schema: 'moment', max_parallel_streams: 1 },
      });
      let worker = spawnWorker(service);
      expect(await runEnded(service, await made.start(), 60_000)).toMatchObject({ status: 'succeeded', warnings: [] });
      expect(await balances('moment')).toEqual([600, 400]);

      const first = await started(made, 'moment');
      await transfer(database, 7);
      const held = await server.sql(
        `select id from information_schema.processlist where db = '${database}' and command = 'Sleep'`,
      );
      expect(held.length).toBeGreaterThan(1);
      for (const { id } of held) await server.sql(`kill ${Number(id)}`).catch(() => {});
      await until(async () => (await generation(first.run_id)) === 2, { timeout_ms: 60_000 });
      await first.letGo();
      expect((await runEnded(service, first.run_id, 60_000)).status).toBe('succeeded');
      expect(await balances('moment')).toEqual([593, 407]);

      const second = await started(made, 'moment');
      await transfer(database, 3);
      expect(await balances('moment')).toEqual([593, 407]);
      worker = await killed(worker);
      await second.letGo();
      expect((await runEnded(service, second.run_id, 90_000)).status).toBe('succeeded');
      expect(await balances('moment')).toEqual([590, 410]);
      worker.kill('SIGTERM');
      await worker.exited;
    }, 240_000);

    describe('in this process', () => {
      let worker: Awaited<ReturnType<typeof startWorker>>;
      beforeAll(async () => void (worker = await startWorker(service.deps)));
      afterAll(() => worker.stop());

      test('is renamed into a MariaDB together, or replaces rows together where a table has an index', async () => {
        const [database, other] = [await bank(), await server.database()];
        const made = await makePipeline(service, {
          source: { name: 'mysql', parameters: access(server, database) },
          destination: { name: 'mysql', parameters: access(server, other) },
          stream: overwrite,
        });
        const tables = async () => {
          const rows = await server.sql(
            `select table_name as name from information_schema.tables where table_schema = '${other}'`,
          );
          return rows.map(({ name }) => String(name)).toSorted();
        };
        const shown = async () => {
          const [row] = await server.sql('select (select n from checking) as a, (select n from savings) as b', other);
          return Object.values(row ?? {}).map(Number);
        };
        const run = async () => {
          const run_id = await made.start();
          const { status, warnings } = await runEnded(service, run_id, 60_000);
          const [row] = await db.select().from(snapshots).where(eq(snapshots.connection_run_id, run_id));
          return { status, warnings, is_settled: row?.settled_at !== null };
        };
        const done = { status: 'succeeded' as const, warnings: [], is_settled: true };
        expect(await run()).toEqual(done);
        expect(await shown()).toEqual([600, 400]);
        await transfer(database, 5);
        expect(await run()).toEqual(done);
        expect(await shown()).toEqual([595, 405]);
        expect(await tables()).toEqual(['_pipeline_state', 'checking', 'savings']);

        await server.sql('alter table savings add index amounts (n)', other);
        await transfer(database, 5);
        expect(await run()).toEqual(done);
        expect(await shown()).toEqual([590, 410]);
        expect(await tables()).toEqual(['_pipeline_state', 'checking', 'savings']);
        expect(await server.sql(`show index from savings where key_name = 'amounts'`, other)).toHaveLength(1);
      }, 120_000);

      test('needs a right, without which each stream is read at its own moment', async () => {
        const database = await bank();
        const made = await makePipeline(service, {
          source: { name: 'mysql', parameters: { ...access(server, database), ...READER } },
          destination: { name: 'postgres', parameters: postgresParameters(to.url) },
          stream: overwrite,
          connection: { destination_schema: 'unlocked' },
        });
        const warned = async () => (await runEnded(service, await made.start(), 60_000)).warnings;
        expect((await warned()).map(({ code, message }) => [code, message])).toEqual([
          ['read_by_stream', expect.stringContaining('GRANT RELOAD or LOCK TABLES')],
          ['read_by_stream', expect.stringContaining('GRANT RELOAD or LOCK TABLES')],
        ]);
        await server.sql(`grant lock tables on ${database}.* to reader`);
        expect(await warned()).toEqual([]);
        expect(await balances('unlocked')).toEqual([600, 400]);
      }, 120_000);
    });
  });
});

/** The same user on all servers. */
const READER = { username: 'reader', password: 'r3ader' };
const CREATE_READER = `create user if not exists reader identified by '${READER.password}';
  grant select, replication slave, binlog monitor on *.* to reader`;

/** A server that replicates what follows, and logs it. */
async function replicaOf(primary: MariaDb) {
  const { host, port, username, password } = primary;
  const replica = await startMariaDb([
    '--innodb-flush-method=nosync',
    '--log-bin=binlog',
    '--server-id=2',
    '--log-slave-updates',
    '--binlog-format=ROW',
    '--binlog-row-metadata=FULL',
  ]);
  // What its own set-up logged is not of the primary, and what the primary has by now is of other tests.
  const [{ position } = {}] = await primary.sql('select @@gtid_binlog_pos as position');
  await replica.sql(`${CREATE_READER}; reset master; set global gtid_slave_pos = '${String(position)}'`);
  await replica.sql(`change master to master_host = '${host}', master_port = ${port}, master_user = '${username}',
    master_password = '${password.replaceAll('\\', '\\\\').replaceAll("'", "''")}', master_use_gtid = slave_pos, master_ssl = 0;
    start slave`);
  return replica;
}
