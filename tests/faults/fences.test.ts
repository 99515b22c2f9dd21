import { afterAll, describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import pino from 'pino';
import postgres from 'postgres';
import { accountConnectors, connectionRuns, connectionStreams, streamRuns } from '../../db/schema/index.ts';
import { LEASE_SECONDS } from '../../server/runs/claim-stream.ts';
import { releaseStreams } from '../../server/runs/worker-deaths.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const server = startHttpServer();
// A checkpoint is due after each batch of a source.
const service = await testDeps({
  config: { EGRESS_ALLOW: [new URL(server.url).host], RETRY_BACKOFF_SECONDS: 0, CHECKPOINT_KB: 1 },
});
const lines: Record<string, unknown>[] = [];
const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
const worker = await startWorker({ ...service.deps, log });
const { db } = service.deps;
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  await worker.stop();
  await Promise.all([source.end(), target.end(), server.close()]);
  await Promise.all([from.drop(), to.drop()]);
});

const { raw } = testApi(service);
let counter = 0;
async function pipeline(
  destination: { name: string; parameters: Record<string, unknown> },
  sync_mode: 'incremental' | 'full_refresh',
  destination_sync_mode: 'append' | 'overwrite' = sync_mode === 'incremental' ? 'append' : 'overwrite',
): Promise<Pipeline & { table: string }> {
  const table = `t${++counter}`;
  await source.unsafe(`create table ${table} (id int primary key)`);
  await add(table, 30);
  const created = await makePipeline(service, {
    source: { name: 'postgres', parameters: postgresParameters(from.url) },
    destination,
    only: [table],
    stream: {
      sync_mode,
      destination_sync_mode,
      cursor_field: sync_mode === 'incremental' ? ['id'] : null,
    },
  });
  return { ...created, table };
}

const add = (table: string, rows: number) =>
  source.unsafe(
    `insert into ${table} select n + i from (select coalesce(max(id), 0) n from ${table}) t, generate_series(1, ${rows}) i`,
  );

async function run({ start }: Pipeline) {
  const id = await start();
  const ended = await runEnded(service, id);
  const [stream] = await getStreamRuns(service, id);
  return { ...ended, stream: stream! };
}

const streamOf = async ({ connection }: Pipeline) =>
  (await db.select().from(connectionStreams).where(eq(connectionStreams.connection_id, connection.id)))[0]!;
const fenced = () => lines.filter(({ msg }) => msg === 'attempt was fenced');
const metric = async () => {
  const text = await (await raw('/metrics')).text();
  return Number(/^datapipelines_stream_attempts_fenced_total (\d+)$/m.exec(text)?.[1]);
};

describe('a control database restored from an older backup', () => {
  test.each([
    ['postgres', 'incremental', () => ({ name: 'postgres', parameters: postgresParameters(to.url) })],
    ['postgres', 'full_refresh', () => ({ name: 'postgres', parameters: postgresParameters(to.url) })],
    ['duckdb', 'incremental', () => ({ name: 'duckdb', parameters: { path: 'fences.duckdb' } })],
    ['file', 'incremental', () => ({ name: 'file', parameters: { path: 'fences', format: 'jsonl' } })],
  ] as const)('continues above the fences of %s (%s)', async (_, sync_mode, destination) => {
    const created = await pipeline(destination(), sync_mode);
    await run(created);
    const { id, state, state_version, committed_version } = await streamOf(created);
    await add(created.table, 30);
    expect((await run(created)).status).toBe('succeeded');
    await db
      .update(connectionStreams)
      .set({ state, state_version, committed_version })
      .where(eq(connectionStreams.id, id));
    await db.execute(sql`select setval('stream_run_fence', 1, false)`);
    await add(created.table, 30);
    const before = { metric: await metric(), logged: fenced().length };
    const third = await run(created);
    expect(third).toMatchObject({ status: 'succeeded', stream: { attempt: 2 } });
    expect(third.stream.rows_loaded).toBe(sync_mode === 'incremental' ? 30 : 90);
    expect(await metric()).toBe(before.metric + 1);
    const [entry] = fenced().slice(before.logged);
    expect(entry).toMatchObject({ stream_run_id: third.stream.id, attempt: 1, destination_fence: expect.any(Number) });
    expect((await run(created)).stream).toMatchObject({
      attempt: 1,
      rows_loaded: sync_mode === 'incremental' ? 0 : 90,
    });
  });

  test.each([
    ['postgres', () => ({ name: 'postgres', parameters: postgresParameters(to.url) })],
    ['file', () => ({ name: 'file', parameters: { path: 'forgotten', format: 'jsonl' } })],
  ])('appends no rows of a full refresh to %s that may be there already; the next run does', async (_, destination) => {
    const created = await pipeline(destination(), 'full_refresh', 'append');
    await run(created);
    const last = await run(created);
    expect(last).toMatchObject({ status: 'succeeded', stream: { rows_loaded: 30 } });
    // The backup is from before the last run, and its successor was queued when it was taken.
    await db.delete(connectionRuns).where(eq(connectionRuns.id, last.id));
    const refused = await run(created);
    expect(refused.error).toMatchObject({ code: 'destination_went_ahead', origin: 'destination', retryable: false });
    expect(refused.error!.message).toContain(last.stream.id);
    expect(refused.stream.rows_loaded).toBe(0);
    for (const _run of [1, 2]) expect(await run(created)).toMatchObject({ status: 'succeeded', warnings: [] });
  });

  test('a destination that another service writes at the same time: the run fails and says so', async () => {
    const created = await pipeline({ name: 'postgres', parameters: postgresParameters(to.url) }, 'incremental');
    await run(created);
    // The fence of the other service is always the newer one.
    await target.unsafe(`create function raise_fence() returns trigger language plpgsql as
        $$ begin new.fence := new.fence + 100000; return new; end $$;
      create trigger raised before update on public._pipeline_state for each row execute function raise_fence()`);
    const failed = await run(created);
    await target.unsafe('drop function raise_fence cascade');
    expect(failed.error).toMatchObject({ code: 'destination_fence_ahead', origin: 'destination' });
    expect(failed.error!.message).toContain('another service');
    await add(created.table, 5);
    expect((await run(created)).stream.rows_loaded).toBe(5);
  });
});

test('a worker that cannot reach the control database stops sending before another one may claim the stream, which sends at most one batch again', async () => {
  const calls: number[] = [];
  const keys: string[] = [];
  let isSlow = true;
  server.on('/slow', async ({ method, headers }) => {
    if (method === 'POST') {
      calls.push(Date.now());
      keys.push(headers['idempotency-key']!);
    }
    if (isSlow) await Bun.sleep(40);
    return Response.json({});
  });
  const { start } = await makePipeline(service, {
    source: { name: 'sample', parameters: { rows: 300 } },
    destination: { name: 'http', parameters: { url: `${server.url}/slow`, batch_rows: 1 } },
  });
  const id = await start();
  await until(() => calls.length > 2);
  const [stream] = await getStreamRuns(service, id);
  const control = postgres(service.url, { max: 1, onnotice: () => {} });
  await control.begin(async (tx) => {
    // No heartbeat gets through any more.
    const [row] = await tx`select heartbeat_at from stream_runs where id = ${stream!.id} for update`;
    const claimable = new Date(row!.heartbeat_at).getTime() + LEASE_SECONDS * 1000;
    await until(() => Date.now() > claimable + 300, { timeout_ms: 10_000 });
    expect(calls.filter((at) => at > claimable)).toEqual([]);
    isSlow = false;
  });
  await control.end();
  expect(await runEnded(service, id, 60_000)).toMatchObject({ status: 'succeeded' });
  expect((await getStreamRuns(service, id))[0]).toMatchObject({ attempt: 2, rows_loaded: 300 });
  expect(new Set(keys).size).toBe(300);
  expect(keys.length).toBeLessThanOrEqual(301);
}, 90_000);

test.each([
  ['full_refresh', 'the same rows', 0],
  ['incremental', 'other rows', 12],
] as const)(
  'an attempt that sends rows to an application (%s), taken over, whose source returns %s: warns of %i rows',
  async (sync_mode, answer, again) => {
    const path = `/taken-${++counter}`;
    const created = await pipeline(
      { name: 'http', parameters: { url: `${server.url}${path}`, batch_rows: 3 } },
      sync_mode,
      'append',
    );
    const sent: number[] = [];
    let id = '';
    server.on(path, async ({ method, body }) => {
      if (method !== 'POST') return Response.json({});
      sent.push(...JSON.parse(body).map((row: { id: number }) => row.id));
      if (sent.length !== 15) return Response.json({});
      if (answer === 'other rows') await source.unsafe(`update ${created.table} set id = id + 1000`);
      await until(() => id !== '');
      await releaseStreams(service.deps, eq(streamRuns.connection_run_id, id));
      return Response.json({});
    });
    id = await created.start();
    const ended = await runEnded(service, id);
    const [stream] = await getStreamRuns(service, id);
    expect(ended).toMatchObject({ status: 'succeeded' });
    expect(stream).toMatchObject({ attempt: 2, rows_loaded: 30 });
    // The batch whose record was refused may be among them: it counts as the one batch more.
    expect(sent.length).toBe(again === 0 ? 33 : 45);
    expect(ended.warnings).toMatchObject(
      again === 0 ? [] : [{ code: 'rows_sent_again', message: expect.stringMatching(/^12 rows in 4 batches, /) }],
    );
  },
);

test('an attempt that takes over sets no checkpoint among rows that were sent, so that no row is sent twice', async () => {
  const path = `/uncut-${++counter}`;
  const { start, source: connector } = await makePipeline(service, {
    source: { name: 'sample', parameters: { rows: 30, batch_rows: 30, value_bytes: 1_000 } },
    destination: { name: 'http', parameters: { url: `${server.url}${path}`, batch_rows: 3 } },
    stream: { sync_mode: 'incremental' },
  });
  const sent: number[] = [];
  const started = Promise.withResolvers<string>();
  server.on(path, async ({ method, body }) => {
    if (method !== 'POST') return Response.json({});
    sent.push(...JSON.parse(body).map((row: { id: number }) => row.id));
    if (sent.length !== 15) return Response.json({});
    const id = await started.promise;
    // The next attempt reads batches that end between those that were sent.
    const parameters = { ...connector.parameters, batch_rows: 4 };
    await db.update(accountConnectors).set({ parameters }).where(eq(accountConnectors.id, connector.id));
    await releaseStreams(service.deps, eq(streamRuns.connection_run_id, id));
    return Response.json({});
  });
  const id = await start();
  started.resolve(id);
  expect(await runEnded(service, id)).toMatchObject({ status: 'succeeded', warnings: [] });
  expect((await getStreamRuns(service, id))[0]).toMatchObject({ attempt: 2, rows_loaded: 30 });
  // The record of the batch that the first attempt sent last was refused.
  const ids = Array.from({ length: 30 }, (_, at) => at + 1);
  expect(sent).toEqual([...ids.slice(0, 15), ...ids.slice(12)]);
});

test('an end of an attempt that the control database does not take is recorded again', async () => {
  // A sequence is not rolled back: the first two ends fail.
  await db.execute(sql`create sequence refused_ends`);
  await db.execute(sql`create function refuse_end() returns trigger language plpgsql as $$ begin
    if nextval('refused_ends') <= 2 then raise 'the disk is full' using errcode = '53100'; end if;
    return new; end $$`);
  await db.execute(sql`create trigger refuse_end before update on stream_runs for each row
    when (new.status = 'succeeded') execute function refuse_end()`);
  const ended = await run(
    await pipeline({ name: 'file', parameters: { path: 'ends', format: 'jsonl' } }, 'full_refresh'),
  );
  await db.execute(sql`drop trigger refuse_end on stream_runs`);
  expect(ended).toMatchObject({ status: 'succeeded', stream: { attempt: 1, rows_loaded: 30 } });
  expect(lines.filter(({ msg }) => msg === 'end of an attempt not recorded')).toHaveLength(2);
});
