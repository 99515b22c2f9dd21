import { beforeEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import fc from 'fast-check';
import { accounts, connectionRuns, connections, usageLedger } from '../../db/schema/index.ts';
import { eachDay, utcDay } from '../../server/platform/utc-days.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { deps, account_id } = service;
const { db } = deps;
const NOW = new Date('2026-03-15T12:00:00.000Z');
deps.now = () => NOW;
const api = testApi(service);
const make = makerOf(api.call);
const first = await make.connection();
const second = await make.connection();
const AGGREGATED = '/billing/usage/aggregated';
const BY_CONNECTION = '/billing/usage/connection-usage';
const custom = (start: string, end: string) => `${AGGREGATED}?date_range=custom&start_date=${start}&end_date=${end}`;
const between = (start: string, end: string) => `${BY_CONNECTION}?start_date=${start}&end_date=${end}`;

type Entry = Partial<typeof usageLedger.$inferInsert>;
const entry = (values: Entry): typeof usageLedger.$inferInsert => ({
  account_id,
  connection_id: first.id,
  connection_run_id: Bun.randomUUIDv7(),
  stream_run_id: Bun.randomUUIDv7(),
  attempt: 1,
  day: '2026-03-15',
  kind: 'elt',
  stream_name: 'stream_1',
  rows_free: 0,
  rows_paid: 0,
  credits_used: 0,
  credits_free: 0,
  bytes_loaded: 0,
  ...values,
});
const enter = (...entries: Entry[]) => db.insert(usageLedger).values(entries.map(entry));
const setAccount = (values: Partial<typeof accounts.$inferInsert>) =>
  db.update(accounts).set(values).where(eq(accounts.id, account_id));

beforeEach(async () => {
  await db.delete(usageLedger);
  await setAccount({ plan_id: 'self_hosted', billing_anchor: '2026-01-10' });
});

const refusals = (path: string) => {
  test('without a key responds 401', async () => {
    expect((await api.anonymous('GET', path)).status).toBe(401);
  });
  test('without billing.read responds 403', async () => {
    const answer = await api.as(await api.keyWith(['users.manage', 'connections.create']))('GET', path);
    expect(answer).toMatchObject({
      status: 403,
      body: { code: 'permission_denied', required_permission: 'billing.read' },
    });
  });
  test('with billing.read alone responds 200', async () => {
    expect((await api.as(await api.keyWith(['billing.read']))('GET', path)).status).toBe(200);
  });
};

describe('GET /billing/plans', () => {
  refusals('/billing/plans');

  test('200: every plan with the current one marked; null means unlimited', async () => {
    await setAccount({ plan_id: 'free' });
    const { status, body } = await api.call('GET', '/billing/plans');
    expect(status).toBe(200);
    expect(body.map((plan: { id: string }) => plan.id)).toEqual([
      'self_hosted',
      'free',
      'starter',
      'pro',
      'enterprise',
    ]);
    expect(body.filter((plan: { is_current: boolean }) => plan.is_current)).toMatchObject([{ id: 'free' }]);
    expect(body[0]).toMatchObject({ credits_included: null, limits: { max_connections: null, max_users: null } });
    expect(body[1]).toMatchObject({
      slug: 'free',
      credits_included: 1_000_000,
      overage_allowed: false,
      limits: {
        max_connections: 3,
        max_sources: 2,
        max_destinations: 2,
        max_users: 2,
        min_schedule_interval_minutes: 60,
      },
      credit_rates: { elt: 1, reverse_etl: 4 },
    });
  });

  test('with an undeclared query parameter responds 422', async () => {
    expect((await api.call('GET', '/billing/plans?all=1')).status).toBe(422);
  });
});

describe('GET /billing/usage/aggregated', () => {
  refusals(AGGREGATED);

  test.each([
    ['start_date=2026-01-01', 'date_range_conflict', 'start_date'],
    ['date_range=today&end_date=2026-01-01', 'date_range_conflict', 'end_date'],
    ['date_range=custom', 'missing_dates', 'start_date'],
    ['date_range=custom&start_date=2026-01-01', 'missing_dates', 'end_date'],
    ['date_range=custom&start_date=2026-01-02&end_date=2026-01-01', 'inverted_range', 'end_date'],
    ['date_range=custom&start_date=2025-01-01&end_date=2026-02-05', 'range_too_long', 'end_date'],
  ])('%s responds 400 %s', async (query, code, field) => {
    expect(await api.call('GET', `${AGGREGATED}?${query}`)).toMatchObject({ status: 400, body: { code, field } });
  });

  test('200: allows 400 days', async () => {
    expect((await api.call('GET', custom('2025-01-01', '2026-02-04'))).status).toBe(200);
  });

  test.each([
    ['date_range=yesterday', 'date_range', 'enum'],
    ['date_range=custom&start_date=2026-02-30&end_date=2026-03-01', 'start_date', 'date_from_datetime_parsing'],
    ['date_range=custom&start_date=2026-03-01&end_date=01.04.2026', 'end_date', 'date_from_datetime_parsing'],
    ['days=3', 'days', 'extra_forbidden'],
  ])('%s responds 422', async (query, name, type) => {
    const answer = await api.call('GET', `${AGGREGATED}?${query}`);
    expect(answer).toMatchObject({ status: 422, body: { detail: [{ loc: ['query', name], type }] } });
  });

  test.each([
    ['current_billing_period', '2026-03-10', '2026-04-09', 'day'],
    ['previous_billing_period', '2026-02-10', '2026-03-09', 'day'],
    ['today', '2026-03-15', '2026-03-15', 'day'],
    ['last_7_days', '2026-03-09', '2026-03-15', 'day'],
    ['last_30_days', '2026-02-14', '2026-03-15', 'day'],
    ['last_90_days', '2025-12-16', '2026-03-15', 'day'],
    ['month_to_date', '2026-03-01', '2026-03-15', 'day'],
    ['last_month', '2026-02-01', '2026-02-28', 'day'],
    ['last_6_months', '2025-09-16', '2026-03-15', 'month'],
    ['last_12_months', '2025-03-16', '2026-03-15', 'month'],
    ['year_to_date', '2026-01-01', '2026-03-15', 'day'],
  ])('%s is %s to %s by %s', async (range, start_date, end_date, granularity) => {
    const { body } = await api.call('GET', `${AGGREGATED}?date_range=${range}`);
    expect(body).toMatchObject({
      date_range: range,
      start_date,
      end_date,
      granularity,
      billing_period: { start: '2026-03-10', end: '2026-04-09' },
    });
    const days = eachDay({ start: start_date, end: end_date });
    const dates = granularity === 'day' ? days : [...new Set(days.map((day) => `${day.slice(0, 7)}-01`))];
    expect(body.series.map((point: { date: string }) => point.date)).toEqual(dates);
  });

  test('includes both ends of the window and nothing beyond', async () => {
    await enter({ day: '2026-02-28', rows_paid: 1 }, { day: '2026-03-01', rows_paid: 10 });
    await enter({ day: '2026-03-02', rows_paid: 100 }, { day: '2026-03-03', rows_paid: 1000 });
    const { body } = await api.call('GET', custom('2026-03-01', '2026-03-02'));
    expect(body.totals.rows_paid).toBe(110);
    expect(body.projection).toBeNull();
  });

  test('reports used, remaining, overage and projected credits of the current period', async () => {
    await setAccount({ plan_id: 'free' });
    await enter({ day: '2026-03-12', rows_paid: 600_000, credits_used: 600_000 });
    await enter({ day: '2026-03-09', rows_paid: 5, credits_used: 5 });
    const { body } = await api.call('GET', AGGREGATED);
    expect(body.totals).toMatchObject({
      credits_used: 600_000,
      credits_included: 1_000_000,
      credits_remaining: 400_000,
      overage_credits: 0,
    });
    // Six of thirty-one days have passed.
    expect(body.projection).toEqual({ credits_at_period_end: 3_100_000, will_exceed: true });
    const limit = (key: string) => body.limits.find((one: { key: string }) => one.key === key);
    expect(limit('credits_included')).toMatchObject({ limit: 1_000_000, used: 600_000, percent: 60, status: 'ok' });
    expect(limit('max_connections')).toMatchObject({ limit: 3, used: 2, percent: 66, status: 'ok' });
    expect(limit('max_sources')).toMatchObject({ limit: 2, used: 2, percent: 100, status: 'reached' });
    await enter({ rows_paid: 500_000, credits_used: 500_000 });
    const { body: over } = await api.call('GET', AGGREGATED);
    expect(over.totals).toMatchObject({ credits_remaining: 0, overage_credits: 100_000 });
  });

  test('is unlimited on the self-hosted plan', async () => {
    const { body } = await api.call('GET', AGGREGATED);
    expect(body.totals).toMatchObject({ credits_included: null, credits_remaining: null, overage_credits: 0 });
    expect(
      body.limits.every((one: { limit: unknown; status: string }) => one.limit === null && one.status === 'ok'),
    ).toBe(true);
  });

  test('counts runs created in the window, also of deleted connections, never of another account', async () => {
    const created = {
      account_id,
      run_type: 'plain',
      trigger_type: 'api',
      queued_at: '2026-03-02T00:00:00.000Z',
    } as const;
    const run = (number: number, status: 'succeeded' | 'failed' | 'stopped', created_at: string) =>
      db
        .insert(connectionRuns)
        .values({ ...created, connection_id: second.id, number, status, created_at, finished_at: created_at });
    await run(101, 'succeeded', '2026-03-02T00:00:00.000Z');
    await run(102, 'failed', '2026-03-03T23:59:59.999Z');
    await run(103, 'stopped', '2026-03-03T10:00:00.000Z');
    await run(104, 'succeeded', '2026-03-01T23:59:59.999Z');
    await run(105, 'succeeded', '2026-03-04T00:00:00.000Z');
    const { body } = await api.call('GET', custom('2026-03-02', '2026-03-03'));
    expect(body.totals).toMatchObject({ runs: 3, succeeded_runs: 1, failed_runs: 1 });
    const other = await api.otherAccount();
    await enter({ rows_paid: 7 });
    const { body: theirs } = await other.call('GET', custom('2026-03-01', '2026-03-20'));
    expect(theirs.totals).toMatchObject({ runs: 0, rows_total: 0, connections: 0 });
  });

  test('series, kinds, connections and streams always add up to the totals', async () => {
    const day = fc.integer({ min: 0, max: 150 }).map((offset) => utcDay(new Date(Date.UTC(2025, 10, 1 + offset))));
    const row = fc.record({
      day,
      kind: fc.constantFrom('elt' as const, 'reverse_etl' as const),
      connection_id: fc.constantFrom(first.id as string, second.id as string),
      stream_name: fc.constantFrom('a', 'b', 'c'),
      rows_free: fc.nat(1_000_000),
      rows_paid: fc.nat(1_000_000),
      credits_used: fc.nat(4_000_000),
      credits_free: fc.nat(4_000_000),
      bytes_loaded: fc.nat(),
    });
    const window = fc.tuple(day, day).map(([a, b]): [string, string] => (a < b ? [a, b] : [b, a]));
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 40 }), window, async (rows, [start, end]) => {
        await db.delete(usageLedger);
        await enter(...rows);
        const { body } = await api.call('GET', custom(start, end));
        const { body: byConnection } = await api.call('GET', between(start, end));
        const sum = (list: Record<string, number>[], key: string) =>
          list.reduce((all, one) => all + (one[key] ?? 0), 0);
        const inside = rows.filter((one) => one.day >= start && one.day <= end) as unknown as Record<string, number>[];
        for (const key of ['rows_free', 'rows_paid', 'credits_used', 'credits_free', 'bytes_loaded']) {
          expect(body.totals[key]).toBe(sum(inside, key));
          expect(body.by_kind.elt[key] + body.by_kind.reverse_etl[key]).toBe(body.totals[key]);
          expect(sum(byConnection, key)).toBe(body.totals[key]);
        }
        expect(body.totals.rows_total).toBe(body.totals.rows_free + body.totals.rows_paid);
        for (const key of ['rows_free', 'rows_paid', 'credits_used']) {
          expect(sum(body.series, key)).toBe(body.totals[key]);
          expect(
            sum(
              byConnection.flatMap((one: { series: [] }) => one.series),
              key,
            ),
          ).toBe(body.totals[key]);
        }
        for (const one of byConnection) {
          expect(sum(one.streams, 'rows')).toBe(one.rows_total);
          expect(sum(one.streams, 'credits')).toBe(one.credits_used);
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe('GET /billing/usage/connection-usage', () => {
  refusals(between('2026-03-01', '2026-03-02'));

  test.each([
    [between('2026-03-02', '2026-03-01'), 'inverted_range'],
    [between('2025-01-01', '2026-02-05'), 'range_too_long'],
  ])('%s responds 400 %s', async (path, code) => {
    expect(await api.call('GET', path)).toMatchObject({ status: 400, body: { code, field: 'end_date' } });
  });

  test.each([
    [BY_CONNECTION, ['start_date', 'end_date'], 'missing'],
    [`${BY_CONNECTION}?start_date=2026-03-01`, ['end_date'], 'missing'],
    [between('2026-3-1', '2026-03-02'), ['start_date'], 'date_from_datetime_parsing'],
  ])('%s responds 422', async (path, names, type) => {
    const answer = await api.call('GET', path);
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toMatchObject(names.map((name) => ({ loc: ['query', name], type })));
  });

  test('200: rows, share, streams and change, most rows first, also of deleted connections', async () => {
    const gone = await make.connection();
    await api.call('DELETE', `/connections/${gone.id}`);
    await enter({ rows_paid: 50, credits_used: 50, stream_name: 'users' });
    await enter({ rows_paid: 10, rows_free: 20, credits_used: 10, stream_name: 'orders' });
    await enter({ connection_id: gone.id, rows_paid: 120, credits_used: 480, kind: 'reverse_etl' });
    await enter({ day: '2026-03-13', rows_paid: 40 }, { day: '2026-03-12', rows_paid: 1 });
    const { body } = await api.call('GET', between('2026-03-14', '2026-03-15'));
    expect(body).toHaveLength(2);
    expect(body[0]).toMatchObject({
      connection_id: gone.id,
      connection_deleted: true,
      rows_total: 120,
      percent_of_total: 60,
      previous_period_change_percent: null,
    });
    expect(body[1]).toMatchObject({
      connection_id: first.id,
      connection_name: first.name,
      connection_deleted: false,
      kind: 'elt',
      source_connector_name: 'sample',
      rows_total: 80,
      rows_free: 20,
      percent_of_total: 40,
      // 41 rows on the two preceding days.
      previous_period_change_percent: 95.1,
      streams: [
        { stream_name: 'users', rows: 50, credits: 50 },
        { stream_name: 'orders', rows: 30, credits: 10 },
      ],
    });
    expect(body[1].series.map((point: { date: string }) => point.date)).toEqual(['2026-03-14', '2026-03-15']);
  });

  test('200: days to come are compared with nothing', async () => {
    await enter({ day: '2026-03-11', rows_paid: 10 }, { day: '2026-03-15', rows_paid: 20 });
    // Four days before with 10 rows on the first, of which a fourth has passed: 11 to 14 March, then 15 to 18 March.
    const [one] = (await api.call('GET', between('2026-03-15', '2026-03-18'))).body;
    expect(one.previous_period_change_percent).toBe(100);
    await enter({ day: '2026-03-12', rows_paid: 1000 });
    const [same] = (await api.call('GET', between('2026-03-15', '2026-03-18'))).body;
    expect(same.previous_period_change_percent).toBe(100);
  });

  test('200: pages follow the same order, with the total count in the header', async () => {
    const created = [];
    for (const name of ['page a', 'page b', 'page c']) created.push(await make.connection({ name }));
    for (const [at, { id }] of created.entries()) await enter({ connection_id: id, rows_paid: at < 2 ? 5 : 90 });
    const window = between('2026-03-14', '2026-03-15');
    const all = await api.call('GET', window);
    const names = all.body.map((one: { connection_name: string }) => one.connection_name);
    expect(names).toEqual([created[2].name, created[0].name, created[1].name]);
    const pages = [];
    for (const offset of [0, 2, 4]) pages.push(await api.call('GET', `${window}&limit=2&offset=${offset}`));
    expect(pages.flatMap(({ body }) => body)).toEqual(all.body);
    expect([all, ...pages].map(({ headers }) => headers.get('x-total-count'))).toEqual(['3', '3', '3', '3']);
    expect((await api.call('GET', `${window}&limit=0`)).status).toBe(422);
  });

  test('never shows usage of another account', async () => {
    await enter({ rows_paid: 1 });
    const other = await api.otherAccount();
    expect((await other.call('GET', between('2026-03-01', '2026-03-31'))).body).toEqual([]);
    expect((await db.select().from(connections)).length).toBeGreaterThan(0);
  });
});
