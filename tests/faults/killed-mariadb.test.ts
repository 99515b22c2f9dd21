import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { closeMariaDbGate } from '../support/gate.ts';
import { mariaDbMissing, type OwnMariaDb, startMariaDb } from '../support/mariadb.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { type Limits, startTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

const ROWS = 4000;
/** So slow that what is read is on its way for seconds. */
const SLOW = 300_000;

/** What was committed is there after SIGKILL, in the tables and in the log. */
const SETTINGS = [
  '--innodb-flush-method=nosync',
  '--innodb-flush-log-at-trx-commit=1',
  '--innodb-log-file-size=16M',
  '--innodb-buffer-pool-size=64M',
  '--log-bin=binlog',
  '--server-id=1',
  '--sync-binlog=1',
  '--binlog-format=ROW',
  '--binlog-row-metadata=FULL',
];

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 1 } });
const to = await createPlainDatabase();

describe.skipIf(mariaDbMissing !== null)('a MariaDB whose log is read, or that is written,', () => {
  const warehouse = postgres(to.url, { max: 1, onnotice: () => {} });
  /** The line from the source to the worker. */
  const line: Limits = {};
  let server: OwnMariaDb;
  let proxy: Awaited<ReturnType<typeof startTcpProxy>>;
  let worker: Awaited<ReturnType<typeof startWorker>>;
  beforeAll(async () => {
    server = await startMariaDb(SETTINGS);
    proxy = await startTcpProxy(server, line);
    worker = await startWorker(service.deps);
  });
  afterAll(async () => {
    await worker.stop();
    proxy.stop();
    await warehouse.end();
    await Promise.all([to.drop(), server.stop()]);
  });

  const access = (database: string) => {
    const { host, username, password } = server;
    return { host, port: server.port, username, password, database, ssl_mode: 'disable' };
  };
  /** Into a database of that server, or into PostgreSQL, as a schema of that name. */
  const follow = (database: string, into: { database: string } | { schema: string }) =>
    makePipeline(service, {
      source: { name: 'mysql', parameters: { ...access(database), port: proxy.port, replication: 'logical' } },
      destination:
        'schema' in into
          ? { name: 'postgres', parameters: postgresParameters(to.url) }
          : { name: 'mysql', parameters: access(into.database) },
      stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
      connection: { destination_schema: 'schema' in into ? into.schema : null },
    });
  const rowsOf = async (rows: PromiseLike<Iterable<object>>) =>
    [...(await rows)].map((row) => Object.values(row).map(String));
  async function succeeds(id: string, least_attempts = 1): Promise<void> {
    const { status, error } = await runEnded(service, id, 90_000);
    expect({ status, error }).toEqual({ status: 'succeeded', error: null });
    const attempts = (await getStreamRuns(service, id)).map(({ attempt }) => attempt);
    expect(Math.max(...attempts)).toBeGreaterThanOrEqual(least_attempts);
  }
  /** A table of many rows, changed by a transaction for each tenth of them. */
  const changing = async () => {
    const database = await server.database();
    await server.sql(
      `create table moved (id int primary key, n int, filler text);
       insert into moved select seq, 0, repeat('x', 100) from seq_1_to_${ROWS}`,
      database,
    );
    const change = async () => {
      for (let part = 0; part < 10; part += 1) {
        await server.sql(`update moved set n = n + 1, filler = concat(filler, '.') where id % 10 = ${part}`, database);
        await server.sql(`delete from moved where n = 1 and id % 1000 = ${part}`, database);
      }
    };
    return { database, change };
  };
  const SUM = 'select count(*) as found, sum(n) as n, sum(length(filler)) as size, sum(id) as ids from';

  test('is killed and started again in an initial copy, and between commits of the log', async () => {
    const { database, change } = await changing();
    const pipeline = await follow(database, { schema: database });
    for (const _step of ['copy', 'log']) {
      line.bytes_per_second = SLOW;
      const before = proxy.bytes();
      const id = await pipeline.start();
      await until(() => proxy.bytes() - before > SLOW);
      proxy.cut();
      await server.restart();
      delete line.bytes_per_second;
      await succeeds(id, 2);
      await change();
    }
    await succeeds(await pipeline.start());
    expect(await rowsOf(warehouse.unsafe(`${SUM} ${database}.moved`))).toEqual(
      await rowsOf(server.sql(`${SUM} moved`, database)),
    );
  });

  test('is killed and started again while changes are merged into it', async () => {
    const { database, change } = await changing();
    const other = await server.database();
    const pipeline = await follow(database, { database: other });
    await succeeds(await pipeline.start());
    await change();
    await change();
    const gate = await closeMariaDbGate(server, { database: other, table: 'moved', condition: 'new.id = 19' });
    const id = await pipeline.start();
    await gate.reached();
    await server.restart();
    await succeeds(id, 2);
    expect(await rowsOf(server.sql(`${SUM} moved`, other))).toEqual(await rowsOf(server.sql(`${SUM} moved`, database)));
  });

  test('swaps keys, and unique values, in one transaction', async () => {
    const [database, other] = [await server.database(), await server.database()];
    await server.sql(
      `create table seats (id int primary key, guest varchar(20) not null, place int not null, unique (place));
       insert into seats select seq, concat('guest ', seq), seq from seq_1_to_100`,
      database,
    );
    const pipelines = [await follow(database, { schema: database }), await follow(database, { database: other })];
    for (const { start } of pipelines) await succeeds(await start());
    await warehouse.unsafe(`create unique index on ${database}.seats (place)`);
    const swap = (column: string, a: number, b: number) =>
      [
        [a, -1],
        [b, a],
        [-1, b],
      ]
        .map(([from, into]) => `update seats set ${column} = ${into} where ${column} = ${from}`)
        .join('; ');
    for (let first = 1; first < 40; first += 1) {
      await server.sql(
        `start transaction; ${swap('id', first, first + 50)}; ${swap('place', first, first + 30)};
         update seats set id = -id; update seats set id = -id; commit`,
        database,
      );
    }
    for (const { start } of pipelines) await succeeds(await start());
    const text = 'select id, guest, place from seats order by id';
    const expected = await rowsOf(server.sql(text, database));
    expect(await rowsOf(server.sql(text, other))).toEqual(expected);
    expect(await rowsOf(warehouse.unsafe(text.replace('seats', `${database}.seats`)))).toEqual(expected);
  });
});
