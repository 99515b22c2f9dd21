import { describe, expect, test } from 'bun:test';
import { eq, inArray, sql } from 'drizzle-orm';
import { connectionRuns, connectionStreams, streamRuns } from '../../db/schema/index.ts';
import {
  type Claim,
  claimStream,
  type Progress,
  recordCheckpoint,
  recordCheckpoints,
  recordProgress,
} from '../../server/runs/claim-stream.ts';
import { deliverAction } from '../../server/queue/jobs.ts';
import { endAttempt } from '../../server/runs/end-attempt.ts';
import { recordFreshness } from '../../server/runs/log/freshness.ts';
import { recoverStuckRuns } from '../../server/runs/recover-stuck-runs.ts';
import { MAX_LOG_LINES } from '../../server/runs/log/append-lines.ts';
import { Attempt } from '../../server/transfer/attempt.ts';
import { testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline } from '../support/pipeline.ts';
import { until } from '../support/until.ts';
import type { Outcome } from '../../server/runs/outcome.ts';

const service = await testDeps();
const { deps } = service;
const { db, queue } = deps;
const destination = { name: 'sample', parameters: {} };

test('a job that becomes due later is taken when it is due', async () => {
  const taken: string[] = [];
  await queue.work(deliverAction, 1, async ({ delivery_id }) => void taken.push(delivery_id));
  const delivery_id = Bun.randomUUIDv7();
  await queue.send(db, deliverAction, { delivery_id }, { start_after: 2 });
  // Without a notice, the slot itself looks once a minute.
  await until(() => taken.includes(delivery_id), { timeout_ms: 20_000 });
});

/** A run that no worker sees: the test claims its streams itself. */
async function started(streams = 1, max_parallel_streams = streams) {
  const source = { name: 'sample', parameters: { streams } };
  const made = await makePipeline(service, { source, destination, connection: { max_parallel_streams } });
  const run_id = await made.start();
  return { ...made, run_id, streams: () => getStreamRuns(service, run_id) };
}

async function claimed() {
  const made = await started();
  const [stream] = await made.streams();
  return { ...made, claim: (await claimStream(db, stream!.id, deps.worker_id))! };
}

const progressOf = (claim: Claim): Progress => new Attempt(deps, claim).progress;

const end = (claim: Claim, outcome: Outcome) =>
  db.transaction((tx) => endAttempt(tx, queue, { claim, outcome, progress: progressOf(claim), warnings: [] }));

/** Ages the heartbeat to that of a worker that died this many seconds ago. */
const age = (id: string, seconds: number) =>
  db
    .update(streamRuns)
    .set({ heartbeat_at: sql`clock_timestamp() - make_interval(secs => ${seconds})` })
    .where(eq(streamRuns.id, id));

const ERROR = {
  code: 'timeout',
  message: 'The server did not answer',
  origin: 'source',
  type: 'timeout',
  retryable: true,
  stream_name: 'stream_1',
  internal_message: null,
  occurred_at: '2026-01-31T12:00:00Z',
} as const;
const RETRY: Outcome = { kind: 'retry', error: ERROR, wait_until: null, backoff_base_seconds: 60 };
const NOTHING = { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 };
const COMMIT = { state: { cursor: '7' }, state_version: 1, counts: { ...NOTHING, rows_loaded: 7 } };

describe('a claim', () => {
  test('holds while the heartbeat is fresh, and passes on once it is not', async () => {
    const { claim } = await claimed();
    await age(claim.stream_run.id, 3);
    expect(await claimStream(db, claim.stream_run.id, deps.worker_id)).toBeNull();
    await age(claim.stream_run.id, 8);
    const next = (await claimStream(db, claim.stream_run.id, deps.worker_id))!;
    expect(next.stream_run.attempt).toBe(2);
    expect(next.stream_run.fence).toBeGreaterThan(claim.stream_run.fence);
  });

  test('that was lost records nothing: no progress, no checkpoint, no end', async () => {
    const { claim, streams } = await claimed();
    await age(claim.stream_run.id, 8);
    const next = (await claimStream(db, claim.stream_run.id, deps.worker_id))!;
    expect(await recordProgress(db, claim, progressOf(claim))).toBeNull();
    expect(await recordCheckpoint(db, claim, COMMIT)).toBe(false);
    expect(await end(claim, { kind: 'succeeded' })).toBe(true);
    expect(await end(claim, { kind: 'succeeded', commit: COMMIT })).toBe(false);
    expect(await streams()).toMatchObject([
      { status: 'running', rows_loaded: 0, cursor_after: null, fence: next.stream_run.fence },
    ]);
    expect(await recordCheckpoint(db, next, COMMIT)).toBe(true);
  });

  test('is not given for a stream that has ended, however old its heartbeat', async () => {
    const made = await started(2);
    const [first] = await made.streams();
    const claim = (await claimStream(db, first!.id, deps.worker_id))!;
    await end(claim, { kind: 'succeeded' });
    await age(first!.id, 3600);
    expect((await getRun(service, made.run_id)).status).toBe('running');
    expect(await claimStream(db, first!.id, deps.worker_id)).toBeNull();
    expect(await made.streams()).toMatchObject([{ status: 'succeeded' }, { status: 'pending' }]);
  });

  test('is not given while the run stops', async () => {
    const made = await started(2, 1);
    const [first, second] = await made.streams();
    await claimStream(db, first!.id, deps.worker_id);
    const stopping = { status: 'stopping' as const, stop_requested_at: sql`now()` };
    await db.update(connectionRuns).set(stopping).where(eq(connectionRuns.id, made.run_id));
    expect(await claimStream(db, second!.id, deps.worker_id)).toBeNull();
  });
});

describe('the end of an attempt', () => {
  test('records the last commit of the destination with it', async () => {
    const { claim, streams } = await claimed();
    expect(await end(claim, { kind: 'succeeded', commit: COMMIT })).toBe(true);
    expect(await streams()).toMatchObject([{ status: 'succeeded', cursor_after: '7' }]);
    const [stored] = await db.select().from(connectionStreams).where(eq(connectionStreams.id, claim.stream.id));
    expect(stored).toMatchObject({ state: COMMIT.state, state_version: 1 });
  });

  test('that fails while the run stops is a stop, not a retry', async () => {
    const made = await claimed();
    await made.stop(made.run_id);
    expect((await getRun(service, made.run_id)).status).toBe('stopping');
    await end(made.claim, RETRY);
    expect(await made.streams()).toMatchObject([{ status: 'stopped' }]);
    expect((await getRun(service, made.run_id)).status).toBe('stopped');
  });

  test('that has moved everything while the run stops is a success', async () => {
    const made = await claimed();
    await made.stop(made.run_id);
    await end(made.claim, { kind: 'succeeded' });
    expect(await made.streams()).toMatchObject([{ status: 'succeeded' }]);
  });

  test('starts the next stream, in the order of their names', async () => {
    const made = await started(3, 1);
    const dispatched = async () => (await made.streams()).map((stream) => stream.dispatched_at !== null);
    expect(await dispatched()).toEqual([true, false, false]);
    await end((await claimStream(db, (await made.streams())[0]!.id, deps.worker_id))!, { kind: 'succeeded' });
    expect(await dispatched()).toEqual([true, true, false]);
  });
});

test('what happens to a stream is in its log, at most so many lines and the last one', async () => {
  const made = await claimed();
  const { id } = made.claim.stream_run;
  await age(id, 61);
  await recoverStuckRuns(deps);
  const second = (await claimStream(db, id, deps.worker_id))!;
  await end(second, RETRY);
  const third = (await claimStream(db, id, deps.worker_id))!;
  const attempt = new Attempt(deps, third);
  for (let n = 0; n < 200; n += 1) attempt.warn('odd_value', `Value ${n}`);
  await recordProgress(db, third, { ...attempt.progress, lines: attempt.log.lines });
  const logged = async () => (await made.streams())[0]!.log;
  expect((await logged()).slice(0, 6).map(({ level, code, attempt: n }) => `${level} ${code} ${n}`)).toEqual([
    'info claimed 1',
    'warning worker_lost 1',
    'info claimed 2',
    'warning timeout 2',
    'info claimed 3',
    'warning odd_value 3',
  ]);
  expect((await logged())[3]!.message).toBe(
    'Attempt failed: The server did not answer. The next one begins in 3 min 0 s',
  );
  expect((await logged()).at(-1)).toMatchObject({ code: 'log_full' });
  await db
    .update(streamRuns)
    .set({ log: Array(MAX_LOG_LINES).fill(attempt.log.lines[0]) })
    .where(eq(streamRuns.id, id));
  await recordProgress(db, third, { ...attempt.progress, lines: attempt.log.lines });
  await end(third, { kind: 'failed', error: ERROR });
  expect(await logged()).toHaveLength(MAX_LOG_LINES + 1);
  expect((await logged()).at(-1)).toMatchObject({ level: 'error', code: 'timeout', attempt: 3 });
});

test('a job that the queue has lost is sent again', async () => {
  const { claim, streams } = await claimed();
  await age(claim.stream_run.id, 61);
  const sent = () => db.execute(sql`select id from pgboss.job where data->>'stream_run_id' = ${claim.stream_run.id}`);
  const before = (await sent()).length;
  await recoverStuckRuns(deps);
  expect(await streams()).toMatchObject([{ status: 'retrying' }]);
  expect(await sent()).toHaveLength(before + 1);
});

test('checkpoints and freshness of streams lock them in one order, so that neither waits for the other', async () => {
  const made = await started(3);
  const claims = await Promise.all(
    (await made.streams()).map(async ({ id }) => (await claimStream(db, id, deps.worker_id))!),
  );
  // As streams that are read from one log.
  const fence = Math.max(...claims.map(({ stream_run }) => stream_run.fence));
  for (const { stream_run } of claims) stream_run.fence = fence;
  await db.update(streamRuns).set({ fence }).where(eq(streamRuns.connection_run_id, made.run_id));
  const ids = claims.map(({ stream }) => stream.id).sort();
  const [first, ...others] = ids as [string, ...string[]];
  // Its row is now behind those of the others.
  await db.update(connectionStreams).set({ backfill_days: 1 }).where(eq(connectionStreams.id, first));
  const counts = { rows_loaded: 1, rows_updated: 0, rows_deleted: 0, bytes_loaded: 1, rows_rejected: 0 };
  const checkpoint = (claim: Claim) => ({ claim, state: { cursor: '1' }, state_version: 1, counts });
  const works = [
    () => recordCheckpoints(db, claims.map(checkpoint).toReversed()),
    () => recordFreshness(db, ids.toReversed(), new Date()),
  ];
  for (const work of works) {
    const { running } = await db.transaction(async (tx) => {
      await tx.update(connectionStreams).set({ backfill_days: 2 }).where(eq(connectionStreams.id, first));
      const begun = work();
      const waiting = sql`select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      await until(async () => (await db.execute<{ n: number }>(waiting))[0]!.n > 0);
      const free = await tx
        .select({ id: connectionStreams.id })
        .from(connectionStreams)
        .where(inArray(connectionStreams.id, others))
        .for('no key update', { skipLocked: true });
      expect(free.map(({ id }) => id).sort()).toEqual(others);
      return { running: begun };
    });
    await running;
  }
});

test('a run that followed a log is not taken for one that read all of it', async () => {
  const freshOf = async ({ stream }: Claim) => {
    const where = eq(connectionStreams.id, stream.id);
    const [row] = await db.select({ at: connectionStreams.fresh_at }).from(connectionStreams).where(where);
    return row!.at;
  };
  const [followed, read] = [await claimed(), await claimed()];
  await end(followed.claim, { kind: 'succeeded', rolled_over: true });
  await end(read.claim, { kind: 'succeeded' });
  expect(await freshOf(followed.claim)).toBeNull();
  expect(await freshOf(read.claim)).not.toBeNull();
});
