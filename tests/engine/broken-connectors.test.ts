import { expect, test } from 'bun:test';
import { and, eq, sql } from 'drizzle-orm';
import { accountConnectors, events } from '../../db/schema/index.ts';
import { disableBroken } from '../../server/runs/disable-connections.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { db } = service.deps;
const { call } = testApi(service);
const make = makerOf(call);

/** A source that fails its check, created as broken this many days ago. */
async function brokenFor(days: number) {
  const source = await make.source({ check: 'fails' });
  await db
    .update(events)
    .set({ occurred_at: sql`now() - make_interval(hours => ${days * 24})` })
    .where(and(eq(events.account_connector_id, source.id), eq(events.event, 'account_connector_broken')));
  expect(source.status).toBe('broken');
  return source;
}

/** A connection whose source broke later. */
async function connectionOf(source: { id: string }, status = 'active') {
  const set = (now: 'active' | 'broken') =>
    db
      .update(accountConnectors)
      .set({ status: now, catalog_status: 'never' })
      .where(eq(accountConnectors.id, source.id));
  await set('active');
  const created = await make.connection({
    source_id: source.id,
    status,
    schedule: { type: 'interval', interval_minutes: 60 },
  });
  await set('broken');
  return created;
}

test('connections of a connector broken for a week are disabled once, with an event', async () => {
  const [old, young, mended] = [await brokenFor(8), await brokenFor(6), await brokenFor(8)];
  const [hopeless, paused] = [await connectionOf(old), await connectionOf(old, 'paused')];
  const [waiting, well] = [await connectionOf(young), await connectionOf(mended)];
  await db.update(accountConnectors).set({ status: 'active' }).where(eq(accountConnectors.id, mended.id));
  await Promise.all([disableBroken(service.deps), disableBroken(service.deps)]);
  const states = await Promise.all(
    [hopeless, paused, waiting, well].map(async ({ id }) => (await call('GET', `/connections/${id}`)).body),
  );
  expect(states.map(({ status, status_reason }) => [status, status_reason])).toEqual([
    ['auto_disabled', 'account_connector_broken'],
    ['paused', null],
    ['active', null],
    ['active', null],
  ]);
  expect(states[0].next_run_at).toBeNull();
  const emitted = await db.select().from(events).where(eq(events.event, 'connection_auto_disabled'));
  expect(emitted).toMatchObject([
    {
      connection_id: hopeless.id,
      summary: expect.stringContaining(`source "${old.name}" has been broken for 7 days`),
      payload: { status: 'auto_disabled', status_reason: 'account_connector_broken', changed_fields: ['status'] },
    },
  ]);
});
