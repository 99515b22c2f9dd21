import { beforeEach, describe, expect, test } from 'bun:test';
import { and, eq, inArray, isNull } from 'drizzle-orm';
import {
  accountConnectors,
  accounts,
  connections,
  events,
  planLimitNotices,
  usageLedger,
  users,
} from '../../db/schema/index.ts';
import { readAccountPlan } from '../../server/billing/account-plan.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { rpc } from '../support/rpc.ts';
import { ledgerEntry } from '../support/ledger.ts';
import { makerOf, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const { deps, account_id } = service;
const { db } = deps;
const api = testApi(service);
const make = makerOf(api.call);
const source = await make.source();
const destination = await make.destination();

const setAccount = (values: Partial<typeof accounts.$inferInsert>) =>
  db.update(accounts).set(values).where(eq(accounts.id, account_id));
const connection = (rest: object = {}) => ({
  name: uniqueName('connection'),
  source_id: source.id,
  destination_id: destination.id,
  ...rest,
});
const limitEvents = () =>
  db
    .select({ event: events.event, payload: events.payload })
    .from(events)
    .where(
      and(
        eq(events.account_id, account_id),
        inArray(events.event, ['plan_limit_warning', 'plan_limit_reached', 'credits_exhausted']),
      ),
    )
    .orderBy(events.id);

const useCredits = (credits: number, day?: string) =>
  db.insert(usageLedger).values({ ...ledgerEntry(account_id, credits), ...(day !== undefined && { day }) });

beforeEach(async () => {
  await setAccount({ plan_id: 'self_hosted', payment_status: 'active' });
  const now = new Date().toISOString();
  await db.update(connections).set({ deleted_at: now, next_run_at: null }).where(isNull(connections.deleted_at));
  await db.delete(usageLedger);
  await db.delete(planLimitNotices);
  await db.delete(events);
});

describe('of twenty parallel creates at limit − 1, exactly one responds 201', () => {
  const race = async (path: string, body: () => object) => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.call('POST', path, body())));
    const refused = answers.filter((answer) => answer.status === 402);
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1);
    expect(refused).toHaveLength(19);
    return refused[0]?.body;
  };

  test('POST /connections, the others respond 402', async () => {
    await setAccount({ plan_id: 'free' });
    await api.call('POST', '/connections', connection());
    await api.call('POST', '/connections', connection());
    expect(await race('/connections', connection)).toEqual({
      detail: 'Plan limit reached: 3 of 3 connections',
      code: 'plan_limit_reached',
      limit: 'max_connections',
      limit_value: 3,
      current_value: 3,
      plan: 'free',
    });
  });

  test.each(['source', 'destination'])(
    'POST /account_connectors, the others respond 402: %ss',
    async (connector_type) => {
      await setAccount({ plan_id: 'free' });
      const body = () => ({ name: uniqueName('c'), connector_type, connector_name: 'sample', test_connection: false });
      const refused = await race('/account_connectors', body);
      expect(refused).toMatchObject({
        code: 'plan_limit_reached',
        limit: `max_${connector_type}s`,
        limit_value: 2,
        current_value: 2,
      });
      const mine = and(
        eq(accountConnectors.connector_type, connector_type as 'source'),
        isNull(accountConnectors.deleted_at),
      );
      expect(await db.select().from(accountConnectors).where(mine)).toHaveLength(2);
    },
  );

  test('POST /users, the others respond 402', async () => {
    await db
      .update(users)
      .set({ status: 'disabled' })
      .where(and(eq(users.account_id, account_id), eq(users.status, 'invited')));
    await setAccount({ plan_id: 'free' });
    const body = () => ({ email: `${Bun.randomUUIDv7()}@example.test`, full_name: 'Somebody', send_invitation: false });
    expect(await race('/users', body)).toMatchObject({
      code: 'plan_limit_reached',
      limit: 'max_users',
      limit_value: 2,
      current_value: 2,
    });
  });
});

describe('the usage window of a create', () => {
  const create = (query: string) => api.call('POST', `/connections?${query}`, connection());

  test('is validated as on every other endpoint', async () => {
    expect(await create('date_range=custom')).toMatchObject({ status: 400, body: { code: 'missing_dates' } });
    expect(await create('start_date=2026-01-01')).toMatchObject({ status: 400, body: { code: 'date_range_conflict' } });
    expect((await create('date_range=never')).status).toBe(422);
    expect((await create('start_date=2026-02-30')).status).toBe(422);
    expect((await create('date_range=today')).status).toBe(201);
  });

  test('does not lift the limit on a count, even when the window is empty', async () => {
    await setAccount({ plan_id: 'free' });
    for (let created = 0; created < 3; created++) expect((await create('date_range=today')).status).toBe(201);
    const empty = await create('date_range=custom&start_date=2001-01-01&end_date=2001-01-01');
    expect(empty).toMatchObject({ status: 402, body: { code: 'plan_limit_reached', current_value: 3 } });
  });

  test('does not lift the credit limit of the current period', async () => {
    await setAccount({ plan_id: 'free' });
    await useCredits(1_000_000);
    for (const query of ['', 'date_range=custom&start_date=2001-01-01&end_date=2001-01-01']) {
      expect(await create(query)).toMatchObject({
        status: 402,
        body: {
          code: 'credits_exhausted',
          limit: 'credits_included',
          limit_value: 1_000_000,
          current_value: 1_000_000,
          plan: 'free',
        },
      });
    }
  });

  test('is checked too: the stricter limit applies', async () => {
    await setAccount({ plan_id: 'free', billing_anchor: '2026-01-01' });
    await useCredits(1_000_000, '2001-01-01');
    expect((await create('')).status).toBe(201);
    expect((await create('date_range=custom&start_date=2001-01-01&end_date=2001-01-01')).status).toBe(402);
  });
});

describe('402 beyond creates', () => {
  test('POST /connections/{connection_id}: a paused connection cannot resume over the limit', async () => {
    const created = [];
    for (let n = 0; n < 4; n++) created.push((await api.call('POST', '/connections', connection())).body);
    await api.call('POST', `/connections/${created[0].id}`, { status: 'paused' });
    await setAccount({ plan_id: 'free' });
    const refused = await api.call('POST', `/connections/${created[0].id}`, { status: 'active' });
    expect(refused).toMatchObject({
      status: 402,
      body: { limit: 'max_connections', limit_value: 3, current_value: 3 },
    });
    expect((await api.call('POST', `/connections/${created[1].id}`, { status: 'paused' })).status).toBe(200);
    expect((await api.call('POST', `/connections/${created[0].id}`, { status: 'active' })).status).toBe(200);
  });

  test.each([
    [{ type: 'interval', interval_minutes: 30 }, 30],
    [{ type: 'cron', cron_expression: '0,45 * * * *' }, 15],
  ])('402: a schedule of %j is below the minimum of the plan', async (schedule, current_value) => {
    await setAccount({ plan_id: 'free' });
    const body = {
      code: 'schedule_below_plan_minimum',
      limit: 'min_schedule_interval_minutes',
      limit_value: 60,
      current_value,
    };
    expect(await api.call('POST', '/connections', connection({ schedule }))).toMatchObject({ status: 402, body });
    const { body: created } = await api.call(
      'POST',
      '/connections',
      connection({ schedule: { type: 'interval', interval_minutes: 60 } }),
    );
    expect(await api.call('POST', `/connections/${created.id}`, { schedule })).toMatchObject({ status: 402, body });
    expect((await api.call('POST', `/connections/${created.id}`, { schedule: { type: 'manual' } })).status).toBe(200);
  });

  test('a disabled user cannot be enabled over the limit', async () => {
    const someone = { email: `${Bun.randomUUIDv7()}@example.test`, full_name: 'Somebody', send_invitation: false };
    const { body: user } = await api.call('POST', '/users', someone);
    await api.call('POST', `/users/${user.id}`, { is_active: false });
    await setAccount({ plan_id: 'free' });
    await api.call('POST', '/users', { ...someone, email: `${Bun.randomUUIDv7()}@example.test` });
    const refused = await api.call('POST', `/users/${user.id}`, { is_active: true });
    expect(refused).toMatchObject({ status: 402, body: { limit: 'max_users' } });
  });

  test('run and rerun are refused without credits, unless the plan allows overage', async () => {
    const { body: created } = await api.call('POST', '/connections', connection());
    const { body: run_id } = await api.call('POST', `/connections/${created.id}/run`);
    await api.call('POST', `/connections/${run_id}/stop`);
    await setAccount({ plan_id: 'free' });
    await useCredits(999_999);
    const { body: allowed } = await api.call('POST', `/connections/${created.id}/run`);
    await api.call('POST', `/connections/${allowed}/stop`);
    await useCredits(1);
    const exhausted = {
      status: 402,
      body: { code: 'credits_exhausted', limit_value: 1_000_000, current_value: 1_000_000 },
    };
    expect(await api.call('POST', `/connections/${created.id}/run`)).toMatchObject(exhausted);
    expect(await api.call('POST', `/connections/${run_id}/rerun`)).toMatchObject(exhausted);
    await useCredits(200_000_000);
    await setAccount({ plan_id: 'pro' });
    expect((await api.call('POST', `/connections/${created.id}/run`)).status).toBe(200);
  });

  test('a custom-run plan with too many chunks cannot be launched after a downgrade', async () => {
    const { body: created } = await api.call('POST', '/connections', connection());
    const days = { start_date: '2026-01-01', end_date: '2026-02-15', split: { unit: 'day' } };
    const preview = await api.call('POST', `/connections/${created.id}/run/preview`, days);
    expect(preview.body).toMatchObject({ total_chunks: 46, blockers: [] });
    await setAccount({ plan_id: 'free' });
    const { plan_id } = preview.body;
    expect(await api.call('POST', `/connections/${created.id}/run/launch-plan`, { plan_id })).toMatchObject({
      status: 402,
      body: { code: 'plan_limit_reached', limit: 'max_custom_run_chunks', limit_value: 31, current_value: 46 },
    });
    expect((await api.call('GET', `/connections/${created.id}/runs`)).body).toEqual([]);
  });

  test.each([
    ['trial', 201, 201, 200],
    ['grace', 402, 201, 200],
    ['overdue', 402, 201, 402],
    ['ended', 402, 402, 402],
  ] as const)('payment %s: new source %d, new connection %d, run %d', async (payment_status, attach, connect, run) => {
    const { body: created } = await api.call('POST', '/connections', connection());
    await setAccount({ payment_status });
    const refused = { status: 402, body: { code: 'payment_required', payment_status, plan: 'self_hosted' } };
    const connector = {
      name: uniqueName('s'),
      connector_type: 'source',
      connector_name: 'sample',
      test_connection: false,
    };
    const answers = [
      [await api.call('POST', '/account_connectors', connector), attach],
      [await api.call('POST', '/connections', connection()), connect],
      [await api.call('POST', `/connections/${created.id}/run`), run],
    ] as const;
    for (const [answer, status] of answers) expect(answer).toMatchObject(status === 402 ? refused : { status });
    expect((await api.call('GET', '/connections')).status).toBe(200);
    expect((await api.call('DELETE', `/connections/${created.id}`)).status).toBe(204);
  });
});

describe('limit events', () => {
  test('a warning at 80 % and one event at 100 %, each once per billing period', async () => {
    await setAccount({ plan_id: 'starter' });
    for (let n = 0; n < 20; n++) {
      const answer = await api.call('POST', '/connections', connection());
      expect(answer.status).toBe(201);
      if (n === 16) await api.call('DELETE', `/connections/${answer.body.id}`);
    }
    const emitted = (await limitEvents()).map(({ event, payload }) => [
      event,
      payload.used,
      payload.limit_value,
      payload.percent,
    ]);
    expect(emitted).toEqual([['plan_limit_warning', 16, 20, 80]]);
    for (let n = 0; n < 3; n++) await api.call('POST', '/connections', connection());
    expect((await limitEvents()).map(({ event, payload }) => [event, payload.limit, payload.percent])).toEqual([
      ['plan_limit_warning', 'max_connections', 80],
      ['plan_limit_reached', 'max_connections', 100],
    ]);
  });
});

describe('billing.changePlan', () => {
  test('changes the plan, emits an event, and reports limits already reached', async () => {
    for (let n = 0; n < 3; n++) await api.call('POST', '/connections', connection());
    const changed = await rpc(api.call, 'billing.changePlan', { plan_id: 'free' });
    expect(changed.result).toMatchObject({ id: 'free', is_current: true });
    expect((await readAccountPlan(db, account_id, { now: new Date() })).plan.id).toBe('free');
    const [event] = await db.select().from(events).where(eq(events.event, 'plan_changed'));
    expect(event?.payload).toMatchObject({ plan_name: 'Free', previous_plan_name: 'Self-hosted' });
    expect((await limitEvents()).map((one) => one.payload.limit)).toContain('max_connections');
  });

  test('needs billing.read and users.manage', async () => {
    for (const permission of ['billing.read', 'users.manage'] as const) {
      const key = await api.keyWith([permission]);
      expect((await rpc(api.as(key), 'billing.changePlan', { plan_id: 'free' })).status).toBe(403);
    }
  });

  test('refuses an unknown plan', async () => {
    expect((await rpc(api.call, 'billing.changePlan', { plan_id: 'gold' })).status).toBe(422);
  });
});
