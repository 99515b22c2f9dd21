import { describe, expect, setSystemTime, test } from 'bun:test';
import { eq, inArray } from 'drizzle-orm';
import {
  accountConnectors,
  accounts,
  connectionRuns,
  connections,
  connectionStreams,
  events,
} from '../../db/schema/index.ts';
import { LIVE_RUN } from '../../server/pipeline/run-states.ts';
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

  test('a continuous connection that cannot start leaves one skipped run, needs attention, and looks again soon', async () => {
    const continuous = { ...hourly, type: 'continuous', interval_minutes: null } as const;
    const { connection, source } = await due(ago(1), { schedule: continuous });
    const setSource = (status: 'broken' | 'active') =>
      deps.db.update(accountConnectors).set({ status }).where(eq(accountConnectors.id, source.id));
    const look = async () => {
      await deps.db
        .update(connections)
        .set({ next_run_at: ago(1) })
        .where(eq(connections.id, connection.id));
      await fireDue(deps);
    };
    await setSource('broken');
    await fireDue(deps);
    const wait = Date.parse((await nextOf(connection.id)) ?? '') - Date.now();
    expect([wait > 5_000, wait < 15_000]).toEqual([true, true]);
    await look();
    expect(await runsOf(connection.id)).toMatchObject([{ status: 'skipped', skip_reason: 'source_not_ready' }]);
    const { body } = await testApi(service).call('GET', `/connections/${connection.id}`);
    expect(body).toMatchObject({
      health: 'warning',
      last_run: {
        status: 'skipped',
        error: { code: 'source_not_ready', message: expect.stringContaining(source.name) },
      },
    });
    await setSource('active');
    await look();
    expect((await runsOf(connection.id)).map(({ status }) => status)).toEqual(['skipped', 'queued']);
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

  test('gives each connection of a batch its own outcome', async () => {
    const [fine, running, paused, broken, empty] = [
      await due(ago(5)),
      await due(ago(4)),
      await due(ago(3), { status: 'paused' }),
      await due(ago(2)),
      await due(ago(1)),
    ];
    await running.start();
    await deps.db.update(accountConnectors).set({ status: 'broken' }).where(eq(accountConnectors.id, broken.source.id));
    await deps.db
      .update(connectionStreams)
      .set({ selected: false })
      .where(eq(connectionStreams.connection_id, empty.connection.id));
    await fireDue(deps);
    const outcomes = [fine, running, paused, broken, empty].map(async ({ connection }) =>
      (await runsOf(connection.id)).map(({ number, status, skip_reason }) => [number, skip_reason ?? status]),
    );
    expect(await Promise.all(outcomes)).toEqual([
      [[1, 'queued']],
      [
        [1, 'queued'],
        [2, 'overlap'],
      ],
      [],
      [[1, 'source_not_ready']],
      [[1, 'no_streams_selected']],
    ]);
    const emitted = await deps.db
      .select({ event: events.event, connection_id: events.connection_id })
      .from(events)
      .where(inArray(events.connection_id, [fine.connection.id, broken.connection.id]));
    expect(emitted.map(({ event }) => event).toSorted()).toEqual(['connection_run_queued', 'connection_run_skipped']);
  });

  test('lets a batch use no more than the limit of its account', async () => {
    const limit = (max_live_runs: number | null) =>
      deps.db.update(accounts).set({ max_live_runs }).where(eq(accounts.id, service.account_id));
    const live = await deps.db.$count(connectionRuns, inArray(connectionRuns.status, LIVE_RUN));
    const all = [await due(ago(3)), await due(ago(2)), await due(ago(1))];
    await limit(live + 2);
    await fireDue(deps);
    await limit(null);
    const statuses = all.map(async ({ connection }) => (await runsOf(connection.id)).map(({ status }) => status));
    expect(await Promise.all(statuses)).toEqual([['queued'], ['queued'], ['skipped']]);
  });

  test('starts the others when one of a batch fails, and tries that one again later', async () => {
    const unknown = { ...hourly, timezone: 'Nowhere/Gone', type: 'cron', cron_expression: '0 * * * *' } as const;
    const failing = await due(ago(9), { schedule: unknown });
    const others = [await due(ago(2)), await due(ago(1))];
    await fireDue(deps);
    for (const { connection } of others) expect(await runsOf(connection.id)).toMatchObject([{ status: 'queued' }]);
    expect(await runsOf(failing.connection.id)).toEqual([]);
    expect(Date.parse((await nextOf(failing.connection.id)) ?? '')).toBeGreaterThan(Date.now());
    await deps.db.update(connections).set({ schedule: hourly }).where(eq(connections.id, failing.connection.id));
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
      // The estimate of its clock may be milliseconds ahead.
      expect(minutesAhead).toBeLessThan(61);
    });
  });

  test('does not fire a paused connection', async () => {
    const { connection } = await due(ago(1), { status: 'paused' });
    await fireDue(deps);
    expect(await runsOf(connection.id)).toEqual([]);
    expect(await nextOf(connection.id)).toBeNull();
  });
});
