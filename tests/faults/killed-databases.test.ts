import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { connections } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testDeps } from '../support/database.ts';
import { closeGate } from '../support/gate.ts';
import { type KillablePostgres, onBank, startKillablePostgres } from '../support/killable-postgres.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { type Limits, startTcpProxy } from '../support/tcp-proxy.ts';
import { isThorough } from '../support/thorough.ts';
import { until } from '../support/until.ts';

const ROWS = 4000;
const TABLES = ['giro', 'savings'];
/** So slow that a table is on its way for seconds. */
const SLOW = 300_000;
/** How much of two tables is on its way by then. */
const MOMENTS = isThorough ? [10_000, 60_000, 150_000, 300_000, 500_000, 700_000] : [300_000];

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 1 } });
const { db } = service.deps;
const [bank, warehouse] = await Promise.all([startKillablePostgres(), startKillablePostgres()]);
const servers = { source: bank, destination: warehouse };
/** The line from the source to the worker. */
const line: Limits = {};
const proxy = await startTcpProxy(bank, line);
const worker = await startWorker(service.deps);
async function kill(side: keyof typeof servers): Promise<void> {
  if (side === 'source') proxy.cut();
  await servers[side].restart();
}
const run = (server: KillablePostgres, statements: string) => onBank(server, (sql) => sql.unsafe(statements));
afterAll(async () => {
  await worker.stop();
  proxy.stop();
});

let count = 0;
/** Two tables with a total of 200 a row, in a schema of their own at both sides. */
async function bankOf(kind: 'log' | 'full', more: Parameters<typeof makePipeline>[1]['connection'] = {}) {
  const schema = `bank_${++count}`;
  await run(
    bank,
    `create schema ${schema};` +
      TABLES.map(
        (table) => `create table ${schema}.${table} (id int primary key, n int, filler text);
          insert into ${schema}.${table} select g, 100, repeat('x', 100) from generate_series(1, ${ROWS}) g;`,
      ).join(''),
  );
  const merged = { sync_mode: 'incremental', destination_sync_mode: 'append_dedup' } as const;
  const replaced = { sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' } as const;
  const pipeline = await makePipeline(service, {
    source: {
      name: 'postgres',
      parameters: {
        ...postgresParameters(bank.url('bank')),
        port: proxy.port,
        schemas: [schema],
        ...(kind === 'log' && { replication: 'logical' }),
      },
    },
    destination: { name: 'postgres', parameters: postgresParameters(warehouse.url('bank')) },
    stream: { ...(kind === 'log' ? merged : replaced), primary_key: [['id']] },
    connection: { destination_schema: schema, max_parallel_streams: 1, ...more },
  });
  return { schema, pipeline };
}
type Bank = Awaited<ReturnType<typeof bankOf>>;

const transfer = ({ schema }: Bank, amount: number) =>
  onBank(bank, (sql) =>
    sql.begin(async (tx) => {
      await tx.unsafe(`update ${schema}.giro set n = n - ${amount} where id % 10 = ${amount % 10}`);
      await tx.unsafe(`update ${schema}.savings set n = n + ${amount} where id % 10 = ${amount % 10}`);
    }),
  );

const content = (server: KillablePostgres, { schema }: Bank) =>
  onBank(server, async (sql) => {
    const sum = (table: string) =>
      sql.unsafe(
        `select count(*)::int as n, md5(string_agg(row(id, n, filler)::text, ',' order by id)) as sum from ${schema}.${table}`,
      );
    return (await Promise.all(TABLES.map(sum))).map(([row]) => ({ ...row }));
  });
const total = ({ schema }: Bank) =>
  onBank(warehouse, async (sql) => {
    const sums = TABLES.map((table) => `(select sum(n) from ${schema}.${table})`);
    const [row] = await sql.unsafe(`select ${sums.join(' + ')} as total`);
    return row!.total as string | null;
  });
const expectEqual = async (one: Bank) => expect(await content(warehouse, one)).toEqual(await content(bank, one));

async function succeeds(id: string): Promise<void> {
  const { status, error } = await runEnded(service, id, 90_000);
  expect({ status, error }).toEqual({ status: 'succeeded', error: null });
  const attempts = (await getStreamRuns(service, id)).map(({ attempt }) => attempt);
  // Otherwise nothing was under way.
  expect(Math.max(...attempts)).toBeGreaterThan(1);
}

/** Starts a run, and waits until so many bytes are on their way. */
async function startedSlowly({ pipeline }: Bank, bytes = SLOW): Promise<string> {
  line.bytes_per_second = SLOW;
  const before = proxy.bytes();
  const id = await pipeline.start();
  await until(() => proxy.bytes() - before > bytes);
  return id;
}

describe.each(['source', 'destination'] as const)('the %s is killed and started again', (side) => {
  test.each(MOMENTS)('in an initial copy, after %i bytes, and in the changes after it', async (bytes) => {
    const one = await bankOf('log');
    const copying = await startedSlowly(one, bytes);
    await kill(side);
    await transfer(one, 3);
    delete line.bytes_per_second;
    await succeeds(copying);
    for (let amount = 1; amount <= 10; amount += 1) await transfer(one, amount);
    // A log that is not long is read before its first change is written.
    const gate = await closeGate(warehouse.url('bank'), `${one.schema}.savings`, 'new.n = 104');
    const catchingUp = await (side === 'source' ? startedSlowly(one) : one.pipeline.start());
    if (side === 'destination') await gate.reached();
    await kill(side);
    delete line.bytes_per_second;
    await transfer(one, 11);
    await gate.open();
    await succeeds(catchingUp);
    await runEnded(service, await one.pipeline.start());
    await expectEqual(one);
  });

  test.each(MOMENTS)('in a full refresh, after %i bytes', async (bytes) => {
    const one = await bankOf('full');
    await runEnded(service, await one.pipeline.start());
    const id = await startedSlowly(one, bytes);
    await transfer(one, 3);
    await kill(side);
    delete line.bytes_per_second;
    await succeeds(id);
    expect(await total(one)).toBe(String(200 * ROWS));
    await runEnded(service, await one.pipeline.start());
    await expectEqual(one);
  });

  test('while its log is followed', async () => {
    const untimed = { interval_minutes: null, cron_expression: null, timezone: 'UTC', time_of_day: null };
    const one = await bankOf('log', {
      schedule: { type: 'continuous', ...untimed },
      next_run_at: new Date().toISOString(),
    });
    const { schema, pipeline } = one;
    const totals = new Set<string | null>();
    const look = async () => {
      totals.add(await total(one));
      const [row] = await run(warehouse, `select sum(n) as n from ${schema}.giro`);
      return String(row!.n);
    };
    await until(() =>
      look().then(
        () => true,
        () => false,
      ),
    );
    const seen = new Set<string>();
    const shows = async (states: number) => {
      for (let amount = 1; seen.size < states; amount += 1) {
        await transfer(one, amount);
        seen.add(await look());
      }
    };
    await shows(5);
    await kill(side);
    await shows(10);
    const [row] = await run(bank, `select sum(n) as n from ${schema}.giro`);
    await until(async () => (await look()) === row!.n);
    expect([...totals]).toEqual([String(200 * ROWS)]);
    await expectEqual(one);
    await db
      .update(connections)
      .set({ status: 'paused', next_run_at: null })
      .where(eq(connections.id, pipeline.connection.id));
  });
});

test('the session that holds the snapshot of an initial copy is ended', async () => {
  const one = await bankOf('log');
  const id = await startedSlowly(one);
  await run(
    bank,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = 'bank' and state = 'idle in transaction'
      order by xact_start limit 1`,
  );
  await transfer(one, 3);
  delete line.bytes_per_second;
  await succeeds(id);
  await runEnded(service, await one.pipeline.start());
  await expectEqual(one);
});

test('the source is killed between the two phases of a commit', async () => {
  const one = await bankOf('log');
  await runEnded(service, await one.pipeline.start());
  const { schema } = one;
  await run(
    bank,
    `begin; update ${schema}.giro set n = n - 3; update ${schema}.savings set n = n + 3; prepare transaction 'transfer'`,
  );
  await kill('source');
  for (const decision of ['', "commit prepared 'transfer'"]) {
    await run(bank, decision);
    expect((await runEnded(service, await one.pipeline.start())).status).toBe('succeeded');
    await expectEqual(one);
  }
});
