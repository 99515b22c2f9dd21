import { afterAll, describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import postgres from 'postgres';
import { connectionStreams, events } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, networkLog, type Pipeline, runEnded } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0 } });
const target = await createPlainDatabase();
const rows = postgres(target.url, { max: 2, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await rows.end();
  await target.drop();
});

let counter = 0;
/** A sample source into its own table of the target. */
async function pipeline(source: Record<string, unknown>, rest: Partial<Parameters<typeof makePipeline>[1]> = {}) {
  counter += 1;
  const { hostname, port, username, password, pathname } = new URL(target.url);
  const created = await makePipeline(service, {
    source: { name: 'sample', parameters: { counter: `c${counter}`, ...source } },
    destination: {
      name: 'postgres',
      parameters: {
        host: hostname,
        port: Number(port),
        username: decodeURIComponent(username),
        password: decodeURIComponent(password),
        database: pathname.slice(1),
      },
    },
    connection: { table_prefix: `t${counter}_`, ...rest.connection },
    stream: rest.stream,
  });
  return { ...created, table: `t${counter}_stream_1` };
}

const count = async (table: string) => {
  const [row] = await rows.unsafe(`select count(*)::int n, count(distinct id)::int ids from "${table}"`);
  return row as unknown as { n: number; ids: number };
};

async function run(created: Pipeline) {
  const id = await created.start();
  return { run: await runEnded(service, id), streams: await getStreamRuns(service, id) };
}

describe('a run', () => {
  test('moves every row once and reports the count', async () => {
    const created = await pipeline({ rows: 1234 });
    const { run: ended, streams } = await run(created);
    expect(ended).toMatchObject({ status: 'succeeded', number: 1, attempt: 1, error: null });
    expect(streams).toMatchObject([{ status: 'succeeded', rows_read: 1234, rows_loaded: 1234, attempt: 1 }]);
    expect(await count(created.table)).toEqual({ n: 1234, ids: 1234 });
  });

  test('with many streams respects max_parallel_streams and finishes them all', async () => {
    const created = await pipeline(
      { rows: 20, streams: 7, batch_delay_ms: 5 },
      { connection: { max_parallel_streams: 2 } },
    );
    const id = await created.start();
    let most = 0;
    await until(async () => {
      const streams = await getStreamRuns(service, id);
      most = Math.max(most, streams.filter((stream) => stream.status === 'running').length);
      return streams.every((stream) => stream.status === 'succeeded');
    });
    expect(most).toBeLessThanOrEqual(2);
    expect((await runEnded(service, id)).status).toBe('succeeded');
  });

  test('with zero rows succeeds and creates the table', async () => {
    const created = await pipeline({ rows: 0 });
    expect((await run(created)).run.status).toBe('succeeded');
    expect(await count(created.table)).toEqual({ n: 0, ids: 0 });
  });

  test('emits its events in order, the last with the totals', async () => {
    const created = await pipeline({ rows: 10 });
    const { run: ended } = await run(created);
    const written = await service.deps.db
      .select()
      .from(events)
      .where(eq(events.connection_run_id, ended.id))
      .orderBy(events.id);
    expect(written.map((event) => event.event)).toEqual([
      'connection_run_queued',
      'connection_run_started',
      'stream_run_succeeded',
      'connection_succeeded',
    ]);
    expect(written.at(-1)?.payload).toMatchObject({ rows_loaded: 10, streams_total: 1, retry_count: 0 });
  });

  test('is refused while another one is active, with the id of the active one', async () => {
    const created = await pipeline({ rows: 10, fault: 'stall' });
    const id = await created.start();
    const refused = await created.start().catch((error) => error);
    expect(refused).toMatchObject({ status: 400, code: 'run_already_active', context: { connection_run_id: id } });
    await created.stop(id);
    expect((await runEnded(service, id)).status).toBe('stopped');
  });
});

describe('failures', () => {
  test.each([
    ['auth', 'auth_error'],
    ['config', 'config_error'],
    ['schema_changed', 'schema_changed'],
  ])('%s: ends the run at once with its error class, and writes no partial table', async (fault, type) => {
    const created = await pipeline({ rows: 100, fault, fault_at_row: 50 });
    const { run: ended, streams } = await run(created);
    expect(ended).toMatchObject({ status: 'failed', error: { type, origin: 'source', retryable: false } });
    expect(streams).toMatchObject([{ status: 'failed', attempt: 1, rows_loaded: 0 }]);
    expect((await count(created.table).catch(() => ({ n: 0 }))).n).toBe(0);
  });

  test('that are retryable are retried, and every row is there once', async () => {
    const created = await pipeline({ rows: 100, fault: 'retryable', fault_at_row: 50, faulty_attempts: 2 });
    const { run: ended, streams } = await run(created);
    expect(ended).toMatchObject({ status: 'succeeded', attempt: 3 });
    expect(streams).toMatchObject([{ attempt: 3, rows_loaded: 100, error: null }]);
    expect(await count(created.table)).toEqual({ n: 100, ids: 100 });
  });

  test('that persist end the run after five attempts without progress', async () => {
    const created = await pipeline({ rows: 100, fault: 'unknown' });
    const { run: ended, streams } = await run(created);
    expect(ended).toMatchObject({ status: 'failed', error: { code: 'unexpected_error', retryable: true } });
    expect(streams[0]?.attempt).toBe(5);
  });

  test('a rate limit delays the run, does not count as an attempt, and is visible meanwhile', async () => {
    const created = await pipeline({ rows: 100, fault: 'rate_limit', rate_limit_ms: 1500, faulty_attempts: 1 });
    const id = await created.start();
    await until(async () => (await getStreamRuns(service, id))[0]?.rate_limited_until != null);
    expect(await runEnded(service, id)).toMatchObject({ status: 'succeeded' });
    expect((await getStreamRuns(service, id))[0]).toMatchObject({
      attempts_without_progress: 0,
      rate_limited_until: null,
    });
  });

  test('in one stream do not stop the others: partially_succeeded', async () => {
    const created = await pipeline({ rows: 10, streams: 3, fault: 'config', fault_stream: 'stream_2' });
    const { run: ended, streams } = await run(created);
    expect(ended).toMatchObject({ status: 'partially_succeeded', error: { stream_name: 'stream_2' } });
    expect(streams.map((stream) => stream.status)).toEqual(['succeeded', 'failed', 'succeeded']);
  });
});

describe('a stop', () => {
  test.each(['stall', 'hang'])(
    'ends a source that %ss within 5 seconds',
    async (fault) => {
      const created = await pipeline({ rows: 1000, fault, fault_at_row: 100 });
      const id = await created.start();
      await until(async () => (await getStreamRuns(service, id))[0]?.status === 'running');
      const asked = performance.now();
      expect(await created.stop(id)).toBe(id);
      expect((await runEnded(service, id)).status).toBe('stopped');
      expect(performance.now() - asked).toBeLessThan(5500);
      expect((await getStreamRuns(service, id))[0]).toMatchObject({ status: 'stopped' });
    },
    15_000,
  );

  test('cancels a waiting retry', async () => {
    const created = await pipeline({ rows: 10, fault: 'rate_limit', rate_limit_ms: 60_000 });
    const id = await created.start();
    await until(async () => (await getRun(service, id)).status === 'retrying');
    await created.stop(id);
    expect((await getRun(service, id)).status).toBe('stopped');
  });

  test('of an ended run does nothing', async () => {
    const created = await pipeline({ rows: 1 });
    const { run: ended } = await run(created);
    expect(await created.stop(ended.id)).toBeNull();
    expect((await getRun(service, ended.id)).status).toBe('succeeded');
  });
});

describe('an incremental stream', () => {
  const incremental = { sync_mode: 'incremental', destination_sync_mode: 'append' } as const;

  test('resumes from its cursor: a second run adds no existing row', async () => {
    const created = await pipeline({ rows: 300 }, { stream: incremental });
    await run(created);
    const { streams } = await run(created);
    expect(streams).toMatchObject([{ status: 'succeeded', rows_loaded: 0 }]);
    expect(await count(created.table)).toEqual({ n: 300, ids: 300 });
    const [stream] = await service.deps.db
      .select()
      .from(connectionStreams)
      .where(and(eq(connectionStreams.connection_id, created.connection.id)));
    expect(stream?.state?.cursor).toStartWith('2025-01-01');
  });

  test('that fails midway resumes from its last checkpoint, without lost or duplicate rows', async () => {
    // 40 MB before the fault, so that at least one checkpoint (32 MB) is committed.
    const created = await pipeline(
      { rows: 1000, value_bytes: 50_000, batch_rows: 20, fault: 'retryable', fault_at_row: 800, faulty_attempts: 1 },
      { stream: incremental },
    );
    const { streams } = await run(created);
    expect(streams).toMatchObject([{ status: 'succeeded', attempt: 2, rows_loaded: 1000 }]);
    // The rows before the fault and those after the checkpoint, of which some are read twice.
    expect(streams[0]?.rows_read).toBeGreaterThanOrEqual(1000);
    expect(streams[0]?.rows_read).toBeLessThan(1800);
    expect(streams[0]?.bytes_read).toBeGreaterThanOrEqual(1000 * 50_000);
    expect(await count(created.table)).toEqual({ n: 1000, ids: 1000 });
  });

  test.each(['checkpoint', 'after_checkpoint', 'after_finish'])(
    'into a destination that fails at %s goes on from what the destination has committed',
    async (fault_at) => {
      // 40 MB, so that a checkpoint is due (32 MB) before the end.
      const name = Bun.randomUUIDv7();
      const made = await makePipeline(service, {
        source: { name: 'sample', parameters: { rows: 800, value_bytes: 50_000, batch_rows: 20 } },
        destination: {
          name: 'sample',
          parameters: { folder: name, counter: name, fault: 'retryable', fault_at, faulty_attempts: 1 },
        },
        stream: incremental,
      });
      const { streams } = await run(made);
      expect(streams).toMatchObject([{ status: 'succeeded', attempt: 2, rows_loaded: 800 }]);
    },
  );
});

describe('the network log', () => {
  test('has every request, and no secret in any spelling', async () => {
    const token = 'tr4vel "light"/+x';
    const created = await pipeline({ rows: 30, record_requests: true, token });
    const { run: ended, streams } = await run(created);
    const entries = await networkLog(service, ended.id);
    const source = entries.filter((entry) => entry.connector_type === 'source');
    expect(source).toHaveLength(3);
    expect(source[0]).toMatchObject({ sequence: 1, attempt: 1, stream_name: 'stream_1', response: { status: 200 } });
    expect(source[0]?.redactions).toBeGreaterThan(3);
    expect(entries.some((entry) => entry.request.method === 'COPY')).toBe(true);
    const text = JSON.stringify(entries);
    for (const spelled of [token, encodeURIComponent(token), JSON.stringify(token).slice(1, -1)]) {
      expect(text).not.toContain(spelled);
      expect(text).not.toContain(JSON.stringify(spelled).slice(1, -1));
    }
    expect(text).not.toContain(decodeURIComponent(new URL(target.url).password));
    expect(streams[0]?.requests_count).toBe(entries.length);
  });
});
