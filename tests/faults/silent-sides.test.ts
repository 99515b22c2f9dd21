import { afterAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const config = { RETRY_BACKOFF_SECONDS: 0, IDLE_LIMIT_SECONDS: 1, LOCK_WAIT_LIMIT_SECONDS: 2 };
const service = await testDeps({ role: 'worker', config });
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
const analyst = postgres(to.url, { max: 1, onnotice: () => {}, connection: { application_name: 'analysis' } });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await Promise.all([source.end(), target.end(), analyst.end()]);
  await Promise.all([from.drop(), to.drop()]);
});
await source.unsafe(`
  create table letters (id int primary key, body text not null);
  alter table letters alter body set storage external;
  insert into letters select n, repeat('x', 100000) from generate_series(1, 300) n;
  create view slow as select 1 as id, pg_sleep(2)::text as pause;`);

const fromPostgres = (parameters = {}) => ({
  name: 'postgres',
  parameters: { ...postgresParameters(from.url), ...parameters },
});
const toPostgres = { name: 'postgres', parameters: postgresParameters(to.url) };

/** Stops the process that serves a COPY in its middle. */
async function freeze(sql: postgres.Sql, copy: string): Promise<number> {
  let pid: number | undefined;
  await until(async () => {
    const [found] = await sql`
      select a.pid from pg_stat_activity a join pg_stat_progress_copy p on p.pid = a.pid
       where a.datname = current_database() and a.query ilike ${copy} and p.bytes_processed > 0`;
    pid = found?.pid;
    return pid !== undefined;
  });
  process.kill(pid!, 'SIGSTOP');
  return pid!;
}

async function retrying({ start }: Pipeline, act: () => Promise<number>) {
  const id = await start();
  const pid = await act();
  try {
    await until(async () => (await getStreamRuns(service, id))[0]?.error != null);
    return { error: (await getStreamRuns(service, id))[0]!.error, run: await runEnded(service, id) };
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

test('a source that freezes among its rows ends the attempt, not the run', async () => {
  const made = await makePipeline(service, {
    source: fromPostgres({ parallel_reads: 1 }),
    destination: { name: 'sample', parameters: { batch_delay_ms: 20 } },
    only: ['letters'],
  });
  const { error, run } = await retrying(made, () => freeze(source, 'copy %to stdout%'));
  expect(error).toMatchObject({ code: 'source_silent', origin: 'source', type: 'timeout', retryable: true });
  expect(error?.message).toMatch(/^letters: the source 127\.0\.0\.1:\d+ sent nothing for 1 s\. /);
  expect(run).toMatchObject({ status: 'succeeded', attempt: 2 });
});

test('a destination that freezes in a full refresh ends the attempt, not the run', async () => {
  const made = await makePipeline(service, {
    source: { name: 'sample', parameters: { rows: 60, batch_rows: 1, batch_delay_ms: 60 } },
    destination: toPostgres,
    stream: { destination_sync_mode: 'overwrite' },
  });
  const { error, run } = await retrying(made, () => freeze(target, '%copy %from stdin%'));
  expect(error).toMatchObject({ code: 'destination_silent', origin: 'destination', type: 'timeout', retryable: true });
  expect(error?.message).toMatch(/ the destination 127\.0\.0\.1:\d+ accepted nothing for 1 s\. /);
  expect(run).toMatchObject({ status: 'succeeded', attempt: 2 });
  expect(await target`select count(*)::int as rows from stream_1`).toMatchObject([{ rows: 60 }]);
});

test('a lock at the destination is a warning that names its holder, and ends the attempt by a limit of its own', async () => {
  const parameters = { rows: 10 };
  const made = await makePipeline(service, {
    source: { name: 'sample', parameters },
    destination: toPostgres,
    connection: { table_prefix: 'locked_' },
  });
  expect((await runEnded(service, await made.start())).status).toBe('succeeded');
  const locked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const held = analyst.begin(async (tx) => {
    await tx`lock table locked_stream_1 in access exclusive mode`;
    locked.resolve();
    await release.promise;
  });
  await locked.promise;
  const id = await made.start();
  const streamRun = async () => (await getStreamRuns(service, id))[0]!;
  await until(async () => (await streamRun()).warnings.length > 0);
  const waiting = await streamRun();
  expect(waiting).toMatchObject({ status: 'running', error: null });
  expect(waiting.warnings[0]?.code).toBe('lock_wait');
  expect(waiting.warnings[0]?.message).toMatch(
    /^The destination \S+ waits for a lock on locked_stream_1, held by session \d+ \(user \w+, application analysis, idle in transaction, transaction since [\dTZ:-]+, last statement LOCK\)$/,
  );
  await until(async () => (await streamRun()).error !== null);
  expect((await streamRun()).error).toMatchObject({ code: 'lock_timeout', origin: 'destination', retryable: true });
  release.resolve();
  await held;
  expect((await runEnded(service, id)).status).toBe('succeeded');
});

test('statements that take longer than the limit before their first row and after their last one go on', async () => {
  const made = await makePipeline(service, {
    source: fromPostgres(),
    destination: toPostgres,
    only: ['slow'],
  });
  expect((await runEnded(service, await made.start())).status).toBe('succeeded');
  await target.unsafe(`
    create function pause() returns trigger language plpgsql as $$ begin perform pg_sleep(2); return null; end $$;
    create trigger slow after insert on slow for each statement execute function pause()`);
  expect(await runEnded(service, await made.start())).toMatchObject({ status: 'succeeded', attempt: 1, warnings: [] });
});
