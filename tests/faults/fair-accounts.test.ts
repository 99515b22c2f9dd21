import { expect, test } from 'bun:test';
import { and, count, eq } from 'drizzle-orm';
import { streamRuns } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const service = await testDeps();
const { db } = service.deps;

const streamsOf = async (account_id: string, status: 'pending' | 'running') => {
  const [found] = await db
    .select({ n: count() })
    .from(streamRuns)
    .where(and(eq(streamRuns.account_id, account_id), eq(streamRuns.status, status)));
  return found?.n ?? 0;
};
const sides = { destination: { name: 'sample', parameters: {} } };

test('a single account gets all slots: parallel streams of a run, up to the limit of the connection', async () => {
  const created = await makePipeline(service, {
    ...sides,
    source: { name: 'sample', parameters: { rows: 8, streams: 7, batch_rows: 1, batch_delay_ms: 150 } },
    connection: { max_parallel_streams: 3 },
  });
  const workers = [1, 2].map(() => spawnWorker(service, { WORKER_CONCURRENCY: '4' }));
  const id = await created.start();
  const seen = new Set<number>();
  await until(
    async () => {
      const streams = await getStreamRuns(service, id);
      seen.add(streams.filter(({ status }) => status === 'running').length);
      return streams.every(({ status }) => status === 'succeeded');
    },
    { timeout_ms: 40_000 },
  );
  expect(Math.max(...seen)).toBe(3);
  for (const worker of workers) worker.kill('SIGKILL');
});

test('a thousand queued streams of one account do not delay another account', async () => {
  const endless = { rows: 1_000_000, streams: 50, batch_rows: 1, batch_delay_ms: 200 };
  for (let n = 0; n < 20; n += 1) {
    const large = await makePipeline(service, {
      ...sides,
      source: { name: 'sample', parameters: endless },
      connection: { max_parallel_streams: 50 },
    });
    await large.start();
  }
  const workers = [1, 2].map(() => spawnWorker(service, { WORKER_CONCURRENCY: '2' }));
  await until(async () => (await streamsOf(service.account_id, 'running')) >= 4);

  const { account_id } = await testApi(service).otherAccount();
  const small = await makePipeline(
    { ...service, account_id },
    { ...sides, source: { name: 'sample', parameters: { rows: 20, streams: 3 } } },
  );
  const begun = performance.now();
  const id = await small.start();
  await until(async () => (await getRun(service, id)).started_at !== null);
  expect(performance.now() - begun).toBeLessThan(10_000);
  expect((await runEnded(service, id)).status).toBe('succeeded');
  expect(await getStreamRuns(service, id)).toMatchObject([1, 2, 3].map(() => ({ rows_loaded: 20, attempt: 1 })));
  // The large account has all other slots, and at most one spare slot that it took first.
  expect(await streamsOf(service.account_id, 'pending')).toBeGreaterThanOrEqual(994);
  expect(await streamsOf(service.account_id, 'running')).toBeGreaterThanOrEqual(4);
  for (const worker of workers) worker.kill('SIGKILL');
});
