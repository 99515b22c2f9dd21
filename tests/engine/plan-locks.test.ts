import { beforeEach, describe, expect, test } from 'bun:test';
import { and, eq, inArray, isNull } from 'drizzle-orm';
import { accounts, connections, events, planLimitNotices, usageLedger } from '../../db/schema/index.ts';
import { clearPlanNotices } from '../../server/billing/clear-notices.ts';
import { applyAllPlanLocks } from '../../server/billing/lock-connections.ts';
import { fireDue } from '../../server/runs/schedule-tick.ts';
import { evaluatePending } from '../../server/automation/evaluation/evaluation-loop.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { ledgerEntry } from '../support/ledger.ts';
import { makerOf } from '../support/resources.ts';
import { rpc } from '../support/rpc.ts';

const service = await testDeps();
const { deps, account_id } = service;
const { db } = deps;
const { call } = testApi(service);
const make = makerOf(call);
const [source, destination] = [await make.source(), await make.destination()];

const setAccount = (values: Partial<typeof accounts.$inferInsert>) =>
  db.update(accounts).set(values).where(eq(accounts.id, account_id));
const connection = (rest: object = {}) =>
  make.connection({ source_id: source.id, destination_id: destination.id, ...rest });
const statesOf = async (created: { id: string }[]) => {
  const answers = await Promise.all(created.map(({ id }) => call('GET', `/connections/${id}`)));
  return answers.map(({ body }) => [body.status, body.status_reason]);
};
const emitted = async (...kinds: string[]) =>
  db.select().from(events).where(inArray(events.event, kinds)).orderBy(events.id);
const settle = () => applyAllPlanLocks(deps);

beforeEach(async () => {
  await setAccount({ plan_id: 'self_hosted', payment_status: 'active' });
  const gone = { deleted_at: new Date().toISOString(), next_run_at: null };
  await db.update(connections).set(gone).where(isNull(connections.deleted_at));
  await db.delete(usageLedger);
  await db.delete(planLimitNotices);
  await evaluatePending(deps);
  await db.delete(events);
});

describe('connections over the limit of the plan', () => {
  test('are locked newest first, with one event each for any number of workers, and get their old state back', async () => {
    const created = [];
    for (let n = 0; n < 5; n += 1) created.push(await connection(n === 4 ? { status: 'paused' } : {}));
    await setAccount({ plan_id: 'free' });
    await Promise.all([settle(), settle(), settle()]);
    await settle();
    const active = ['active', null];
    const locked = ['locked', 'plan_limit'];
    expect(await statesOf(created)).toEqual([active, active, active, locked, locked]);
    const locks = await emitted('connection_locked');
    expect(locks.map((event) => event.connection_id).toSorted()).toEqual([created[3].id, created[4].id].toSorted());
    expect(locks[0]?.payload).toMatchObject({
      connection_id: created[4].id,
      connection_name: created[4].name,
      kind: 'elt',
      status: 'locked',
      status_reason: 'plan_limit',
      source_id: source.id,
      source_name: source.name,
      source_connector_name: 'sample',
      destination_name: destination.name,
      destination_connector_name: 'sample',
      tags: [],
      changed_fields: ['status'],
    });
    await call('DELETE', `/connections/${created[0].id}`);
    await settle();
    expect(await statesOf(created.slice(1))).toEqual([active, active, active, locked]);
    await setAccount({ plan_id: 'self_hosted' });
    await settle();
    await settle();
    expect(await statesOf(created.slice(1))).toEqual([active, active, active, ['paused', null]]);
    const back = await emitted('connection_unlocked');
    expect(back.map((event) => [event.connection_id, event.payload.status])).toEqual([
      [created[3].id, 'active'],
      [created[4].id, 'paused'],
    ]);
  });

  test('402: a locked connection cannot run, resume or rerun; it can be renamed and deleted', async () => {
    const created = await connection();
    const run_id = (await call('POST', `/connections/${created.id}/run`)).body;
    await call('POST', `/connections/${run_id}/stop`);
    const newest = { created_at: new Date(Date.now() + 60_000).toISOString() };
    await db.update(connections).set(newest).where(eq(connections.id, created.id));
    for (let n = 0; n < 3; n += 1) await connection();
    await setAccount({ plan_id: 'free' });
    await settle();
    const refused = {
      status: 402,
      body: {
        code: 'connection_locked',
        limit: 'max_connections',
        limit_value: 3,
        current_value: 4,
        plan: 'free',
        status_reason: 'plan_limit',
      },
    };
    expect(await call('POST', `/connections/${created.id}/run`)).toMatchObject(refused);
    expect(await call('POST', `/connections/${run_id}/rerun`)).toMatchObject(refused);
    expect(await call('POST', `/connections/${created.id}`, { status: 'active' })).toMatchObject(refused);
    expect(await call('POST', `/connections/${created.id}`, { status: 'paused' })).toMatchObject(refused);
    expect((await call('POST', `/connections/${created.id}`, { description: 'later' })).status).toBe(200);
    expect((await call('DELETE', `/connections/${created.id}`)).status).toBe(204);
  });

  test('are locked in the same transaction as the plan change', async () => {
    const created = [];
    for (let n = 0; n < 4; n += 1) created.push(await connection());
    await rpc(call, 'billing.changePlan', { plan_id: 'free' });
    expect((await statesOf(created)).map(([status]) => status)).toEqual(['active', 'active', 'active', 'locked']);
    await rpc(call, 'billing.changePlan', { plan_id: 'pro' });
    expect((await statesOf(created)).map(([status]) => status)).toEqual(['active', 'active', 'active', 'active']);
  });
});

describe('all connections', () => {
  test.each([
    ['payment_overdue', { payment_status: 'overdue' }, 0],
    ['payment_overdue', { payment_status: 'ended' }, 0],
    ['credits_exhausted', { plan_id: 'free' }, 1_000_000],
  ] as const)('%s: are locked by %j and %d credits, and skip their ticks meanwhile', async (reason, is, credits) => {
    const schedule = { type: 'interval', interval_minutes: 60 };
    const created = [await connection({ schedule }), await connection({ status: 'paused' })];
    if (credits > 0) await db.insert(usageLedger).values(ledgerEntry(account_id, credits));
    await setAccount(is);
    await settle();
    expect(await statesOf(created)).toEqual([
      ['locked', reason],
      ['locked', reason],
    ]);
    await db
      .update(connections)
      .set({ next_run_at: new Date(Date.now() - 1000).toISOString() })
      .where(eq(connections.id, created[0].id));
    await fireDue(deps);
    const runs = (await call('GET', `/connections/${created[0].id}/runs`)).body;
    expect(runs).toMatchObject([{ status: 'skipped', trigger_type: 'schedule', error: { type: 'plan_limit' } }]);
    await db.delete(usageLedger);
    await setAccount({ payment_status: 'active' });
    await settle();
    expect(await statesOf(created)).toEqual([
      ['active', null],
      ['paused', null],
    ]);
    const { next_run_at } = (await call('GET', `/connections/${created[0].id}`)).body;
    expect(Date.parse(next_run_at)).toBeGreaterThan(Date.now());
  });

  test('change their reason when only another one remains, without a second lock event', async () => {
    const created = [await connection()];
    await db.insert(usageLedger).values(ledgerEntry(account_id, 1_000_000));
    await setAccount({ plan_id: 'free', payment_status: 'overdue' });
    await settle();
    await setAccount({ payment_status: 'active' });
    await settle();
    expect(await statesOf(created)).toEqual([['locked', 'credits_exhausted']]);
    expect(await emitted('connection_locked')).toHaveLength(1);
    expect(await emitted('connection_updated')).toMatchObject([{ payload: { changed_fields: ['status_reason'] } }]);
  });
});

describe('a limit whose use falls below 80 %', () => {
  const cases = async () => (await call('GET', '/automation/cases')).body;

  test('resolves its case, emits one event, and can warn again', async () => {
    await setAccount({ plan_id: 'free' });
    const created = [await connection(), await connection(), await connection()];
    await evaluatePending(deps);
    const open = (await cases()).filter((one: { status: string }) => one.status === 'open');
    expect(open).toMatchObject([{ group: { limit: 'max_connections' }, resolution: null }]);
    await clearPlanNotices(deps);
    expect(await emitted('plan_limit_cleared')).toEqual([]);
    await call('DELETE', `/connections/${created[0].id}`);
    await Promise.all([clearPlanNotices(deps), clearPlanNotices(deps)]);
    await evaluatePending(deps);
    expect((await call('GET', `/automation/cases/${open[0].id}`)).body).toMatchObject({
      status: 'resolved',
      resolution: 'auto',
    });
    expect((await emitted('plan_limit_cleared')).map(({ payload }) => payload)).toEqual([
      { limit: 'max_connections', used: 2, limit_value: 3, percent: 66, plan_name: 'Free' },
    ]);
    await connection();
    expect(await emitted('plan_limit_reached')).toHaveLength(2);
  });

  test('is also cleared by a larger plan', async () => {
    await setAccount({ plan_id: 'free' });
    for (let n = 0; n < 3; n += 1) await connection();
    await evaluatePending(deps);
    await rpc(call, 'billing.changePlan', { plan_id: 'starter' });
    await evaluatePending(deps);
    const left = and(eq(planLimitNotices.account_id, account_id), eq(planLimitNotices.limit, 'max_connections'));
    expect(await db.select().from(planLimitNotices).where(left)).toEqual([]);
    expect((await cases()).map((one: { status: string }) => one.status)).not.toContain('open');
  });
});
