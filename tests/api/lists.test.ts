import { describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { connections, events, streamRuns } from '../../db/schema/index.ts';
import { countRows } from '../../server/api/total-count.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { endRun } from '../support/pipeline.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { db } = service.deps;
const { call } = testApi(service);
const make = makerOf(call);

/** Ids in response order, and the total from the header. */
async function listed(path: string) {
  const { status, body, headers } = await call('GET', path);
  expect(status).toBe(200);
  return { ids: body.map((one: { id: string }) => one.id), total: Number(headers.get('x-total-count')) };
}

const [source, destination] = [await make.source(), await make.destination()];
const plain = await make.connection();
const paused = await make.connection({ status: 'paused', tags: ['sales', 'daily'] });
const locked = await make.connection({ source_id: source.id, tags: ['sales'] });
await db.update(connections).set({ status: 'locked' }).where(eq(connections.id, locked.id));
const between = await make.connection({ source_id: source.id, destination_id: destination.id });

describe('GET /connections', () => {
  test.each([
    ['status=paused', [paused.id]],
    ['status=paused&status=locked', [locked.id, paused.id]],
    [`source_id=${source.id}`, [between.id, locked.id]],
    [`destination_id=${destination.id}`, [between.id]],
    [`source_id=${source.id}&tag=sales`, [locked.id]],
    ['tag=sales', [locked.id, paused.id]],
    ['tag=none', []],
    ['source_id=nonsense', []],
  ])('200: %s returns and counts the matching items', async (query, ids) => {
    expect(await listed(`/connections?${query}`)).toEqual({ ids, total: ids.length });
  });

  test('200: limit and offset apply after the filters', async () => {
    expect(await listed('/connections?tag=sales&limit=1&offset=1')).toEqual({ ids: [paused.id], total: 2 });
    const all = await listed('/connections');
    expect(all.total).toBe(all.ids.length);
    expect(all.ids.slice(-4)).toEqual([between.id, locked.id, paused.id, plain.id]);
    expect(await listed('/connections?limit=2')).toEqual({ ids: all.ids.slice(0, 2), total: all.total });
  });

  test.each(['status=running', 'status=', 'tag=a&tag=b'])('422: %s', async (query) => {
    expect((await call('GET', `/connections?${query}`)).status).toBe(422);
  });
});

describe('GET /account_connectors', () => {
  test('200: limit and offset apply after the filters, newest first', async () => {
    const all = await listed('/account_connectors?connector_type=source');
    expect(all.total).toBe(all.ids.length);
    expect(all.ids.length).toBeGreaterThan(2);
    const page = await listed('/account_connectors?connector_type=source&limit=1&offset=1');
    expect(page).toEqual({ ids: all.ids.slice(1, 2), total: all.total });
    expect(await listed('/account_connectors?connector_name=nothing')).toEqual({ ids: [], total: 0 });
  });

  test.each(['limit=0', 'limit=1001', 'offset=-1', 'connector_type=lake'])('422: %s', async (query) => {
    expect((await call('GET', `/account_connectors?${query}`)).status).toBe(422);
  });
});

const { id } = await make.connection();
const runs: string[] = [];
for (const [index, status] of (['failed', 'succeeded', 'stopped'] as const).entries()) {
  const run_id = (await call('POST', `/connections/${id}/run`)).body;
  const created_at = `2026-03-0${index + 1}T12:00:00.000Z`;
  await endRun(db, run_id, status, { run: { created_at } });
  runs.push(run_id);
}
const [failed, succeeded, stopped] = runs;

describe('GET /connections/{connection_id}/runs', () => {
  test.each([
    ['status=failed', [failed]],
    ['status=failed&status=stopped', [stopped, failed]],
    ['created_from=2026-03-02', [stopped, succeeded]],
    ['created_before=2026-03-02T12:00:00Z', [failed]],
    ['created_from=2026-03-02T14:00:00%2B02:00&created_before=2026-03-03', [succeeded]],
  ])('200: %s returns and counts the matching items', async (query, ids) => {
    expect(await listed(`/connections/${id}/runs?${query}`)).toEqual({ ids, total: ids.length });
  });

  test.each(['status=done', 'created_from=yesterday', 'created_from=0000-01-01', 'created_before=2026-02-30'])(
    '422: %s',
    async (query) => {
      expect((await call('GET', `/connections/${id}/runs?${query}`)).status).toBe(422);
    },
  );

  test('200: stream runs by status', async () => {
    const path = `/connections/${id}/runs/${failed}/stream_runs`;
    const all = await listed(path);
    expect(await listed(`${path}?status=failed`)).toEqual(all);
    expect(await listed(`${path}?status=running&status=pending`)).toEqual({ ids: [], total: 0 });
    expect(await listed(`${path}?limit=1`)).toEqual({ ids: all.ids.slice(0, 1), total: all.total });
  });
});

test('200: a run includes the warnings of its streams', async () => {
  const run_id = (await call('POST', `/connections/${id}/run`)).body;
  const warning = { code: 'rows_masked', message: 'Something to know', stream_name: 'stream_1' };
  await db
    .update(streamRuns)
    .set({ warnings: [warning, warning] })
    .where(eq(streamRuns.connection_run_id, run_id));
  await call('POST', `/connections/${run_id}/stop`);
  const [ended] = (await call('GET', `/connections/${id}/runs?limit=1`)).body;
  expect(ended).toMatchObject({ id: run_id, status: 'stopped', warnings: [warning] });
});

describe('X-Total-Count', () => {
  const fill = (rows: number) =>
    db.execute(sql`insert into ${events} (id, account_id, event, category, severity, actor, resource, summary)
      select gen_random_uuid(), ${service.account_id}, 'connection_created', 'connection', 'info', '{"type":"system"}', '{}', 'x'
      from generate_series(1, ${rows})`);

  test('200: is exact up to ten thousand, and approximate beyond', async () => {
    const count = () => countRows(db, events, eq(events.event, 'connection_created'));
    const before = await count();
    await fill(10_000 - before);
    expect(await count()).toBe(10_000);
    await fill(30_000);
    await db.execute(sql`analyze ${events}`);
    expect(await count()).toBeWithin(36_000, 44_001);
  });
});
