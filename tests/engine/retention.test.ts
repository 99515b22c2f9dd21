import { describe, expect, test } from 'bun:test';
import { eq, inArray, ne, sql } from 'drizzle-orm';
import {
  accounts,
  cases,
  connectionRuns,
  connectionStreams,
  events,
  networkLogSegments,
  runDays,
  streamRuns,
  usageLedger,
  verifications,
} from '../../db/schema/index.ts';
import { deleteOldNetworkLogs } from '../../server/connector-runtime/network-log/retention.ts';
import { fencedAttempts } from '../../server/runs/claim-stream.ts';
import { deleteOldHistory } from '../../server/worker/delete-old-history.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { firingsOf } from '../support/firings.ts';
import { ledgerEntry } from '../support/ledger.ts';
import { makePipeline } from '../support/pipeline.ts';

const service = await testDeps();
const { deps, account_id } = service;
const { db, objects } = deps;
const { call } = testApi(service);
const firings = firingsOf(service, call);
const sample = { name: 'sample', parameters: {} };
const pipeline = await makePipeline(service, { source: sample, destination: sample });
const connection_run_id = await pipeline.start();

/** Stores a log of this age and returns its object key. */
async function logOf(days: number): Promise<string> {
  const object_key = `network_logs/${Bun.randomUUIDv7()}`;
  await objects.put(object_key, new Uint8Array([1]));
  const created_at = new Date(Date.now() - days * 86_400_000 - 60_000).toISOString();
  const rest = { connector_type: 'source', entries: 1, bytes: 1 } as const;
  await db.insert(networkLogSegments).values({ account_id, connection_run_id, object_key, created_at, ...rest });
  return object_key;
}

const kept = async () => (await db.select().from(networkLogSegments)).map(({ object_key }) => object_key);

describe('network logs', () => {
  test.each([
    ['self_hosted', 14],
    ['free', 7],
    ['pro', 14],
    ['enterprise', 14],
  ] as const)('on the plan %s are deleted after %d days, file and row, and not before', async (plan_id, days) => {
    await db.update(accounts).set({ plan_id }).where(eq(accounts.id, account_id));
    const [old, young] = [await logOf(days), await logOf(days - 1)];
    await Promise.all([deleteOldNetworkLogs(deps), deleteOldNetworkLogs(deps)]);
    expect(await kept()).toEqual([young]);
    expect(await objects.get(old)).toBeNull();
    expect(await objects.get(young)).not.toBeNull();
    await db.delete(networkLogSegments);
  });
});

const DAY_MS = 86_400_000;
const ago = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString();
const clean = () => deleteOldHistory({ ...deps, now: () => new Date() });

describe('runs', () => {
  const { connection } = pipeline;
  let number = 1000;
  const insertRun = async (days: number, values: Partial<typeof connectionRuns.$inferInsert> = {}) => {
    const at = ago(days);
    const [row] = await db
      .insert(connectionRuns)
      .values({
        account_id,
        connection_id: connection.id,
        number: (number += 1),
        status: 'failed',
        run_type: 'plain',
        trigger_type: 'api',
        queued_at: at,
        created_at: at,
        finished_at: at,
        ...values,
      })
      .returning();
    return row!.id;
  };
  const insertStreamRun = async (run_id: string, values: Partial<typeof streamRuns.$inferInsert> = {}) => {
    const [stream] = await db
      .select()
      .from(connectionStreams)
      .where(eq(connectionStreams.connection_id, connection.id));
    await db.insert(streamRuns).values({
      account_id,
      connection_id: connection.id,
      connection_run_id: run_id,
      stream_id: stream!.id,
      stream_name: stream!.name,
      status: 'failed',
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      finished_at: ago(400),
      ...values,
    });
  };
  const present = async (ids: string[]) =>
    (await db.select({ id: connectionRuns.id }).from(connectionRuns).where(inArray(connectionRuns.id, ids))).map(
      ({ id }) => id,
    );
  const usageOf = async () =>
    (
      await call(
        'GET',
        `/billing/usage/aggregated?date_range=custom&start_date=${ago(399).slice(0, 10)}&end_date=${ago(0).slice(0, 10)}`,
      )
    ).body;

  test('that are old go with their streams; counts, live ones and what is needed stay', async () => {
    const old = await insertRun(390);
    await insertStreamRun(old, { attempts_fenced: 3 });
    const needed = {
      young: await insertRun(360),
      logged: await insertRun(390),
      original: await insertRun(390),
      certified: await insertRun(390),
      last_success: await insertRun(390, { status: 'succeeded', run_type: 'full_refresh' }),
    };
    // A later success of the connection that did not load the stream.
    const usual = await insertRun(380, { status: 'succeeded' });
    await insertStreamRun(needed.last_success, { status: 'succeeded', finished_at: ago(390) });
    await logOfRun(needed.logged);
    await insertRun(1, { rerun_of_run_id: needed.original });
    const certificate = { account_id, connection_id: connection.id, status: 'succeeded' as const };
    await db.insert(verifications).values({ ...certificate, connection_run_id: needed.certified, finished_at: ago(1) });
    const before = { usage: await usageOf(), fenced: await fencedAttempts(db) };
    await Promise.all([clean(), clean()]);
    expect(await present([old])).toEqual([]);
    expect(new Set(await present([...Object.values(needed), usual, connection_run_id]))).toEqual(
      new Set([...Object.values(needed), usual, connection_run_id]),
    );
    expect(await db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, old))).toEqual([]);
    expect(await db.select().from(runDays)).toMatchObject([
      { connection_id: connection.id, status: 'failed', runs: 1 },
    ]);
    const { updated_at: _, ...usage } = await usageOf();
    const { updated_at: __, ...unchanged } = before.usage;
    expect(usage).toEqual(unchanged);
    expect(await fencedAttempts(db)).toBe(before.fenced);
  });

  test('that succeeded are kept as far as events compare runs with them', async () => {
    await db.delete(verifications);
    const ids: string[] = [];
    for (let at = 0; at < 33; at += 1) ids.push(await insertRun(500 - at, { status: 'succeeded' }));
    await clean();
    // One success of the test before is newer.
    expect(await present(ids)).toHaveLength(29);
    expect(await present(ids.slice(0, 4))).toEqual([]);
  });

  test('go earlier where the billing plan says so', async () => {
    await db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, account_id));
    const [old, young] = [await insertRun(31), await insertRun(29)];
    await clean();
    await db.update(accounts).set({ plan_id: 'self_hosted' }).where(eq(accounts.id, account_id));
    expect(await present([old, young])).toEqual([young]);
  });

  async function logOfRun(run_id: string): Promise<void> {
    const rest = { connector_type: 'source', entries: 1, bytes: 1 } as const;
    await db
      .insert(networkLogSegments)
      .values({ account_id, connection_run_id: run_id, object_key: 'network_logs/kept', ...rest });
  }
});

describe('usage', () => {
  test('of old days becomes one row per day and stream, and every sum stays', async () => {
    await db.delete(usageLedger);
    const day = (days: number) => ago(days).slice(0, 10);
    const connection_id = Bun.randomUUIDv7();
    const entries = [410, 410, 410, 409, 300].flatMap((days, at) => [
      { ...ledgerEntry(account_id, 10 + at), day: day(days), connection_id, bytes_loaded: at, rows_free: at },
      { ...ledgerEntry(account_id, 1000 + at), day: day(days), connection_id, stream_name: 'stream_2' },
    ]);
    // A run that has not ended meters its next attempt by what it has metered so far.
    entries.push({ ...ledgerEntry(account_id, 7), day: day(410), connection_id, connection_run_id });
    await db.insert(usageLedger).values(entries);
    const sums = () =>
      db.execute(sql`
        select day, connection_id, kind, stream_name, sum(rows_free) as free, sum(rows_paid) as paid,
          sum(credits_used) as credits, sum(credits_free) as waived, sum(bytes_loaded) as bytes
        from usage_ledger group by 1, 2, 3, 4 order by 1, 2, 3, 4`);
    const before = await sums();
    await Promise.all([clean(), clean()]);
    expect(await sums()).toEqual(before);
    const rows = await db.select().from(usageLedger);
    expect(
      rows
        .filter(({ stream_run_id }) => stream_run_id !== null)
        .map((row) => row.day)
        .toSorted(),
    ).toEqual([day(410), day(300), day(300)].toSorted());
    expect(rows.filter((row) => row.day === day(409))).toHaveLength(2);
  });
});

describe('events', () => {
  test('that are old go with their deliveries; those of live cases and waiting deliveries stay', async () => {
    const trigger = await firings.trigger();
    await firings.emitEvent('connection_failed', { connection_id: connection_run_id });
    await firings.emitEvent('connection_failed', { connection_id: pipeline.connection.id });
    await firings.evaluate();
    const [, open] = await firings.casesOf(trigger);
    const plain = await firings.event('connection_failed');
    const waiting = await firings.event('connection_failed');
    const [sent, unsent] = await firings.deliveriesOf(trigger);
    // The system triggers have cases of these events, too.
    await db
      .update(cases)
      .set({ status: 'resolved', resolved_at: ago(0), resolution: 'manual' })
      .where(ne(cases.id, open!.id));
    await db.execute(sql`update deliveries set status = 'failed', next_attempt_at = null where id = ${sent!.id}`);
    await db.execute(sql`update deliveries set event_id = ${waiting.id} where id = ${unsent!.id}`);
    await db.update(events).set({ occurred_at: ago(91) });
    await db.execute(sql`update events set processing_status = 'processed'`);
    const unseen = await firings.event('connection_failed');
    await db
      .update(events)
      .set({ occurred_at: ago(91), processing_status: 'received' })
      .where(eq(events.id, unseen.id));
    await Promise.all([clean(), clean()]);
    const ids = (await db.select({ id: events.id }).from(events)).map(({ id }) => id);
    expect(new Set(ids)).toEqual(new Set([...open!.latest_event_ids, waiting.id, unseen.id]));
    expect(ids).not.toContain(plain.id);
    expect((await firings.deliveriesOf(trigger)).map(({ id }) => id)).toEqual([unsent!.id]);
    expect(await firings.casesOf(trigger)).toHaveLength(2);
  });

  test('stay where their delivery goes earlier', async () => {
    await db.delete(events);
    const trigger = await firings.trigger();
    await firings.emitEvent('connection_failed', { connection_id: Bun.randomUUIDv7() });
    await firings.evaluate();
    const [delivery] = await firings.deliveriesOf(trigger);
    await db.execute(sql`
      update deliveries set status = 'failed', next_attempt_at = null, created_at = ${ago(91)} where id = ${delivery!.id}`);
    await clean();
    expect(await firings.deliveriesOf(trigger)).toEqual([]);
    expect(await db.select().from(events).where(eq(events.id, delivery!.event_id))).toHaveLength(1);
  });
});
