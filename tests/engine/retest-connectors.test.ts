import { afterAll, describe, expect, test } from 'bun:test';
import { and, desc, eq, sql } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, connectionRuns, connections, events, tasks } from '../../db/schema/index.ts';
import { retestConnectors } from '../../server/runs/retest-connectors.ts';
import { fireDue } from '../../server/runs/schedule-tick.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';

const http = startHttpServer();
const service = await testDeps({ config: { EGRESS_ALLOW: [new URL(http.url).host] } });
const { db } = service.deps;
const { call } = testApi(service);
const make = makerOf(call);
const target = await createPlainDatabase();
const admin = postgres(target.url, { max: 1, onnotice: () => {} });
const role = `loader_${crypto.randomUUID().slice(0, 8)}`;
await admin.unsafe(`create role ${role} login password 'right'; grant all on schema public to ${role}`);
afterAll(async () => {
  await admin.unsafe(`drop owned by ${role}; drop role ${role}`);
  await admin.end();
  await target.drop();
  await http.close();
});

const hourly = { type: 'interval', interval_minutes: 60 };
const rowOf = async (id: string) => {
  const [row] = await db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
  return row!;
};
const lastEvent = async (id: string) => {
  const query = db.select().from(events).where(eq(events.account_connector_id, id));
  return (await query.orderBy(desc(events.occurred_at), desc(events.id)).limit(1))[0];
};
const makeDue = (id: string) =>
  db.execute(sql`update account_connectors set retest_at = now() - interval '1 second' where id = ${id}`);
/** The scheduled pause before the next test, in minutes. */
const pauseOf = async (id: string) => {
  const [row] = await db
    .select({ minutes: sql<number>`round(extract(epoch from ${accountConnectors.retest_at} - now()) / 60)::int` })
    .from(accountConnectors)
    .where(eq(accountConnectors.id, id));
  return row?.minutes ?? null;
};
const tick = async (id: string) => {
  await db.update(connections).set({ next_run_at: sql`now() - interval '1 second'` }).where(eq(connections.id, id));
  await fireDue(service.deps);
  const query = db.select().from(connectionRuns).where(eq(connectionRuns.connection_id, id));
  const [run] = await query.orderBy(desc(connectionRuns.number)).limit(1);
  return run;
};

describe('a broken connector', () => {
  test('that works again runs with the next tick, and the event counts the runs that were skipped', async () => {
    const parameters = { ...postgresParameters(target.url), username: role, password: 'right' };
    const destination = await make.connector('destination', 'postgres', parameters);
    const connection = await make.connection({ destination_id: destination.id, schedule: hourly });
    await admin.unsafe(`alter role ${role} nologin`);
    await db
      .update(accountConnectors)
      .set({ status: 'broken', status_reason: 'login_refused' })
      .where(eq(accountConnectors.id, destination.id));
    for (const _ of [1, 2]) expect(await tick(connection.id)).toMatchObject({ skip_reason: 'source_not_ready' });
    await retestConnectors(service.deps);
    expect(await pauseOf(destination.id)).toBe(1);
    await makeDue(destination.id);
    await retestConnectors(service.deps);
    expect(await rowOf(destination.id)).toMatchObject({ status: 'broken', last_test: { status: 'failed' } });

    await admin.unsafe(`alter role ${role} login`);
    await makeDue(destination.id);
    await retestConnectors(service.deps);
    expect(await rowOf(destination.id)).toMatchObject({ status: 'active', status_reason: null, failure_streak: 0 });
    expect(await lastEvent(destination.id)).toMatchObject({
      event: 'account_connector_authenticated',
      actor: { type: 'system' },
      summary: expect.stringContaining('works again. 2 scheduled runs were skipped in the meantime'),
      payload: { skipped_runs: 2, status: 'active' },
    });
    expect(await tick(connection.id)).toMatchObject({ status: 'queued' });
    await retestConnectors(service.deps);
    expect(await rowOf(destination.id)).toMatchObject({ retest_at: null, retests: 0 });
  });

  test('created while its server answers 502 is discovered once it works', async () => {
    let status = 502;
    http.on('/items', () => Response.json([{ id: 1 }], { status }));
    const definition = {
      base_url: http.url,
      retries: { max_attempts: 1, base_seconds: 0.001 },
      streams: [{ name: 'items', request: { path: '/items' } }],
    };
    const source = await make.connector('source', 'http_api', { definition: JSON.stringify(definition) });
    expect(source).toMatchObject({ status: 'broken', catalog_status: 'never' });
    await retestConnectors(service.deps);
    status = 200;
    await makeDue(source.id);
    await retestConnectors(service.deps);
    expect(await rowOf(source.id)).toMatchObject({ status: 'active', catalog_status: 'pending' });
    const queued = and(eq(tasks.account_connector_id, source.id), eq(tasks.kind, 'discover_catalog'));
    expect(await db.select().from(tasks).where(queued)).toHaveLength(1);
  });

  test('is tested with pauses that double from one minute to an hour, by one worker at a time', async () => {
    const { id, updated_at } = await make.source({ check: 'fails' });
    await retestConnectors(service.deps);
    const pauses = [await pauseOf(id)];
    for (let tests = 1; tests <= 7; tests += 1) {
      await makeDue(id);
      await Promise.all([1, 2, 3].map(() => retestConnectors(service.deps)));
      expect((await rowOf(id)).retests).toBe(tests);
      pauses.push(await pauseOf(id));
    }
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    expect((await rowOf(id)).updated_at).toBe(updated_at);
  });

  test('is not tested again when its credentials have expired, it was deleted, or it waits for its user', async () => {
    const set = (id: string, values: Partial<typeof accountConnectors.$inferInsert>) =>
      db.update(accountConnectors).set(values).where(eq(accountConnectors.id, id));
    const [expired, deleted, unused] = [await make.source(), await make.source(), await make.source()];
    await set(expired.id, { status: 'needs_reauth', status_reason: 'credentials_expired' });
    await set(deleted.id, { status: 'broken', deleted_at: new Date().toISOString() });
    await set(unused.id, { status: 'pending_test' });
    await retestConnectors(service.deps);
    for (const { id } of [expired, deleted, unused]) expect((await rowOf(id)).retest_at).toBeNull();
  });
});
