import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { cases, caseTimeline, triggers } from '../../db/schema/index.ts';
import { moveCase } from '../../server/automation/cases/transitions.ts';
import { SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { connectionId, firingsOf } from '../support/firings.ts';

// No worker runs here: deliveries stay as planned.
const service = await testDeps();
const { deps } = service;
const { call } = testApi(service);
const { trigger, event, emitEvent, evaluate, fire, casesOf, deliveriesOf } = firingsOf(service, call);

const timelineOf = async (id: string) =>
  (await deps.db.select().from(caseTimeline).where(eq(caseTimeline.case_id, id)).orderBy(caseTimeline.id)).map(
    ({ type }) => type,
  );
const move = (case_id: string, status: 'open' | 'acknowledged' | 'resolved' | 'suppressed') =>
  deps.db.transaction((tx) => moveCase(tx, { case_id, status, actor: SYSTEM_ACTOR, now: new Date().toISOString() }));

describe('firings of one group', () => {
  test('are one case with count 50 when 50 come at once', async () => {
    const created = await trigger();
    const connection_id = connectionId();
    const rows = await Promise.all(Array.from({ length: 50 }, () => event('connection_failed', { connection_id })));
    const outcomes = await Promise.all(
      rows.map((row) => fire({ trigger: created, event: row, group: { connection_id }, kind: 'fired' })),
    );
    expect(new Set(outcomes.map(({ case_id }) => case_id)).size).toBe(1);
    const found = await casesOf(created);
    expect(found).toMatchObject([{ event_count: 50, status: 'open', connection_id, group: { connection_id } }]);
    expect(found[0]?.latest_event_ids).toHaveLength(20);
    const delivered = await deliveriesOf(created);
    expect(delivered.filter(({ status }) => status === 'pending')).toMatchObject([{ reason: 'opened' }]);
    expect(delivered.filter(({ status }) => status === 'suppressed')).toHaveLength(49);
  });

  test('are one case with count 50 through the evaluator too', async () => {
    const created = await trigger();
    const connection_id = connectionId();
    await Promise.all(Array.from({ length: 50 }, () => emitEvent('connection_failed', { connection_id })));
    while ((await Promise.all([evaluate(), evaluate(), evaluate()])).some((taken) => taken > 0));
    const mine = (await casesOf(created)).filter((one) => one.connection_id === connection_id);
    expect(mine).toMatchObject([{ event_count: 50 }]);
  });

  test('are one case while it is resolved and reopened in parallel', async () => {
    const created = await trigger({ case: { reopen_window_seconds: 0 } });
    const connection_id = connectionId();
    const rows = await Promise.all(Array.from({ length: 30 }, () => event('connection_failed', { connection_id })));
    const fiddle = async () => {
      for (let turn = 0; turn < 15; turn += 1) {
        for (const { id, status } of await casesOf(created))
          await move(id, status === 'resolved' ? 'open' : 'resolved');
      }
    };
    await Promise.all([
      fiddle(),
      fiddle(),
      ...rows.map((row) => fire({ trigger: created, event: row, group: { connection_id }, kind: 'fired' })),
    ]);
    const found = await casesOf(created);
    expect(found.filter(({ status }) => status !== 'resolved').length).toBeLessThanOrEqual(1);
    expect(found.reduce((sum, { event_count }) => sum + event_count, 0)).toBe(30);
  });
});

describe('firings of several groups', () => {
  test('are one case each, numbered without gaps; a missing value is a group too', async () => {
    const created = await trigger();
    const groups = [
      ...Array.from({ length: 9 }, () => ({ connection_id: connectionId() as string | null })),
      { connection_id: null },
    ];
    await Promise.all(
      groups.map(async (group) =>
        fire({ trigger: created, event: await event('connection_failed'), group, kind: 'fired' }),
      ),
    );
    const numbers = (await casesOf(created)).map(({ number }) => number);
    expect(numbers).toHaveLength(10);
    expect(numbers.at(-1)! - numbers[0]!).toBe(9);
  });

  test('are identified by value, not by the order of the keys', async () => {
    const created = await trigger();
    const row = await event('connection_failed');
    await fire({ trigger: created, event: row, group: { a: 1, b: 2 }, kind: 'fired' });
    await fire({ trigger: created, event: await event('connection_failed'), group: { b: 2, a: 1 }, kind: 'fired' });
    expect(await casesOf(created)).toMatchObject([{ event_count: 2 }]);
  });
});

describe('a resolved case', () => {
  const resolvedAgo = async (seconds: number, settings: object = {}) => {
    const created = await trigger({ case: { reopen_window_seconds: 3600, ...settings } });
    const group = { connection_id: connectionId() };
    const firing = async () =>
      fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    const { case_id } = await firing();
    await move(case_id!, 'resolved');
    const resolved_at = new Date(Date.now() - seconds * 1000).toISOString();
    await deps.db.update(cases).set({ resolved_at }).where(eq(cases.id, case_id!));
    return { created, firing, case_id: case_id! };
  };

  test('is reopened within its window, with one more notification', async () => {
    const { created, firing, case_id } = await resolvedAgo(3000);
    expect((await firing()).case_id).toBe(case_id);
    expect(await casesOf(created)).toMatchObject([
      { status: 'open', reopened_count: 1, event_count: 2, resolved_at: null, resolution: null },
    ]);
    expect(await timelineOf(case_id)).toEqual(['opened', 'resolved', 'reopened']);
    expect((await deliveriesOf(created)).map(({ reason, status }) => [reason, status])).toEqual([
      ['opened', 'pending'],
      ['reopened', 'pending'],
    ]);
  });

  test('stays resolved after its window: a new case is opened', async () => {
    const { created, firing } = await resolvedAgo(4000);
    await firing();
    expect(await casesOf(created)).toMatchObject([
      { status: 'resolved' },
      { status: 'open', event_count: 1, reopened_count: 0 },
    ]);
  });

  test('cannot be reopened manually beside a newer one', async () => {
    const { firing, case_id } = await resolvedAgo(4000);
    await firing();
    expect(await move(case_id, 'open')).toEqual({
      refused: 'A newer case of the same group is open',
      status: 'resolved',
    });
  });
});

describe('a recovery', () => {
  test('resolves only the case of its group, and notifies when configured', async () => {
    const created = await trigger({ case: { notify_on_resolve: true } });
    const [first, second] = [connectionId(), connectionId()];
    for (const connection_id of [first, second]) await emitEvent('connection_failed', { connection_id });
    await evaluate();
    await emitEvent('connection_succeeded', { connection_id: first });
    await evaluate();
    const found = (await casesOf(created)).toSorted(
      (a, b) => Number(b.connection_id === first) - Number(a.connection_id === first),
    );
    expect(found).toMatchObject([{ status: 'resolved', resolution: 'auto', resolved_by: null }, { status: 'open' }]);
    const notified = (await deliveriesOf(created)).filter(({ reason }) => reason === 'resolved');
    expect(notified).toMatchObject([{ status: 'pending', case_id: found[0]?.id }]);
  });
});

describe('a suppressed case', () => {
  test('counts events without notifications, until it is resolved', async () => {
    const created = await trigger({ case: { notify_every: 1 } });
    const group = { connection_id: connectionId() };
    const firing = async () =>
      fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    const { case_id } = await firing();
    await move(case_id!, 'suppressed');
    await firing();
    await firing();
    expect(await casesOf(created)).toMatchObject([{ event_count: 3, status: 'suppressed' }]);
    expect((await deliveriesOf(created)).map(({ status }) => status)).toEqual(['pending', 'suppressed', 'suppressed']);
  });
});

describe('an open case', () => {
  test('notifies again at every nth event when configured', async () => {
    const created = await trigger({ case: { notify_every: 3 } });
    const group = { connection_id: connectionId() };
    for (let count = 0; count < 7; count += 1) {
      await fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    }
    const notified = (await deliveriesOf(created)).map(({ reason, status }) => `${reason} ${status}`);
    expect(notified.filter((one) => one.endsWith('pending'))).toEqual([
      'opened pending',
      'repeated pending',
      'repeated pending',
    ]);
  });

  test('notifies again when the severity of its trigger rises', async () => {
    const created = await trigger({ severity: 'warning' });
    const group = { connection_id: connectionId() };
    await fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    const [raised] = await deps.db
      .update(triggers)
      .set({ severity: 'critical' })
      .where(eq(triggers.id, created.id))
      .returning();
    await fire({ trigger: raised!, event: await event('connection_failed', group), group, kind: 'fired' });
    const [found] = await casesOf(created);
    expect(found).toMatchObject({ severity: 'critical', event_count: 2 });
    expect(await timelineOf(found!.id)).toEqual(['opened', 'raised']);
    expect((await deliveriesOf(created)).map(({ reason }) => reason)).toEqual(['opened', 'raised']);
  });

  test('has a recognizable title', async () => {
    const created = await trigger({ name: 'Nightly {{ x }}', severity: 'high' });
    const { case_id } = await fire({
      trigger: created,
      event: await event('connection_failed'),
      group: {},
      kind: 'fired',
    });
    const [found] = await deps.db.select().from(cases).where(eq(cases.id, case_id!));
    expect(found?.title).toBe('high: Nightly {{ x }} on Orders');
  });
});

test('a trigger without cases still acts, at every firing', async () => {
  const created = await trigger({ case: { open: false } });
  for (let count = 0; count < 2; count += 1) {
    const outcome = await fire({ trigger: created, event: await event('connection_failed'), group: {}, kind: 'fired' });
    expect(outcome).toEqual({ case_id: null });
  }
  expect((await deliveriesOf(created)).map(({ reason, status }) => [reason, status])).toEqual([
    ['fired', 'pending'],
    ['fired', 'pending'],
  ]);
});

test('an event that fires twice is delivered once', async () => {
  const created = await trigger({ case: { open: false } });
  const row = await event('connection_failed');
  for (let count = 0; count < 2; count += 1) await fire({ trigger: created, event: row, group: {}, kind: 'fired' });
  expect(await deliveriesOf(created)).toHaveLength(1);
});
