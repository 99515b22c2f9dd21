import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { accountConnectors, connections, connectionStreams, events } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const other = await api.otherAccount();
const foreign = await makerOf(other.call).connection();

const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const update = (id: string, body: object) => call('POST', `/connections/${id}`, body);
const eventsOf = async (id: string) => {
  const rows = await deps.db.select().from(events).where(eq(events.connection_id, id)).orderBy(events.id);
  return rows.map((row) => row.event);
};
const withStreams = async (streams: number, body: object = {}) =>
  make.connection({ source_id: (await make.source({ streams })).id, ...body });
const selected = (body: { streams: { name: string; selected: boolean }[] }) =>
  body.streams.filter((stream) => stream.selected).map((stream) => stream.name);

describe('POST /connections/{connection_id}', () => {
  test('200: changes only the given fields; the event names the user and the fields', async () => {
    const before = await make.connection();
    const change = { description: 'new words', tags: ['prod'], backfill_days: 3, start_date: '2026-01-01' };
    const { status, body } = await update(before.id, change);
    expect(status).toBe(200);
    expect(body).toEqual({ ...before, ...change, revision: 2, updated_at: body.updated_at });
    const [event] = await deps.db
      .select()
      .from(events)
      .where(and(eq(events.connection_id, before.id), eq(events.event, 'connection_updated')));
    expect(event?.payload.changed_fields).toEqual(expect.arrayContaining(Object.keys(change)));
    expect(event?.payload).toMatchObject({ before: { backfill_days: 0 }, after: { backfill_days: 3 } });
  });

  test('200: an update that changes nothing leaves revision and time, and emits no event', async () => {
    const before = await make.connection();
    const same = {
      name: before.name,
      tags: before.tags,
      status: before.status,
      source_id: before.source_id,
      schedule: { type: 'manual' },
      streams: [{ name: 'stream_1', sync_mode: before.streams[0].sync_mode }],
    };
    const { body } = await update(before.id, same);
    expect(body).toEqual(before);
    expect(await eventsOf(before.id)).toEqual(['connection_created']);
  });

  test('200: tags are a set', async () => {
    const { id, tags } = await make.connection({ tags: ['x', 'y', ' x'] });
    expect(tags).toEqual(['x', 'y']);
    expect((await update(id, { tags: ['z', 'z'] })).body.tags).toEqual(['z']);
  });

  test('200: a schedule starts when it is set, ends on pause and restarts on resume', async () => {
    const { id } = await make.connection();
    const from = Date.now();
    const set = await update(id, { schedule: { type: 'interval', interval_minutes: 15 } });
    const wait = Date.parse(set.body.next_run_at) - from;
    // The service's estimate of the database's clock may be off on a busy machine.
    expect(wait).toBeGreaterThan(15 * 60_000 - 10_000);
    expect(wait).toBeLessThan(15 * 60_000 + 10_000);
    const other_change = await update(id, { description: 'x' });
    expect(other_change.body.next_run_at).toBe(set.body.next_run_at);
    const paused = await update(id, { status: 'paused' });
    expect(paused.body).toMatchObject({ status: 'paused', next_run_at: null, schedule: { next_runs: [] } });
    const resumed = await update(id, { status: 'active' });
    expect(Date.parse(resumed.body.next_run_at)).toBeGreaterThan(Date.parse(set.body.next_run_at));
    expect(await eventsOf(id)).toEqual(expect.arrayContaining(['connection_paused', 'connection_resumed']));
  });

  test('200: resume resets the failure count', async () => {
    const { id } = await make.connection();
    await deps.db
      .update(connections)
      .set({ status: 'auto_disabled', consecutive_failures: 30 })
      .where(eq(connections.id, id));
    const { body } = await update(id, { status: 'active' });
    expect(body).toMatchObject({ status: 'active', consecutive_failures: 0, health: 'pending' });
  });

  test('200: pause lets an active run finish, unless stop_active_run is set', async () => {
    const { id } = await make.connection();
    const { body: run } = await call('POST', `/connections/${id}/run`);
    expect((await update(id, { status: 'paused' })).body.active_run_id).toBe(run);
    await update(id, { status: 'active' });
    const { status, body } = await update(id, { status: 'paused', stop_active_run: true });
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'paused', active_run_id: null, last_run: { id: run, status: 'stopped' } });
  });

  test('200: merge changes only the named streams, replace deselects the others', async () => {
    const { id, streams } = await withStreams(3);
    const merged = await update(id, { streams: [{ name: 'stream_2', selected: false }] });
    expect(selected(merged.body)).toEqual(['stream_1', 'stream_3']);
    const table = { name: 'stream_2', destination_table: 'second' };
    const replaced = await update(id, { streams: [table], streams_mode: 'replace' });
    expect(selected(replaced.body)).toEqual(['stream_2']);
    expect(replaced.body.streams[1]).toMatchObject(table);
    const again = await update(id, { streams: [{ name: 'stream_2' }], streams_mode: 'replace' });
    expect(again.body.streams[1].destination_table).toBeNull();
    expect(again.body.streams.map((one: { id: string }) => one.id)).toEqual(
      streams.map((one: { id: string }) => one.id),
    );
  });

  test('200: reset_cursor moves a cursor, and null resets it to the start', async () => {
    const { id, streams } = await make.connection();
    const stream_id = streams[0].id;
    const moved = await update(id, { reset_cursor: [{ stream_id, value: '2026-01-01 00:00:00+00' }] });
    expect(moved.body.streams[0].cursor_value).toBe('2026-01-01 00:00:00+00');
    expect(moved.body.revision).toBe(2);
    const [row] = await deps.db.select().from(connectionStreams).where(eq(connectionStreams.id, stream_id));
    expect(row?.state_version).toBeGreaterThan(1);
    const start = await update(id, { reset_cursor: [{ stream_id, value: null }] });
    expect(start.body.streams[0].cursor_value).toBeNull();
  });

  test('400: stale_revision returns the current revision', async () => {
    const { id } = await make.connection();
    const { status, body } = await update(id, { description: 'x', revision: 9 });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'stale_revision', revision: 1 });
  });

  test('400: of ten parallel updates of one revision, one succeeds', async () => {
    const { id } = await make.connection();
    const changes = Array.from({ length: 10 }, (_, n) => update(id, { description: `n ${n}`, revision: 1 }));
    const answers = await Promise.all(changes);
    expect(answers.filter((one) => one.status === 200)).toHaveLength(1);
    expect(answers.filter((one) => one.body.code === 'stale_revision')).toHaveLength(9);
  });

  test('400: immutable_field, duplicate_name, invalid_cron', async () => {
    const [one, two] = [await make.connection(), await make.connection()];
    const codeOf = async (body: object) => {
      const answer = await update(one.id, body);
      return [answer.status, answer.body.code, answer.body.field];
    };
    expect(await codeOf({ source_id: two.source_id })).toEqual([400, 'immutable_field', 'source_id']);
    expect(await codeOf({ destination_id: UNKNOWN })).toEqual([400, 'immutable_field', 'destination_id']);
    expect(await codeOf({ name: two.name })).toEqual([400, 'duplicate_name', 'name']);
    const schedule = { type: 'cron', cron_expression: 'x x x x x' };
    expect(await codeOf({ schedule })).toEqual([400, 'invalid_cron', 'schedule.cron_expression']);
  });

  test('400: run_active names the run when streams or cursors would change under it', async () => {
    const { id, streams } = await make.connection({ run_immediately: true });
    const { active_run_id } = (await call('GET', `/connections/${id}`)).body;
    for (const body of [
      { streams: [{ name: 'stream_1', selected: false }] },
      { reset_cursor: [{ stream_id: streams[0].id, value: null }] },
      { table_prefix: 'new_' },
    ]) {
      const answer = await update(id, body);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ code: 'run_active', connection_run_id: active_run_id });
    }
    expect((await update(id, { description: 'may change' })).status).toBe(200);
  });

  test('400: account_connector_not_ready and breaking_change_unreviewed block a resume', async () => {
    const { id, destination_id } = await make.connection({ status: 'paused' });
    const setStatus = (status: 'broken' | 'active') =>
      deps.db.update(accountConnectors).set({ status }).where(eq(accountConnectors.id, destination_id));
    await setStatus('broken');
    expect((await update(id, { status: 'active' })).body.code).toBe('account_connector_not_ready');
    await setStatus('active');
    await deps.db.update(connections).set({ schema_change_status: 'breaking' }).where(eq(connections.id, id));
    const { status, body } = await update(id, { status: 'active' });
    expect([status, body.code]).toEqual([400, 'breaking_change_unreviewed']);
  });

  test.each([
    ['unknown_stream', { streams: [{ name: 'nothing' }] }],
    ['unknown_stream', { reset_cursor: [{ stream_id: UNKNOWN, value: null }] }],
    [
      'unsupported_sync_mode',
      { streams: [{ name: 'stream_1', sync_mode: 'full_refresh', destination_sync_mode: 'update' }] },
    ],
    ['unknown_field', { streams: [{ name: 'stream_1', cursor_field: ['nothing'] }] }],
    ['duplicate_destination_table', { streams: [{ name: 'stream_1', destination_table: 'stream_2' }] }],
  ])('400: %s', async (code, body) => {
    const { id } = await withStreams(2);
    const answer = await update(id, body);
    expect([answer.status, answer.body.code]).toEqual([400, code]);
  });

  test('400: invalid_cursor for a value outside the type of its field', async () => {
    const { id, streams } = await make.connection({ streams: [{ name: 'stream_1', sync_mode: 'incremental' }] });
    const { status, body } = await update(id, { reset_cursor: [{ stream_id: streams[0].id, value: 'yesterday' }] });
    expect([status, body.code, body.field]).toEqual([400, 'invalid_cursor', 'reset_cursor.0.value']);
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/connections/${UNKNOWN}`, {})).status).toBe(401);
  });

  test('402: a connection locked by billing', async () => {
    const { id } = await make.connection();
    await deps.db
      .update(connections)
      .set({ status: 'locked', status_reason: 'plan_limit' })
      .where(eq(connections.id, id));
    const { status, body } = await update(id, { status: 'active' });
    expect(status).toBe(402);
    expect(body).toMatchObject({ code: 'connection_locked', status_reason: 'plan_limit' });
  });

  test('403: without connections.update', async () => {
    const { id } = await make.connection();
    const creator = api.as(await api.keyWith(['connections.create', 'connections.run']));
    const { status, body } = await creator('POST', `/connections/${id}`, { name: uniqueName('x') });
    expect(status).toBe(403);
    expect(body.required_permission).toBe('connections.update');
  });

  test('404: unknown, malformed, deleted, of another account', async () => {
    const deleted = await make.connection();
    await call('DELETE', `/connections/${deleted.id}`);
    for (const id of [UNKNOWN, 'nonsense', deleted.id, foreign.id]) {
      expect((await update(id, { name: 'x' })).status).toBe(404);
    }
  });

  test.each([
    [{}, 'value_error'],
    [{ connection_id: UNKNOWN }, 'extra_forbidden'],
    [{ status: 'gone' }, 'enum'],
    [{ stop_active_run: true }, 'value_error'],
  ])('422: %j is %s', async (body, type) => {
    const answer = await update(UNKNOWN, body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0].type).toBe(type);
  });

  test('422: a status that only the service sets, unless it is the current one', async () => {
    const { id } = await make.connection();
    const answer = await update(id, { status: 'locked' });
    expect([answer.status, answer.body.detail[0].type]).toEqual([422, 'enum']);
  });
});
