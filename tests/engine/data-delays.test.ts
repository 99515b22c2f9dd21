import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { connections, events } from '../../db/schema/index.ts';
import { announceDelays, minutesLate } from '../../server/worker/data-delays.ts';
import { evaluatePending } from '../../server/automation/evaluation/evaluation-loop.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { firingsOf } from '../support/firings.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const { db } = deps;
const { call } = testApi(service);
const make = makerOf(call);
const { trigger, casesOf, emitEvent } = firingsOf(service, call);

const MINUTE = 60_000;
const at = (minutes: number) => new Date(Date.UTC(2026, 0, 5, 9) + minutes * MINUTE);
const interval = (interval_minutes: number) =>
  ({ type: 'interval', interval_minutes, cron_expression: null, timezone: 'UTC', time_of_day: null }) as const;
const cron = (cron_expression: string) =>
  ({ type: 'cron', interval_minutes: null, cron_expression, timezone: 'UTC', time_of_day: null }) as const;

describe('data is late', () => {
  test.each([
    ['after twice the interval', interval(60), 121, 61],
    ['not before', interval(60), 120, null],
    [
      'never for a manual schedule',
      { ...interval(60), type: 'manual', interval_minutes: null } as const,
      100_000,
      null,
    ],
    // A success on Monday at 9:00: due at 10:00, late after 11:00.
    ['for an hourly cron', cron('0 * * * *'), 121, 61],
    ['not before for an hourly cron', cron('0 * * * *'), 119, null],
    // A success on Monday at 9:00: the ticks are Tuesday and Wednesday at 8:00.
    ['for a cron on workdays', cron('0 8 * * 1-5'), 2 * 1440 + 1, 1441 + 60],
    ['only after two of its ticks', cron('0 8 * * 1-5'), 1440 + 30, null],
  ])('%s', (_what, schedule, minutes, late) => {
    expect(minutesLate(schedule, { from: at(0), now: at(minutes) })).toBe(late);
  });
});

const delays = (connection_id: string) =>
  db
    .select()
    .from(events)
    .where(and(eq(events.event, 'data_delayed'), eq(events.connection_id, connection_id)));
const change = (id: string, set: Partial<typeof connections.$inferInsert>) =>
  db.update(connections).set(set).where(eq(connections.id, id));
const ago = (minutes: number) => new Date(Date.now() - minutes * MINUTE).toISOString();
const hourly = (rest: object = {}) =>
  make.connection({ schedule: { type: 'interval', interval_minutes: 60 }, tags: ['prod'], ...rest });

describe('data_delayed', () => {
  test('is emitted once per delay by any number of workers, with its variables, and again for the next delay', async () => {
    const { id, name } = await hourly();
    await change(id, { ticking_since: ago(10_000), last_succeeded_at: ago(150) });
    await Promise.all([announceDelays(deps), announceDelays(deps), announceDelays(deps)]);
    await announceDelays(deps);
    const emitted = await delays(id);
    expect(emitted).toHaveLength(1);
    expect(emitted[0]).toMatchObject({
      category: 'run',
      severity: 'warning',
      summary: `Connection "${name}" is 90 minutes late`,
      payload: { connection_id: id, connection_name: name, minutes_late: 90, tags: ['prod'], status: 'active' },
    });
    await change(id, { last_succeeded_at: ago(1) });
    expect(await announceDelays(deps)).toBe(0);
    // The reported delay lies before the last success, which is long ago by now.
    await change(id, { last_succeeded_at: ago(130), delay_told_at: ago(140) });
    await announceDelays(deps);
    expect(await delays(id)).toHaveLength(2);
  });

  test.each([
    ['is paused', { status: 'paused' as const }],
    ['runs manually only', { next_run_at: null }],
    ['was scheduled more recently', { ticking_since: ago(119) }],
    ['was deleted', { deleted_at: ago(1), next_run_at: null }],
  ])('is not emitted for a connection that %s', async (_what, set) => {
    const { id } = await hourly();
    await change(id, { ticking_since: ago(10_000), last_succeeded_at: null, ...set });
    await announceDelays(deps);
    expect(await delays(id)).toEqual([]);
  });

  test('is not emitted for a schedule that was just enabled, however old the last success', async () => {
    const { id } = await hourly({ status: 'paused' });
    await change(id, { ticking_since: ago(10_000), last_succeeded_at: ago(9000) });
    expect((await call('POST', `/connections/${id}`, { status: 'active' })).status).toBe(200);
    await announceDelays(deps);
    expect(await delays(id)).toEqual([]);
  });

  test('is emitted for a cron schedule when a tick brought no success', async () => {
    const { id } = await make.connection({ schedule: { type: 'cron', cron_expression: '* * * * *' } });
    await change(id, { ticking_since: ago(10_000), last_succeeded_at: ago(30) });
    await announceDelays(deps);
    expect(await delays(id)).toEqual([]);
    await call('POST', `/connections/${id}/run`);
    await announceDelays(deps);
    expect((await delays(id)).map(({ payload }) => payload.minutes_late)).toEqual([expect.any(Number)]);
  });

  test('opens a case that the next success resolves', async () => {
    await evaluatePending(deps);
    const created = await trigger({ rule: 'event == "data_delayed" && minutes_late >= 60' });
    const { id } = await hourly();
    await change(id, { ticking_since: ago(500) });
    await announceDelays(deps);
    await evaluatePending(deps);
    expect(await casesOf(created)).toMatchObject([{ status: 'open', connection_id: id }]);
    await emitEvent('connection_succeeded', { connection_id: id });
    await evaluatePending(deps);
    expect(await casesOf(created)).toMatchObject([{ status: 'resolved', resolution: 'auto' }]);
  });
});
