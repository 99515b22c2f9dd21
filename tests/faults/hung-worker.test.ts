import { afterAll, describe, expect, test } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Database } from 'bun:sqlite';
import { eq, sql } from 'drizzle-orm';
import { tasks } from '../../db/schema/index.ts';
import { filesRootOf } from '../../server/connector-runtime/files-root.ts';
import { environmentOf } from '../../server/platform/config.ts';
import { openLog } from '../../server/platform/log.ts';
import { superviseWorker } from '../../server/process/supervise.ts';
import { recoverStuckTasks } from '../../server/worker/background-tasks.ts';
import { testDeps } from '../support/database.ts';
import { childrenOf } from '../support/processes.ts';
import { getRun, getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { deps } = service;
const worker = superviseWorker({
  env: environmentOf(deps.config, service.url),
  log: openLog('silent'),
  silent_ms: 2_000,
});
afterAll(() => worker.stop());

const destination = { name: 'sample', parameters: {} };
const slow = { rows: 60, batch_rows: 1, batch_delay_ms: 50 };

const queryProcesses = () => childrenOf(worker.pid() ?? 0, 'query-process.ts');

/** A run of another connection that is on the worker now. */
async function neighbour() {
  const made = await makePipeline(service, { source: { name: 'sample', parameters: slow }, destination });
  const id = await made.start();
  await until(async () => ((await getStreamRuns(service, id))[0]?.rows_read ?? 0) > 0);
  return id;
}

describe('a stream that takes its worker down', () => {
  test.each(['block', 'die'] as const)('(%s) fails by name, and the others go on', async (fault) => {
    const parameters = { ...slow, streams: 3, fault, fault_stream: 'stream_2', fault_at_row: 20, counter: fault };
    const made = await makePipeline(service, { source: { name: 'sample', parameters }, destination });
    const other = await neighbour();
    const before = worker.pid();
    const id = await made.start();
    expect(await runEnded(service, id)).toMatchObject({
      status: 'partially_succeeded',
      error: { code: 'worker_killed', stream_name: 'stream_2', origin: 'platform', retryable: false },
    });
    const streams = await getStreamRuns(service, id);
    expect(streams.map(({ status }) => status)).toEqual(['succeeded', 'failed', 'succeeded']);
    expect(streams[1]).toMatchObject({ worker_deaths: 2, attempt: 2 });
    expect(streams[1]?.error?.message).toInclude(fault === 'block' ? 'gave no heartbeat for 2 s' : 'SIGKILL');
    expect((await runEnded(service, other)).status).toBe('succeeded');
    expect(worker.pid()).not.toBe(before);
  });

  test('once is taken up again, and succeeds', async () => {
    const parameters = { ...slow, fault: 'die', faulty_attempts: 1, fault_at_row: 20, counter: 'once' };
    const made = await makePipeline(service, { source: { name: 'sample', parameters }, destination });
    const id = await made.start();
    expect((await runEnded(service, id)).status).toBe('succeeded');
    expect(await getStreamRuns(service, id)).toMatchObject([{ attempt: 2, rows_loaded: 60, worker_deaths: 0 }]);
  });

  test('does not include one with an SQLite view that never ends, which a stop ends', async () => {
    const folder = await filesRootOf(deps, service.account_id);
    await mkdir(folder, { recursive: true });
    using database = new Database(join(folder, 'views.db'), { create: true });
    database.run('create view numbers as select 1 as n');
    const made = await makePipeline(service, {
      source: { name: 'sqlite', parameters: { path: 'views.db' } },
      destination,
    });
    database.run('drop view numbers');
    database.run(`create view numbers as with recursive s(n) as (select 1 union all select n + 1 from s)
      select n from s where n < 0`);
    const before = worker.pid();
    const id = await made.start();
    await until(() => queryProcesses().length === 1);
    // Others go on for longer than a hung worker would.
    expect((await runEnded(service, await neighbour())).status).toBe('succeeded');
    expect((await runEnded(service, await neighbour())).status).toBe('succeeded');
    expect(worker.pid()).toBe(before);
    await made.stop(id);
    expect((await runEnded(service, id)).status).toBe('stopped');
    await until(() => queryProcesses().length === 0);
  });
});

describe('a background task whose worker died', () => {
  const stuck = async (attempts: number) => {
    const made = await makePipeline(service, { source: { name: 'sample', parameters: {} }, destination });
    const [task] = await deps.db
      .insert(tasks)
      .values({
        account_id: service.account_id,
        kind: 'discover_catalog',
        account_connector_id: made.source.id,
        status: 'running',
        attempts,
        heartbeat_at: sql`now() - interval '1 minute'`,
      })
      .returning();
    return async () => (await deps.db.select().from(tasks).where(eq(tasks.id, task!.id)))[0];
  };

  test('gets another attempt', async () => {
    const task = await stuck(2);
    await recoverStuckTasks(deps);
    await until(async () => (await task())?.status === 'succeeded');
    expect(await task()).toMatchObject({ attempts: 3 });
  });

  test('three times ends as failed', async () => {
    const task = await stuck(3);
    await recoverStuckTasks(deps);
    expect(await task()).toMatchObject({ status: 'failed', error: { code: 'worker_killed' } });
    expect((await task())?.finished_at).not.toBeNull();
  });
});

test('a run is not touched by a worker that is only replaced', async () => {
  const id = await neighbour();
  expect((await getRun(service, id)).status).toBe('running');
  process.kill(worker.pid()!, 'SIGTERM');
  expect((await runEnded(service, id)).status).toBe('succeeded');
  expect(await getStreamRuns(service, id)).toMatchObject([{ rows_loaded: 60, attempts_without_progress: 0 }]);
});
