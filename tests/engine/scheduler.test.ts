import { describe, expect, setSystemTime, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors, accounts, connectionRuns, connections } from '../../db/schema/index.ts';
import { fireDue } from '../../server/runs/schedule-tick.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline } from '../support/pipeline.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;

const hourly = {
  type: 'interval',
  interval_minutes: 60,
  cron_expression: null,
  timezone: 'UTC',
  time_of_day: null,
} as const;
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

const due = (since: string, rest: Partial<typeof connections.$inferInsert> = {}) =>
  makePipeline(service, {
    source: { name: 'sample', parameters: {} },
    destination: { name: 'sample', parameters: {} },
    connection: { schedule: hourly, next_run_at: since, ...rest },
  });
const runsOf = (connection_id: string) =>
  deps.db
    .select()
    .from(connectionRuns)
    .where(eq(connectionRuns.connection_id, connection_id))
    .orderBy(connectionRuns.number);
const nextOf = async (connection_id: string) =>
  (await deps.db.select().from(connections).where(eq(connections.id, connection_id)))[0]?.next_run_at;

describe('the scheduler', () => {
  test('fires a due connection once, and stays on the grid of its ticks', async () => {
    const since = ago(1);
    const { connection } = await due(since);
    await fireDue(deps);
    await fireDue(deps);
    expect(await runsOf(connection.id)).toMatchObject([
      { status: 'queued', trigger_type: 'schedule', triggered_by: null },
    ]);
    expect(Date.parse((await nextOf(connection.id)) ?? '')).toBe(Date.parse(since) + 3_600_000);
  });

  test('never fires a tick twice, with any number of processes', async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => due(ago(1))));
    await Promise.all(Array.from({ length: 6 }, () => fireDue(deps)));
    for (const { connection } of all) expect(await runsOf(connection.id)).toHaveLength(1);
  });

  test('fires one missed tick after downtime, not all of them', async () => {
    const { connection } = await due(ago(60 * 24));
    await fireDue(deps);
    expect(await runsOf(connection.id)).toHaveLength(1);
    expect(Date.parse((await nextOf(connection.id)) ?? '')).toBeGreaterThan(Date.now());
  });

  test('records a skipped run with its reason when a tick cannot run: overlap', async () => {
    const { connection, start } = await due(ago(1));
    await start();
    await fireDue(deps);
    expect((await runsOf(connection.id))[1]).toMatchObject({ status: 'skipped', skip_reason: 'overlap' });
  });

  test('records a skipped run for a source that is not ready', async () => {
    const { connection, source } = await due(ago(1));
    await deps.db.update(accountConnectors).set({ status: 'broken' }).where(eq(accountConnectors.id, source.id));
    await fireDue(deps);
    expect(await runsOf(connection.id)).toMatchObject([{ status: 'skipped', skip_reason: 'source_not_ready' }]);
  });

  test('records a skipped run while a payment is overdue, and the connection stays active', async () => {
    const { connection } = await due(ago(1));
    const pay = (payment_status: 'overdue' | 'active') =>
      deps.db.update(accounts).set({ payment_status }).where(eq(accounts.id, service.account_id));
    await pay('overdue');
    await fireDue(deps);
    await pay('active');
    const skipped = { status: 'skipped', skip_reason: 'plan_limit', error: { type: 'plan_limit', retryable: false } };
    expect(await runsOf(connection.id)).toMatchObject([skipped]);
    expect(await nextOf(connection.id)).not.toBeNull();
  });

  describe.each([60, -60])('on a machine whose clock differs by %i minutes', (minutes) => {
    const skewed = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      setSystemTime(new Date(Date.now() + minutes * 60_000));
      try {
        return await work();
      } finally {
        setSystemTime();
      }
    };

    test('fires what is due by the clock of the database, and nothing else', async () => {
      const [now, soon] = [await due(ago(1)), await due(ago(-30))];
      const planned = await nextOf(soon.connection.id);
      await skewed(() => fireDue(deps));
      expect(await runsOf(now.connection.id)).toHaveLength(1);
      expect(Date.parse((await nextOf(now.connection.id)) ?? '')).toBeLessThanOrEqual(Date.now() + 3_600_000);
      expect(await runsOf(soon.connection.id)).toEqual([]);
      expect(await nextOf(soon.connection.id)).toBe(planned);
    });

    test('plans the first tick of a new connection by that clock', async () => {
      const make = makerOf(testApi(service).call);
      const created = await skewed(() => make.connection({ schedule: { type: 'interval', interval_minutes: 60 } }));
      const minutesAhead = (Date.parse(created.next_run_at) - Date.now()) / 60_000;
      expect(minutesAhead).toBeGreaterThan(55);
      expect(minutesAhead).toBeLessThanOrEqual(60);
    });
  });

  test('does not fire a paused connection', async () => {
    const { connection } = await due(ago(1), { status: 'paused' });
    await fireDue(deps);
    expect(await runsOf(connection.id)).toEqual([]);
    expect(await nextOf(connection.id)).toBeNull();
  });
});
