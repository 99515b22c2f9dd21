import { afterAll, describe, expect, test } from 'bun:test';
import { eq, inArray, sql } from 'drizzle-orm';
import {
  accountConnectors,
  accounts,
  events,
  planLimitNotices,
  streamRuns,
  usageLedger,
} from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { recoverStuckRuns } from '../../server/runs/recover-stuck-runs.ts';
import { testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0 } });
const { db } = service.deps;
const worker = await startWorker(service.deps);
afterAll(() => worker.stop());

const pipeline = (source: Record<string, unknown>, rest: Partial<Parameters<typeof makePipeline>[1]> = {}) =>
  makePipeline(service, {
    source: { name: 'sample', parameters: { counter: Bun.randomUUIDv7(), ...source } },
    destination: { name: 'sample', parameters: {} },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append' },
    ...rest,
  });

const ledgerOf = (run_id: string) =>
  db
    .select()
    .from(usageLedger)
    .where(eq(usageLedger.connection_run_id, run_id))
    .orderBy(usageLedger.attempt, usageLedger.stream_name);

async function run(created: Pipeline) {
  const id = await created.start();
  const ended = await runEnded(service, id);
  return { ended, entries: await ledgerOf(id) };
}

/** Ends the free period of a pipeline's source. */
const payFor = (created: Pipeline) =>
  db
    .update(accountConnectors)
    .set({ free_until: '2020-01-01T00:00:00.000Z' })
    .where(eq(accountConnectors.id, created.source.id));
const freeUntil = async (created: Pipeline) => {
  const [row] = await db.select().from(accountConnectors).where(eq(accountConnectors.id, created.source.id));
  return row!.free_until;
};
const rowsOf = (entries: { rows_free: number; rows_paid: number }[]) =>
  entries.reduce((sum, entry) => sum + entry.rows_free + entry.rows_paid, 0);

describe('the ledger', () => {
  test('has one entry per stream run, and they add up to the run', async () => {
    const created = await pipeline({ rows: 120, streams: 3 });
    await payFor(created);
    const { ended, entries } = await run(created);
    expect(entries).toMatchObject(
      [1, 2, 3].map((n) => ({
        stream_name: `stream_${n}`,
        attempt: 1,
        rows_paid: 120,
        rows_free: 0,
        credits_used: 120,
        kind: 'elt',
      })),
    );
    expect(ended).toMatchObject({ status: 'succeeded', credits_used: 360, credits_free: 0 });
    expect(entries[0]?.bytes_loaded).toBeGreaterThan(0);
  });

  test('counts each row once when attempts fail, and never an uncommitted row', async () => {
    const created = await pipeline({ rows: 100, fault: 'retryable', fault_at_row: 50, faulty_attempts: 3 });
    await payFor(created);
    const { ended, entries } = await run(created);
    const [stream] = await getStreamRuns(service, ended.id);
    expect(stream).toMatchObject({ attempt: 4, rows_loaded: 100 });
    expect(rowsOf(entries)).toBe(100);
    expect(ended.credits_used).toBe(100);
  });

  test('has an entry for each attempt that committed, and they add up to the loaded rows', async () => {
    // 40 MB before the fault, so that the first attempt commits at least one checkpoint (32 MB).
    const created = await pipeline({
      rows: 1000,
      value_bytes: 50_000,
      batch_rows: 20,
      fault: 'retryable',
      fault_at_row: 800,
      faulty_attempts: 1,
    });
    await payFor(created);
    const { ended, entries } = await run(created);
    expect(entries.map((entry) => entry.attempt)).toEqual([1, 2]);
    expect(entries[0]!.rows_paid).toBeGreaterThan(0);
    expect(rowsOf(entries)).toBe(1000);
    expect(ended.credits_used).toBe(1000);
  });

  test('bills the committed rows of a stream that failed permanently, and nothing without a commit', async () => {
    const nothing = await pipeline({ rows: 100, fault: 'config', fault_at_row: 50 });
    expect((await run(nothing)).entries).toEqual([]);
    const some = await pipeline({
      rows: 1000,
      value_bytes: 50_000,
      batch_rows: 20,
      fault: 'config',
      fault_at_row: 800,
    });
    await payFor(some);
    const { ended, entries } = await run(some);
    const [stream] = await getStreamRuns(service, ended.id);
    expect(ended.status).toBe('failed');
    expect(stream!.rows_loaded).toBeGreaterThan(0);
    expect(rowsOf(entries)).toBe(stream!.rows_loaded);
  });

  test('gets the committed rows of a lost worker when the run is force-ended', async () => {
    const created = await pipeline({ rows: 10, fault: 'stall' });
    await payFor(created);
    const id = await created.start();
    await until(async () => (await getStreamRuns(service, id))[0]?.status === 'running');
    await db.update(streamRuns).set({ rows_loaded: 7, bytes_loaded: 70 }).where(eq(streamRuns.connection_run_id, id));
    const long_ago = sql`now() - interval '25 hours'`;
    await db.execute(sql`update connection_runs set queued_at = ${long_ago} where id = ${id}`);
    await recoverStuckRuns(service.deps);
    expect(await getRun(service, id)).toMatchObject({ status: 'failed', credits_used: 7 });
    expect(await ledgerOf(id)).toMatchObject([{ attempt: 1, rows_paid: 7, bytes_loaded: 70 }]);
  });

  test('bills reruns again, at four credits a row for applications', async () => {
    const created = await pipeline(
      { rows: 30 },
      { connection: { kind: 'reverse_etl' }, stream: { sync_mode: 'full_refresh', destination_sync_mode: 'append' } },
    );
    await payFor(created);
    for (let n = 0; n < 2; n++) expect((await run(created)).ended.credits_used).toBe(120);
  });
});

describe('the free period', () => {
  test('starts with the first success of a source and lasts thirty days; the run that starts it is free', async () => {
    const created = await pipeline({ rows: 40, fault: 'config', faulty_attempts: 1 });
    await run(created);
    expect(await freeUntil(created)).toBeNull();
    const { ended, entries } = await run(created);
    expect(entries).toMatchObject([{ rows_free: 40, rows_paid: 0, credits_used: 0, credits_free: 40 }]);
    expect(ended).toMatchObject({ status: 'succeeded', credits_used: 0, credits_free: 40 });
    const days = (Date.parse((await freeUntil(created))!) - Date.parse(ended.finished_at!)) / 86_400_000;
    expect(days).toBeCloseTo(30, 2);
    const until_then = await freeUntil(created);
    await run(created);
    expect(await freeUntil(created)).toBe(until_then);
  });
});

describe('credits', () => {
  test('of a limited plan emit one event at 80 % and one when they are used up', async () => {
    await db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, service.account_id));
    const created = await pipeline(
      { rows: 10 },
      { stream: { sync_mode: 'full_refresh', destination_sync_mode: 'append' } },
    );
    await payFor(created);
    const emitted = async () => {
      const kinds = ['plan_limit_warning', 'plan_limit_reached', 'credits_exhausted'];
      const rows = await db
        .select({ event: events.event })
        .from(events)
        .where(inArray(events.event, kinds))
        .orderBy(events.id);
      return rows.map((row) => row.event);
    };
    const use = async (rows_paid: number) => {
      const [sample] = await db.select().from(usageLedger).limit(1);
      await db.insert(usageLedger).values({
        ...sample!,
        id: Bun.randomUUIDv7(),
        stream_run_id: Bun.randomUUIDv7(),
        rows_paid,
        credits_used: rows_paid,
      });
    };
    await run(created);
    expect(await emitted()).toEqual([]);
    await use(799_990);
    await run(created);
    await run(created);
    expect(await emitted()).toEqual(['plan_limit_warning']);
    const [used] = await db.select({ credits: sql<number>`sum(${usageLedger.credits_used})::int` }).from(usageLedger);
    await use(1_000_000 - used!.credits - 5);
    await run(created);
    await expect(created.start()).rejects.toThrow('The credits of the plan are used up');
    expect(await emitted()).toEqual(['plan_limit_warning', 'plan_limit_reached', 'credits_exhausted']);
    expect(await db.select().from(planLimitNotices)).toHaveLength(2);
  });
});
