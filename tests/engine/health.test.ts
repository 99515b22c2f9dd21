import { afterAll, describe, expect, test } from 'bun:test';
import { and, eq, sql } from 'drizzle-orm';
import { accountConnectors, connections, events } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline, runEnded } from '../support/pipeline.ts';

const service = await testDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0 } });
const worker = await startWorker(service.deps);
afterAll(() => worker.stop());
const { db } = service.deps;

let counter = 0;
const pipeline = (source: Record<string, unknown>) =>
  makePipeline(service, {
    source: { name: 'sample', parameters: { counter: `h${++counter}`, rows: 3, ...source } },
    destination: { name: 'sample', parameters: {} },
  });
const failed = async (created: Awaited<ReturnType<typeof pipeline>>) => runEnded(service, await created.start());
const statusOf = async (id: string) =>
  (await db.select().from(accountConnectors).where(eq(accountConnectors.id, id)))[0]?.status;
const eventsOf = async (id: string) =>
  (await db.select().from(events).where(eq(events.account_connector_id, id))).map((event) => event.event);

describe('a source', () => {
  test('is broken after three consecutive configuration errors, not before', async () => {
    const created = await pipeline({ fault: 'config' });
    await failed(created);
    await failed(created);
    expect(await statusOf(created.source.id)).toBe('active');
    await failed(created);
    expect(await statusOf(created.source.id)).toBe('broken');
    expect(await eventsOf(created.source.id)).toContain('account_connector_broken');
    expect(await statusOf(created.destination.id)).toBe('active');
  });

  test('needs new credentials after the first authentication failure', async () => {
    const created = await pipeline({ fault: 'auth' });
    await failed(created);
    expect(await statusOf(created.source.id)).toBe('needs_reauth');
    expect(await eventsOf(created.source.id)).toContain('account_connector_reauth_required');
  });

  test('is active again after a successful run', async () => {
    const created = await pipeline({});
    const run_id = await created.start((tx) =>
      tx.update(accountConnectors).set({ status: 'broken' }).where(eq(accountConnectors.id, created.source.id)),
    );
    expect((await runEnded(service, run_id)).status).toBe('succeeded');
    expect(await statusOf(created.source.id)).toBe('active');
  });
});

describe('a connection', () => {
  const afterOneMoreFailure = async (runs: number, days: number) => {
    const created = await pipeline({ fault: 'config' });
    await db
      .update(connections)
      .set({ consecutive_failures: runs - 1, created_at: sql`now() - make_interval(days => ${days})` })
      .where(eq(connections.id, created.connection.id));
    await failed(created);
    const [row] = await db
      .select()
      .from(connections)
      .where(and(eq(connections.id, created.connection.id)));
    return { status: row?.status, status_reason: row?.status_reason };
  };
  test('without a success for 30 runs and 7 days is disabled', async () => {
    expect(await afterOneMoreFailure(30, 8)).toEqual({ status: 'auto_disabled', status_reason: 'too_many_failures' });
  });
  test.each([
    [29, 8],
    [30, 6],
  ])('stays active after %d failures in %d days', async (runs, days) => {
    expect((await afterOneMoreFailure(runs, days)).status).toBe('active');
  });
});
