import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { accountConnectors, accounts, events } from '../../db/schema/index.ts';
import { announceEndingFreePeriods, announceExpiringCredentials } from '../../server/worker/expiry-notices.ts';
import type { EventKind } from '../../server/events/kinds.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { deps, account_id } = service;
const { db } = deps;
const { call } = testApi(service);
const make = makerOf(call);
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000 - 60_000).toISOString();

const emitted = async (id: string, event: EventKind) =>
  db
    .select()
    .from(events)
    .where(and(eq(events.account_connector_id, id), eq(events.event, event)))
    .orderBy(events.id);
const row = async (id: string) => (await db.select().from(accountConnectors).where(eq(accountConnectors.id, id)))[0]!;
const ends = (id: string, credentials_expire_at: string) =>
  db.update(accountConnectors).set({ credentials_expire_at }).where(eq(accountConnectors.id, id));
const look = () =>
  Promise.all([
    announceExpiringCredentials(deps),
    announceExpiringCredentials(deps),
    announceExpiringCredentials(deps),
  ]);

describe('credentials_expiring', () => {
  test('is emitted 14, 7 and 1 days before the configured expiry, once each; after it the connector needs new credentials', async () => {
    const source = await make.source();
    const path = `/account_connectors/${source.id}`;
    const set = await call('POST', path, { credentials_expire_at: inDays(15.5) });
    expect(set.body).toMatchObject({ credentials_expire_at: expect.stringMatching(/Z$/), revision: 2 });
    await look();
    expect(await emitted(source.id, 'credentials_expiring')).toEqual([]);
    for (const days of [14, 7, 1]) {
      await ends(source.id, inDays(days));
      await look();
      await look();
    }
    expect((await emitted(source.id, 'credentials_expiring')).map(({ payload }) => payload)).toMatchObject(
      [14, 7, 1].map((days_remaining) => ({
        account_connector_id: source.id,
        account_connector_name: source.name,
        connector_type: 'source',
        connector_name: 'sample',
        status: 'active',
        status_reason: null,
        days_remaining,
      })),
    );
    await ends(source.id, inDays(0));
    await look();
    await look();
    const after = (await call('GET', `/account_connectors/source/${source.id}`)).body;
    expect(after).toMatchObject({ status: 'needs_reauth', status_reason: 'credentials_expired' });
    expect(await emitted(source.id, 'account_connector_reauth_required')).toMatchObject([
      { payload: { status: 'needs_reauth', status_reason: 'credentials_expired', days_remaining: 0 } },
    ]);
  });

  test('starts over with a new expiry; null ends it', async () => {
    const source = await make.connector('source', 'sample');
    const path = `/account_connectors/${source.id}`;
    for (const days of [6, 5]) {
      await call('POST', path, { credentials_expire_at: inDays(days) });
      await look();
    }
    expect(await emitted(source.id, 'credentials_expiring')).toHaveLength(2);
    expect((await call('POST', path, { credentials_expire_at: null })).body.credentials_expire_at).toBeNull();
    await look();
    expect(await emitted(source.id, 'credentials_expiring')).toHaveLength(2);
  });

  test('is not emitted for deleted connectors; an inactive connector keeps its state', async () => {
    const [gone, broken] = [await make.source(), await make.source()];
    await call('DELETE', `/account_connectors/${gone.id}`);
    await ends(gone.id, inDays(3));
    await ends(broken.id, inDays(0));
    await db.update(accountConnectors).set({ status: 'broken' }).where(eq(accountConnectors.id, broken.id));
    await look();
    expect(await emitted(gone.id, 'credentials_expiring')).toEqual([]);
    expect((await row(broken.id)).status).toBe('broken');
    expect(await emitted(broken.id, 'account_connector_reauth_required')).toEqual([]);
  });
});

describe('free_period_ending', () => {
  const free = (id: string, days: number) =>
    db
      .update(accountConnectors)
      .set({ free_until: inDays(days) })
      .where(eq(accountConnectors.id, id));
  const setPlan = (plan_id: 'free' | 'self_hosted' | 'starter') =>
    db.update(accounts).set({ plan_id }).where(eq(accounts.id, account_id));
  const lookFree = () => Promise.all([announceEndingFreePeriods(deps), announceEndingFreePeriods(deps)]);

  test('is emitted once, a week before rows cost credits, on plans that count credits', async () => {
    const source = await make.source();
    await free(source.id, 7);
    await lookFree();
    expect(await emitted(source.id, 'free_period_ending')).toEqual([]);
    await setPlan('starter');
    await free(source.id, 8);
    await lookFree();
    expect(await emitted(source.id, 'free_period_ending')).toEqual([]);
    await free(source.id, 7);
    await lookFree();
    await lookFree();
    await setPlan('self_hosted');
    expect((await emitted(source.id, 'free_period_ending')).map(({ payload }) => payload)).toEqual([
      {
        account_connector_id: source.id,
        account_connector_name: source.name,
        connector_type: 'source',
        connector_name: 'sample',
        status: 'active',
        status_reason: null,
        limit: 'free_period_days',
        used: 23,
        limit_value: 30,
        percent: 76,
        plan_name: 'Starter',
        days_remaining: 7,
      },
    ]);
  });
});
