import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { auditEvents } from '../../db/schema/index.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { type Machine, makeMachines } from '../support/machines.ts';
import { getStreamRuns, makePipeline, networkLog, runEnded } from '../support/pipeline.ts';
import { startS3 } from '../support/s3.ts';
import { until } from '../support/until.ts';
import { spawnPart } from '../support/worker-process.ts';

const s3 = await startS3();
const { endpoint, access_key_id, secret_access_key } = s3.settings as Record<string, string>;
const storeAt = (host: string) => `s3://${access_key_id}:${secret_access_key}@data/objects?endpoint=http://${host}`;
const service = await testDeps({ config: { OBJECT_STORE_URL: storeAt(new URL(endpoint!).host) } });
const target = await createPlainDatabase();
const rows = postgres(target.url, { max: 2, onnotice: () => {} });
const machines = makeMachines();
const started: Bun.Subprocess[] = [];
let database: { host: string; port: number };
let store: { host: string; port: number };

beforeAll(async () => {
  database = await machines.reach(Number(new URL(service.url).port));
  store = await machines.reach(Number(new URL(endpoint!).port));
});
// A remaining worker would claim streams of the next test, and leave none to the machine that is cut off there.
afterEach(async () => {
  for (const worker of started) worker.kill('SIGKILL');
  await Promise.all(started.splice(0).map((worker) => worker.exited));
});
afterAll(async () => {
  machines.close();
  await rows.end();
  await target.drop();
  await s3.close();
});

const STREAMS = 12;
const ROWS = 120;

/** A worker on a separate machine: it shares only the database, the object store and the key. */
function startWorker(): Bun.Subprocess & { machine: Machine } {
  const machine = machines.make();
  const url = new URL(service.url);
  [url.hostname, url.port] = [database.host, String(database.port)];
  const worker = spawnPart(
    service,
    'worker',
    {
      DATABASE_URL: url.href,
      DATA_DIR: machine.data_dir,
      OBJECT_STORE_URL: storeAt(`${store.host}:${store.port}`),
      WORKER_CONCURRENCY: '3',
      // A lost network logs many errors.
      LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    },
    machine.on,
  );
  started.push(worker);
  return Object.assign(worker, { machine });
}

/** A run of twelve streams of about six seconds each, into tables of one database that the machines can reach. */
async function startRun(prefix: string) {
  const { username, password, pathname } = new URL(target.url);
  const created = await makePipeline(service, {
    source: {
      name: 'sample',
      parameters: {
        rows: ROWS,
        streams: STREAMS,
        batch_rows: 2,
        batch_delay_ms: 100,
        value_bytes: 20_000,
        record_requests: true,
      },
    },
    destination: {
      name: 'postgres',
      parameters: { ...database, username, password: decodeURIComponent(password), database: pathname.slice(1) },
    },
    stream: { sync_mode: 'incremental' },
    connection: { max_parallel_streams: STREAMS, table_prefix: prefix },
  });
  const id = await created.start();
  const streams = () => getStreamRuns(service, id);
  return { id, streams, running: async () => (await streams()).filter(({ status }) => status === 'running').length };
}

async function expectEveryRowOnce(prefix: string): Promise<void> {
  for (let n = 1; n <= STREAMS; n += 1) {
    const [found] = await rows.unsafe(
      `select count(*)::int n, count(distinct id)::int ids, min(id)::int low, max(id)::int high from ${prefix}stream_${n}`,
    );
    expect({ ...found }).toEqual({ n: ROWS, ids: ROWS, low: 1, high: ROWS });
  }
}

test(`several machines share a run; one is killed, one leaves, one joins midway (${machines.isolated ? 'network namespaces' : 'plain processes'})`, async () => {
  const [first, second] = [startWorker(), startWorker()];
  const run = await startRun('shared_');
  // More than one machine can hold, spare slot included, so both machines have some.
  await until(async () => (await run.running()) >= 6);
  first.kill('SIGKILL');
  await first.exited;
  const third = startWorker();
  await until(async () => (await run.streams()).some(({ attempt }) => attempt === 2), { timeout_ms: 40_000 });
  second.kill('SIGTERM');
  await second.exited;
  expect((await runEnded(service, run.id, 120_000)).status).toBe('succeeded');

  const streams = await run.streams();
  expect(streams.map(({ rows_loaded }) => rows_loaded)).toEqual(Array.from({ length: STREAMS }, () => ROWS));
  expect(streams.some(({ attempt }) => attempt > 1)).toBeTrue();
  await expectEveryRowOnce('shared_');
  // The requests of every worker are readable without any of their disks, also those of the worker that left.
  const logged = new Set((await networkLog(service, run.id)).map(({ stream_name }) => stream_name));
  expect(logged.size).toBe(STREAMS);
  for (const { machine } of [first, second, third]) expect(machine.files()).toEqual([]);
  // One entry of each process and host: a worker that is killed early may have stored nothing.
  const uses = await service.deps.db.select().from(auditEvents).where(eq(auditEvents.resource_id, 'OBJECT_STORE_URL'));
  expect(uses.length).toBeGreaterThan(1);
  for (const use of uses) expect(use).toMatchObject({ kind: 'secret_use', action: 'store_object', account_id: null });
  expect(uses.map(({ details }) => details?.host)).toContain(`${store.host}:${store.port}`);
}, 240_000);

test.skipIf(!machines.isolated)(
  'a machine that loses the network for a while neither delays a run nor duplicates a row when it returns',
  async () => {
    const [first] = [startWorker(), startWorker()];
    const run = await startRun('cut_');
    await until(async () => (await run.running()) >= 6);
    first.machine.cable('down');
    await until(async () => (await run.streams()).some(({ attempt }) => attempt === 2), { timeout_ms: 90_000 });
    // It continues with everything it had buffered; its fence is outdated.
    first.machine.cable('up');
    expect((await runEnded(service, run.id, 120_000)).status).toBe('succeeded');
    await expectEveryRowOnce('cut_');
    const streams = await run.streams();
    expect(streams.map(({ rows_loaded }) => rows_loaded)).toEqual(Array.from({ length: STREAMS }, () => ROWS));
  },
  240_000,
);
