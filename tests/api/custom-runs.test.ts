import { describe, expect, test } from 'bun:test';
import { and, desc, eq } from 'drizzle-orm';
import {
  accountConnectors,
  accounts,
  connectionRuns,
  connectionStreams,
  connections,
  customRunPlans,
  events,
  streamRuns,
} from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { endRun } from '../support/pipeline.ts';
import { makerOf } from '../support/resources.ts';

// No worker runs here: a run stays queued until a test stops it.
const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const viewer = api.as(await api.keyWith([]));
const other = await api.otherAccount();
const foreign = await makerOf(other.call).connection();
const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const WEEK = { start_date: '2026-01-05', end_date: '2026-01-11', split: { unit: 'day', size: 1 } };

// oxlint-disable-next-line typescript/no-explicit-any -- responses of any shape
type Json = any;
const run = (id: string, body?: unknown) => call('POST', `/connections/${id}/run`, body);
const preview = (id: string, body: unknown = WEEK) => call('POST', `/connections/${id}/run/preview`, body);
const launch = (id: string, body: unknown) => call('POST', `/connections/${id}/run/launch-plan`, body);
const runsOf = async (id: string): Promise<Json[]> => (await call('GET', `/connections/${id}/runs`)).body;
const planned = async (id: string, body: unknown = WEEK) => (await preview(id, body)).body;
const eventsOf = (connection_id: string, event: string) =>
  deps.db
    .select()
    .from(events)
    .where(and(eq(events.connection_id, connection_id), eq(events.event, event)));
/** A connection whose source has no date cursor. */
const undated = async () => make.connection({ source_id: (await make.source({ cursor: false })).id });
async function inPlan(plan_id: 'free' | 'starter', work: () => Promise<void>) {
  await deps.db.update(accounts).set({ plan_id }).where(eq(accounts.id, service.account_id));
  try {
    await work();
  } finally {
    await deps.db.update(accounts).set({ plan_id: 'self_hosted' }).where(eq(accounts.id, service.account_id));
  }
}

describe('GET /connections/custom-run/split-options', () => {
  const path = '/connections/custom-run/split-options';

  test('200: the options of the form, for any user of the account', async () => {
    const { status, body } = await viewer('GET', path);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      default_unit: 'none',
      default_size: 1,
      max_range_days: 1830,
      max_chunks: 366,
      max_parallel_runs: 10,
      plan_ttl_minutes: 60,
      timezone: 'UTC',
      orders: ['chronological', 'reverse_chronological'],
      reprocess_options: ['all', 'missing', 'failed'],
      modes: ['backfill', 'incremental', 'full_refresh'],
    });
    expect(body.units.map((unit: Json) => unit.value)).toEqual(['none', 'day', 'week', 'month', 'quarter', 'year']);
    await inPlan('free', async () => expect((await viewer('GET', path)).body.max_chunks).toBe(31));
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', path)).status).toBe(401);
  });
});

describe('POST /connections/{connection_id}/run with parameters', () => {
  test('200: the id of the first run; its runs take turns', async () => {
    const { id } = await make.connection();
    const { status, body } = await run(id, WEEK);
    expect(status).toBe(200);
    const created = (await runsOf(id)).toReversed();
    expect(created.map((one) => one.window_start)).toEqual(
      ['05', '06', '07', '08', '09', '10', '11'].map((day) => `2026-01-${day}`),
    );
    expect(created[0]).toMatchObject({
      id: body,
      status: 'queued',
      run_type: 'custom',
      trigger_type: 'custom_plan',
      chunk_index: 0,
      chunk_count: 7,
      window_end: '2026-01-05',
      custom_run_parameters: { start_date: '2026-01-05', mode: 'backfill', update_cursor: false },
      triggered_by: { id: service.user_id },
    });
    const sent = await deps.db.select().from(streamRuns).where(eq(streamRuns.connection_id, id));
    expect(sent.filter((one) => one.dispatched_at !== null).map((one) => one.connection_run_id)).toEqual([body]);
    expect(await eventsOf(id, 'custom_run_launched')).toMatchObject([
      { payload: { total_chunks: 7, start_date: '2026-01-05' } },
    ]);
  });

  test('200: null when every chunk is skipped', async () => {
    const { id } = await make.connection();
    const { status, body } = await run(id, { ...WEEK, reprocess: 'failed' });
    expect([status, body]).toEqual([200, null]);
    expect(await runsOf(id)).toEqual([]);
  });

  test('200: a full refresh of some streams, without dates', async () => {
    const { id, streams } = await make.connection({ source_id: (await make.source({ streams: 3 })).id });
    await run(id, { mode: 'full_refresh', stream_ids: [streams[1].id], stream_names: ['stream_3'] });
    const [created] = await runsOf(id);
    expect(created).toMatchObject({ run_type: 'full_refresh', window_start: null, window_end: null, streams_total: 2 });
    const parts = (await call('GET', `/connections/${id}/runs/${created.id}/stream_runs`)).body;
    expect(parts.map((one: Json) => one.stream_name)).toEqual(['stream_2', 'stream_3']);
  });

  test.each([
    ['invalid_window', { start_date: '2026-01-05', end_date: '2026-01-04' }],
    ['invalid_window', { mode: 'full_refresh', start_date: '2026-01-05' }],
    ['future_window', { start_date: '2998-01-01' }],
    ['range_too_long', { start_date: '2010-01-01' }],
    ['too_many_chunks', { start_date: '2024-01-01', end_date: '2025-01-01', split: { unit: 'day', size: 1 } }],
    ['unknown_stream', { stream_ids: [UNKNOWN] }],
    ['unknown_stream', { stream_names: ['nothing'] }],
    ['no_streams_selected', { stream_ids: [] }],
    ['confirmation_required', { mode: 'full_refresh', clear_destination: true }],
  ])('400: %s', async (code, body) => {
    const { id } = await make.connection();
    const answer = await run(id, body);
    expect([answer.status, answer.body.code]).toEqual([400, code]);
    expect(await runsOf(id)).toEqual([]);
  });

  test('400: window_unsupported when no stream has a date cursor, account_connector_not_ready', async () => {
    const { id } = await undated();
    expect((await run(id, WEEK)).body.code).toBe('window_unsupported');
    const ready = await make.connection();
    await deps.db.update(accountConnectors).set({ status: 'broken' }).where(eq(accountConnectors.id, ready.source_id));
    expect((await run(ready.id, WEEK)).body.code).toBe('account_connector_not_ready');
  });

  test('400: run_already_active with the id, for a plain run that blocks a custom run and the reverse', async () => {
    const first = await make.connection();
    const plain = (await run(first.id)).body;
    expect((await run(first.id, WEEK)).body).toMatchObject({ code: 'run_already_active', connection_run_id: plain });
    const second = await make.connection();
    const custom = (await run(second.id, { start_date: '2026-01-05', end_date: '2026-01-11' })).body;
    expect((await run(second.id)).body).toMatchObject({ code: 'run_already_active', connection_run_id: custom });
    expect((await run(second.id, { mode: 'full_refresh' })).body).toMatchObject({ connection_run_id: custom });
    // Other days of the same stream do not conflict; the same days are already active.
    expect((await run(second.id, { start_date: '2026-01-12', end_date: '2026-01-13' })).status).toBe(200);
    expect((await run(second.id, { start_date: '2026-01-11', end_date: '2026-01-11' })).body).toBeNull();
  });

  test('200: other streams of a connection run in parallel with a custom run', async () => {
    const { id } = await make.connection({ source_id: (await make.source({ streams: 2 })).id });
    expect((await run(id, { stream_names: ['stream_1'] })).status).toBe(200);
    expect((await run(id, { stream_names: ['stream_2'] })).status).toBe(200);
    expect((await run(id, { stream_names: ['stream_2'] })).body.code).toBe('run_already_active');
  });

  test('402: a locked connection, more chunks than the plan allows', async () => {
    const { id } = await make.connection();
    await inPlan('free', async () => {
      const { status, body } = await run(id, { ...WEEK, start_date: '2025-12-01' });
      expect(status).toBe(402);
      expect(body).toMatchObject({ limit: 'max_custom_run_chunks', limit_value: 31, current_value: 42 });
    });
    await deps.db.update(connections).set({ status: 'locked' }).where(eq(connections.id, id));
    expect((await run(id, WEEK)).status).toBe(402);
  });

  test('422: bodies with invalid fields', async () => {
    const { id } = await make.connection();
    for (const body of [
      { start_date: '2026-02-30' },
      { split: { unit: 'hour', size: 1 } },
      { split: { unit: 'day', size: 0 } },
      { max_parallel_runs: 11 },
      { stream_ids: ['x'] },
      { mode: 'backfill', clear_destination: true },
      { colour: 'red' },
      [],
      'x',
    ]) {
      expect((await run(id, body)).status).toBe(422);
    }
  });
});

describe('POST /connections/{connection_id}/run/preview', () => {
  test('200: stores the plan for an hour and starts nothing', async () => {
    const { id, revision, streams } = await make.connection();
    const { status, body } = await preview(id, { ...WEEK, reason: 'late data' });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      decision: 'split_runs',
      total_chunks: 7,
      runnable_chunks: 7,
      skipped_chunks: 0,
      parameters: { end_date: '2026-01-11', max_parallel_runs: 1, reason: 'late data', stream_ids: null },
      streams: [{ stream_id: streams[0].id, stream_name: 'stream_1', supports_date_window: true, reason: null }],
      estimated_rows: null,
      credits_remaining: null,
      blockers: [],
      requires_confirmation: false,
      created_by: { id: service.user_id },
    });
    expect(body.plan_hash).toMatch(/^[0-9a-f]{64}$/);
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(3_600_000);
    const [stored] = await deps.db.select().from(customRunPlans).where(eq(customRunPlans.id, body.plan_id));
    expect(stored).toMatchObject({ connection_revision: revision, decision: body, launched_at: null });
    expect(await runsOf(id)).toEqual([]);
    expect(await eventsOf(id, 'custom_run_planned')).toMatchObject([
      { payload: { plan_id: body.plan_id, total_chunks: 7 } },
    ]);
  });

  test('200: the same request has the same hash in another plan', async () => {
    const { id } = await make.connection();
    const [one, two] = [await planned(id), await planned(id)];
    expect(one.plan_hash).toBe(two.plan_hash);
    expect(one.plan_id).not.toBe(two.plan_id);
    expect((await planned(id, { ...WEEK, order: 'reverse_chronological' })).plan_hash).not.toBe(one.plan_hash);
  });

  test('200: the decision names each blocker', async () => {
    const { id } = await undated();
    expect(await planned(id)).toMatchObject({
      decision: 'blocked',
      blockers: [{ code: 'window_unsupported' }],
      streams: [{ supports_date_window: false, reason: 'The source cannot limit this stream to a date window' }],
    });
    expect(await planned(id, { stream_names: [] })).toMatchObject({ blockers: [{ code: 'no_streams_selected' }] });
    const dated = await make.connection();
    const years = { start_date: '2024-01-01', end_date: '2025-01-01', split: { unit: 'day', size: 1 } };
    expect(await planned(dated.id, years)).toMatchObject({
      total_chunks: 367,
      blockers: [{ code: 'too_many_chunks' }],
    });
    await inPlan('free', async () => {
      const created = await planned(dated.id, { ...WEEK, start_date: '2025-12-01' });
      expect(created).toMatchObject({
        decision: 'blocked',
        blockers: [{ code: 'max_custom_run_chunks' }],
        credits_remaining: 1_000_000,
      });
    });
  });

  test('200: the decision names what would refuse a launch at this moment', async () => {
    const connection = await make.connection();
    const { id, source_id } = connection;
    const { plan_id } = await planned(id);
    const locked = async (is: boolean) =>
      deps.db
        .update(connections)
        .set({ status: is ? 'locked' : 'active', locked_from: is ? { status: 'active', reason: null } : null })
        .where(eq(connections.id, id));
    const ready = async (status: 'active' | 'broken') =>
      deps.db.update(accountConnectors).set({ status }).where(eq(accountConnectors.id, source_id));
    await locked(true);
    const refused = await planned(id);
    expect(refused).toMatchObject({ decision: 'blocked', blockers: [{ code: 'connection_locked' }] });
    expect(await launch(id, { plan_id })).toMatchObject({ status: 402, body: { code: 'connection_locked' } });
    await locked(false);
    await ready('broken');
    const blockers = [{ code: 'account_connector_not_ready' }];
    expect(await planned(id)).toMatchObject({ decision: 'blocked', blockers });
    await ready('active');
    const active = (await run(id)).body;
    expect(await planned(id)).toMatchObject({ decision: 'blocked', blockers: [{ code: 'run_already_active' }] });
    await call('POST', `/connections/${active}/stop`);
    // What blocked the preview is gone, and the launch checks again.
    expect((await launch(id, { plan_id: refused.plan_id })).body.status).toBe('launched');
  });

  test('200: estimates come from earlier runs', async () => {
    const { id, source_id } = await make.connection();
    const first = (await run(id, { start_date: '2026-01-01', end_date: '2026-01-04' })).body;
    const ended = { started_at: '2026-02-01T00:00:00.000Z', finished_at: '2026-02-01T00:00:04.000Z' };
    await endRun(deps.db, first, 'succeeded', { run: ended, streams: { rows_loaded: 400 } });
    const created = await planned(id);
    expect(source_id).toBeString();
    expect(created).toMatchObject({ estimated_rows: 700, estimated_credits: 700, estimated_duration_ms: 7000 });
    expect(created.chunks[0]).toMatchObject({
      estimated_rows: 100,
      estimated_credits: 100,
      estimated_duration_ms: 1000,
    });
    expect(await planned(id, { start_date: '2026-01-01', end_date: '2026-01-04', reprocess: 'missing' })).toMatchObject(
      {
        decision: 'nothing_to_do',
        chunks: [{ action: 'skip', skip_reason: 'already_succeeded' }],
      },
    );
  });

  test.each([
    ['invalid_window', { start_date: '2026-01-05', end_date: '2026-01-04' }],
    ['future_window', { start_date: '2998-01-01' }],
    ['range_too_long', { start_date: '2010-01-01' }],
    ['unknown_stream', { stream_names: ['nothing'] }],
  ])('400: %s', async (code, body) => {
    const { id } = await make.connection();
    const answer = await preview(id, body);
    expect([answer.status, answer.body.code]).toEqual([400, code]);
  });

  test('401, 403, 404, 422', async () => {
    const { id } = await make.connection();
    const path = `/connections/${id}/run/preview`;
    expect((await anonymous('POST', path, WEEK)).status).toBe(401);
    const { status, body } = await viewer('POST', path, WEEK);
    expect([status, body.required_permission]).toEqual([403, 'connections.run']);
    for (const unknown of [UNKNOWN, 'nonsense', foreign.id]) expect((await preview(unknown)).status).toBe(404);
    expect((await preview(id, { start_date: 'May' })).status).toBe(422);
    expect((await call('POST', path)).status).toBe(422);
  });

  test('402: a billing plan without custom runs', async () => {
    const { PLANS } = await import('../../server/pipeline/billing-plans.ts');
    const free = PLANS.find((plan) => plan.id === 'free')!;
    const features = free.features as string[];
    const { id } = await make.connection();
    const kept = features.splice(0);
    try {
      await inPlan('free', async () => {
        const { status, body } = await preview(id);
        expect([status, body.code, body.limit]).toEqual([402, 'feature_not_in_plan', 'custom_runs']);
      });
    } finally {
      features.push(...kept);
    }
  });
});

describe('POST /connections/{connection_id}/run/launch-plan', () => {
  test('200: creates the runs of its chunks in order; a second launch responds the same and starts nothing', async () => {
    const { id } = await make.connection();
    // The first chunk of a stream that was never loaded runs alone, whatever max_parallel_runs allows.
    await deps.db
      .update(connectionStreams)
      .set({ row_count_last_run: 1 })
      .where(eq(connectionStreams.connection_id, id));
    const plan = await planned(id, { ...WEEK, order: 'reverse_chronological', max_parallel_runs: 2 });
    const request = { plan_id: plan.plan_id, plan_hash: plan.plan_hash };
    const { status, body } = await launch(id, request);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      plan_id: plan.plan_id,
      status: 'launched',
      launched_count: 7,
      queued_count: 5,
      skipped_count: 0,
      skipped: [],
    });
    const created = (await runsOf(id)).toReversed();
    expect(created.map((one) => one.id)).toEqual(body.connection_run_ids);
    expect(created.map((one) => one.window_start)).toEqual(plan.chunks.map((chunk: Json) => chunk.start_date));
    expect(created[0]).toMatchObject({
      id: body.first_connection_run_id,
      window_start: '2026-01-11',
      plan_id: plan.plan_id,
    });
    expect((await launch(id, request)).body).toEqual(body);
    expect((await launch(id, { ...request, chunk_indexes: [0] })).body).toEqual(body);
    expect(await runsOf(id)).toHaveLength(7);
  });

  test('200: twenty parallel launches create one set of runs', async () => {
    const { id } = await make.connection();
    const { plan_id } = await planned(id);
    const answers = await Promise.all(Array.from({ length: 20 }, () => launch(id, { plan_id })));
    expect(new Set(answers.map((one) => JSON.stringify([one.status, one.body]))).size).toBe(1);
    expect(answers[0]?.status).toBe(200);
    expect(await runsOf(id)).toHaveLength(7);
  });

  test('200: a further launch starts the chunks that are left, each once', async () => {
    const { id } = await make.connection();
    const { plan_id } = await planned(id);
    const some = (await launch(id, { plan_id, chunk_indexes: [1, 2] })).body;
    const more = (await launch(id, { plan_id, chunk_indexes: [0, 1] })).body;
    expect(more).toMatchObject({ status: 'partially_launched', launched_count: 1, skipped_count: 6 });
    expect(more.skipped.slice(0, 3)).toEqual([
      { index: 1, reason: 'already_launched' },
      { index: 2, reason: 'already_launched' },
      { index: 3, reason: 'not_requested' },
    ]);
    const rest = (await launch(id, { plan_id })).body;
    expect(rest).toMatchObject({ status: 'launched', launched_count: 4, skipped_count: 3 });
    const created = (await runsOf(id)).map((one) => one.chunk_index);
    expect(created.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect((await launch(id, { plan_id, chunk_indexes: [1, 2] })).body).toEqual(some);
    expect((await launch(id, { plan_id, chunk_indexes: [0] })).body).toEqual(more);
    expect((await launch(id, { plan_id })).body).toEqual(rest);
    expect(await runsOf(id)).toHaveLength(7);
  });

  test('200: runs only the selected chunks and reports why each other chunk is skipped', async () => {
    const { id } = await make.connection();
    await run(id, { start_date: '2026-01-06', end_date: '2026-01-06' });
    const { plan_id } = await planned(id);
    const { body } = await launch(id, { plan_id, chunk_indexes: [0, 1, 3, 3] });
    expect(body).toMatchObject({ status: 'partially_launched', launched_count: 2, skipped_count: 5 });
    expect(body.skipped).toEqual([
      { index: 1, reason: 'in_flight' },
      ...[2, 4, 5, 6].map((index) => ({ index, reason: 'not_requested' })),
    ]);
    const created = (await runsOf(id)).filter((one) => one.plan_id === plan_id).toReversed();
    expect(created.map((one) => [one.chunk_index, one.window_start])).toEqual([
      [0, '2026-01-05'],
      [3, '2026-01-08'],
    ]);
  });

  test('200: nothing to do', async () => {
    const { id } = await make.connection();
    const { plan_id } = await planned(id, { ...WEEK, reprocess: 'failed' });
    const { body } = await launch(id, { plan_id });
    expect(body).toMatchObject({
      status: 'nothing_to_do',
      connection_run_ids: [],
      first_connection_run_id: null,
      skipped_count: 7,
    });
  });

  test('400: every reason to refuse a launch', async () => {
    const one = await make.connection();
    const two = await make.connection();
    const codeOf = async (id: string, body: object) => (await launch(id, body)).body.code;
    const { plan_id } = await planned(one.id);
    expect(await codeOf(two.id, { plan_id })).toBe('plan_of_other_connection');
    expect(await codeOf(one.id, { plan_id, plan_hash: 'f'.repeat(64) })).toBe('plan_hash_mismatch');
    expect(await codeOf(one.id, { plan_id, chunk_indexes: [7] })).toBe('unknown_chunk');
    const clearing = await planned(one.id, { mode: 'full_refresh', clear_destination: true });
    expect(await codeOf(one.id, { plan_id: clearing.plan_id })).toBe('confirmation_required');
    const blocked = await planned(one.id, { stream_ids: [] });
    expect(await codeOf(one.id, { plan_id: blocked.plan_id })).toBe('plan_blocked');
    const expired = await planned(one.id);
    await deps.db
      .update(customRunPlans)
      .set({ expires_at: new Date(Date.now() - 1).toISOString() })
      .where(eq(customRunPlans.id, expired.plan_id));
    expect(await codeOf(one.id, { plan_id: expired.plan_id })).toBe('plan_expired');
    await run(one.id);
    expect(await codeOf(one.id, { plan_id })).toBe('run_already_active');
    const stale = await planned(two.id);
    await call('POST', `/connections/${two.id}`, { description: 'changed' });
    expect(await codeOf(two.id, { plan_id: stale.plan_id })).toBe('plan_stale');
  });

  test('200: a confirmed plan overwrites the destination', async () => {
    const { id } = await make.connection();
    const { plan_id, requires_confirmation } = await planned(id, { mode: 'full_refresh', clear_destination: true });
    expect(requires_confirmation).toBe(true);
    const { body } = await launch(id, { plan_id, confirm: true });
    const [part] = (await call('GET', `/connections/${id}/runs/${body.first_connection_run_id}/stream_runs`)).body;
    expect(part).toMatchObject({ sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' });
  });

  test('400: run_already_active when another plan for the same days was launched in between', async () => {
    const { id } = await make.connection();
    const [first, second] = [await planned(id), await planned(id)];
    const launched = (await launch(id, { plan_id: first.plan_id })).body;
    const { status, body } = await launch(id, { plan_id: second.plan_id });
    expect([status, body.code]).toEqual([400, 'run_already_active']);
    expect(launched.connection_run_ids).toContain(body.connection_run_id);
  });

  test('401, 403, 404, 422', async () => {
    const { id } = await make.connection();
    const { plan_id } = await planned(id);
    const path = `/connections/${id}/run/launch-plan`;
    expect((await anonymous('POST', path, { plan_id })).status).toBe(401);
    expect((await viewer('POST', path, { plan_id })).status).toBe(403);
    for (const unknown of [UNKNOWN, 'nonsense', foreign.id])
      expect((await launch(unknown, { plan_id })).status).toBe(404);
    expect((await launch(id, { plan_id: UNKNOWN })).status).toBe(404);
    expect((await other.call('POST', `/connections/${foreign.id}/run/launch-plan`, { plan_id })).status).toBe(404);
    for (const body of [
      {},
      { plan_id: 'nonsense' },
      { plan_id, chunk_indexes: [-1] },
      { plan_id, chunk_indexes: [] },
      { plan_id, colour: 'red' },
      undefined,
    ]) {
      expect((await launch(id, body)).status).toBe(422);
    }
  });

  test('402: credits exhausted, connection locked', async () => {
    const { id } = await make.connection();
    const { plan_id } = await planned(id);
    await deps.db.update(accounts).set({ payment_status: 'overdue' }).where(eq(accounts.id, service.account_id));
    expect((await launch(id, { plan_id })).body.code).toBe('payment_required');
    await deps.db.update(accounts).set({ payment_status: 'active' }).where(eq(accounts.id, service.account_id));
    await deps.db.update(connections).set({ status: 'locked' }).where(eq(connections.id, id));
    expect((await launch(id, { plan_id })).body.code).toBe('connection_locked');
  });
});

describe('the runs of a custom run', () => {
  test('a run that a user stops also stops the ones after it if on_chunk_failure is stop', async () => {
    const statusesAfter = async (on_chunk_failure: string, stopped: number) => {
      const { id } = await make.connection();
      const { plan_id } = await planned(id, { ...WEEK, on_chunk_failure });
      const ids: string[] = (await launch(id, { plan_id })).body.connection_run_ids;
      await call('POST', `/connections/${ids[stopped]}/stop`);
      const runs = (await runsOf(id)).toSorted((a, b) => a.number - b.number);
      return runs.map(({ status }) => status);
    };
    const seven = (status: string) => Array.from({ length: 7 }, () => status);
    expect(await statusesAfter('stop', 0)).toEqual(seven('stopped'));
    expect(await statusesAfter('continue', 0)).toEqual(seven('queued').with(0, 'stopped'));
    expect(await statusesAfter('stop', 4)).toEqual([...seven('queued').slice(3), ...seven('stopped').slice(4)]);
  });

  test('a rerun has the run that it repeats and the first run of the chain', async () => {
    const { id } = await make.connection();
    const first = (await run(id)).body;
    await call('POST', `/connections/${first}/stop`);
    const second = (await call('POST', `/connections/${first}/rerun`)).body;
    await call('POST', `/connections/${second}/stop`);
    const third = (await call('POST', `/connections/${second}/rerun`)).body;
    const chain = (await runsOf(id)).map((one) => [one.id, one.parent_run_id, one.rerun_of_run_id]);
    expect(chain).toEqual([
      [third, first, second],
      [second, first, first],
      [first, null, null],
    ]);
  });

  const stop = (id: string) => call('POST', `/connections/${id}/stop`);

  test('stop one by one: the next run starts, and the last one completes the plan', async () => {
    const { id } = await make.connection();
    const first = (await run(id, { ...WEEK, end_date: '2026-01-06' })).body;
    const second = (await runsOf(id))[0].id;
    const dispatched = async (run_id: string) =>
      (await deps.db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, run_id))).some(
        (one) => one.dispatched_at !== null,
      );
    expect(await dispatched(second)).toBe(false);
    expect((await stop(first)).body).toBe(first);
    expect((await runsOf(id)).map((one) => one.status)).toEqual(['queued', 'stopped']);
    expect(await dispatched(second)).toBe(true);
    expect(await eventsOf(id, 'custom_run_completed')).toEqual([]);
    await stop(second);
    expect(await eventsOf(id, 'custom_run_completed')).toMatchObject([
      { payload: { total_chunks: 2, failed_chunks: 0 } },
    ]);
  });

  test('rerun one by one with their days, but not twice at the same time', async () => {
    const { id } = await make.connection();
    const { plan_id } = await planned(id, { ...WEEK, end_date: '2026-01-06' });
    const [first] = (await launch(id, { plan_id })).body.connection_run_ids;
    await stop(first);
    const { status, body } = await call('POST', `/connections/${first}/rerun`);
    expect(status).toBe(200);
    const [again] = await runsOf(id);
    expect(again).toMatchObject({
      id: body,
      trigger_type: 'rerun',
      rerun_of_run_id: first,
      run_type: 'custom',
      plan_id,
      chunk_index: 0,
      chunk_count: 2,
      window_start: '2026-01-05',
      window_end: '2026-01-05',
    });
    const refused = await call('POST', `/connections/${first}/rerun`);
    expect(refused.body).toMatchObject({ code: 'run_already_active', connection_run_id: body });
  });

  test('all stop when the connection is deleted', async () => {
    const { id } = await make.connection();
    await run(id, { ...WEEK, max_parallel_runs: 2 });
    expect((await call('DELETE', `/connections/${id}`)).status).toBe(204);
    const created = await deps.db
      .select()
      .from(connectionRuns)
      .where(eq(connectionRuns.connection_id, id))
      .orderBy(desc(connectionRuns.number));
    expect(new Set(created.map((one) => `${one.status} ${one.stop_reason}`))).toEqual(
      new Set(['stopped connection_deleted']),
    );
  });

  test('leave out streams without a date cursor, with a warning', async () => {
    const { id, streams } = await make.connection({ source_id: (await make.source({ streams: 2 })).id });
    await call('POST', `/connections/${id}`, {
      streams: [{ name: 'stream_2', sync_mode: 'full_refresh', cursor_field: ['id'] }],
    });
    expect(streams).toHaveLength(2);
    const first = (await run(id, WEEK)).body;
    const parts = (await call('GET', `/connections/${id}/runs/${first}/stream_runs`)).body;
    expect(parts.map((one: Json) => [one.stream_name, one.status])).toEqual([
      ['stream_1', 'pending'],
      ['stream_2', 'skipped'],
    ]);
    expect(parts[1].warnings).toMatchObject([{ code: 'window_unsupported', stream_name: 'stream_2' }]);
  });
});
