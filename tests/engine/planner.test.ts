import { describe, expect, test } from 'bun:test';
import type { StreamRow } from '../../db/schema/index.ts';
import type { StreamSchema } from '../../server/connectors/contract/connector.ts';
import { type PastChunk, planCustomRun, type PlannerInput } from '../../server/pipeline/custom-run/plan.ts';
import { paceOf } from '../../server/pipeline/custom-run/estimates.ts';
import { completeParameters, planHash } from '../../server/pipeline/custom-run/parameters.ts';
import { planStream } from '../../server/pipeline/custom-run/streams.ts';

const TODAY = '2026-03-15';
type Given = Parameters<typeof completeParameters>[0];
const complete = (given: Given, earliest: string | null = null) =>
  completeParameters(given, { today: TODAY, earliest });
const codeOf = (given: Given) => {
  try {
    return complete(given) && null;
  } catch (error) {
    return (error as { code: string }).code;
  }
};

const row = (id: string, more: Partial<StreamRow> = {}) =>
  ({
    id,
    name: id,
    namespace: null,
    sync_mode: 'incremental',
    destination_sync_mode: 'append_dedup',
    cursor_field: ['updated_at'],
    primary_key: [['id']],
    state: null,
    ...more,
  }) as StreamRow;
const schema = (more: Partial<StreamSchema> = {}) =>
  ({
    name: 'a',
    fields: [
      { path: ['id'], type: 'integer' },
      { path: ['updated_at'], type: 'timestamp_tz' },
    ],
    default_cursor_field: ['updated_at'],
    source_defined_primary_key: null,
    supports_date_window: true,
    ...more,
  }) as StreamSchema;
const stream = (more: Partial<Parameters<typeof planStream>[0]> = {}) =>
  planStream({
    stream: row('a'),
    schema: schema(),
    supported: ['append', 'overwrite', 'append_dedup'],
    replaceable: true,
    windowed: true,
    mode: 'backfill',
    clear_destination: false,
    ...more,
  });

const plan = (given: Given, more: Partial<PlannerInput> = {}) =>
  planCustomRun({
    parameters: complete(given),
    streams: [stream()],
    history: [],
    pace: { rows_per_day: 10, ms_per_row: 2 },
    credits_per_row: 1,
    credits_remaining: null,
    today: TODAY,
    max_chunks: null,
    blockers: [],
    ...more,
  });

const DAYS = { start_date: '2026-03-01', end_date: '2026-03-04', split: { unit: 'day', size: 1 } } as const;
const past = (outcome: PastChunk['outcome'], start: string, end = start, number = 1): PastChunk => ({
  stream_id: 'a',
  window: { start, end },
  outcome,
  number,
});
const reasons = (created: ReturnType<typeof plan>) => created.chunks.map((chunk) => chunk.skip_reason);

describe('parameters', () => {
  test('have defaults: the end is today, the cursor stays, one run at a time', () => {
    expect(complete({ start_date: '2026-03-01' })).toMatchObject({
      start_date: '2026-03-01',
      end_date: TODAY,
      mode: 'backfill',
      split: { unit: 'none', size: 1 },
      order: 'chronological',
      max_parallel_runs: 1,
      reprocess: 'all',
      update_cursor: false,
      clear_destination: false,
      on_chunk_failure: 'continue',
    });
    expect(complete({ end_date: '2026-03-02' }, '2026-02-01').start_date).toBe('2026-02-01');
  });

  test.each<[string | null, Given]>([
    ['invalid_window', { start_date: '2026-03-02', end_date: '2026-03-01' }],
    ['invalid_window', { split: { unit: 'day', size: 1 } }],
    ['invalid_window', { end_date: '2026-03-01', split: { unit: 'day', size: 1 } }],
    ['invalid_window', { start_date: '2026-03-01', mode: 'full_refresh' }],
    ['future_window', { start_date: '2026-03-16' }],
    ['future_window', { end_date: '9999-12-31' }],
    ['range_too_long', { start_date: '2021-03-01', end_date: '2026-03-06' }],
    [null, { start_date: '2021-03-01', end_date: '2026-03-04' }],
    [null, { start_date: TODAY, end_date: TODAY }],
    [null, { end_date: '2026-03-01' }],
  ])('%p for %j', (code, given) => {
    expect(codeOf(given)).toBe(code);
  });

  test('have the same hash in any key order; another revision has another hash', () => {
    const one = complete({ start_date: '2026-03-01', mode: 'backfill' });
    const same = Object.fromEntries(Object.entries(one).toReversed()) as typeof one;
    const connection = { id: 'c', revision: 1 };
    expect(planHash(one, connection)).toMatch(/^[0-9a-f]{64}$/);
    expect(planHash(same, connection)).toBe(planHash(one, connection));
    expect(planHash(one, { id: 'c', revision: 2 })).not.toBe(planHash(one, connection));
    expect(planHash({ ...one, update_cursor: true }, connection)).not.toBe(planHash(one, connection));
  });
});

describe('a plan', () => {
  test('with one chunk is a single run, with several a split one, each with estimates', () => {
    expect(plan({ start_date: '2026-03-01', end_date: '2026-03-04' })).toMatchObject({
      decision: 'single_run',
      estimated_rows: 40,
    });
    const created = plan(DAYS, { credits_per_row: 4 });
    expect(created).toMatchObject({ decision: 'split_runs', total_chunks: 4, runnable_chunks: 4, skipped_chunks: 0 });
    expect(created).toMatchObject({ estimated_rows: 40, estimated_credits: 160, estimated_duration_ms: 80 });
    expect(created.chunks[1]).toEqual({
      index: 1,
      start_date: '2026-03-02',
      end_date: '2026-03-02',
      stream_names: ['a'],
      action: 'run',
      skip_reason: null,
      estimated_rows: 10,
      estimated_credits: 40,
      estimated_duration_ms: 20,
    });
  });

  test('in reverse starts with the last days', () => {
    expect(plan({ ...DAYS, order: 'reverse_chronological' }).chunks.map((chunk) => chunk.start_date)).toEqual([
      '2026-03-04',
      '2026-03-03',
      '2026-03-02',
      '2026-03-01',
    ]);
  });

  test('skips future days and active chunks', () => {
    const created = plan({ start_date: '2026-03-14', end_date: '2026-03-17', split: { unit: 'day', size: 1 } });
    expect(reasons(created)).toEqual([null, null, 'empty_window', 'empty_window']);
    expect(reasons(plan(DAYS, { history: [past('live', '2026-03-02')] }))).toEqual([null, 'in_flight', null, null]);
  });

  test('with reprocess "missing" runs what has not succeeded, however it was split before', () => {
    const history = [
      past('succeeded', '2026-02-20', '2026-03-02'),
      past('failed', '2026-03-02', '2026-03-02', 2),
      past('failed', '2026-03-03'),
    ];
    const created = plan({ ...DAYS, reprocess: 'missing' }, { history });
    expect(reasons(created)).toEqual(['already_succeeded', 'already_succeeded', null, null]);
    const pieces = [past('succeeded', '2026-03-01', '2026-03-02'), past('succeeded', '2026-03-03', '2026-03-09')];
    const whole = plan({ ...DAYS, split: { unit: 'week', size: 1 }, reprocess: 'missing' }, { history: pieces });
    expect(whole).toMatchObject({ decision: 'nothing_to_do', runnable_chunks: 0 });
  });

  test('with reprocess "failed" runs what failed and has not succeeded since', () => {
    const history = [
      past('failed', '2026-03-01'),
      past('failed', '2026-03-02', '2026-03-02', 1),
      past('succeeded', '2026-03-02', '2026-03-02', 2),
      past('succeeded', '2026-03-03', '2026-03-03', 1),
    ];
    expect(reasons(plan({ ...DAYS, reprocess: 'failed' }, { history }))).toEqual([
      null,
      'already_succeeded',
      'already_succeeded',
      'never_run',
    ]);
  });

  test('is blocked without streams, without a date cursor, or with too many chunks', () => {
    const blockers = (created: ReturnType<typeof plan>) => [
      created.decision,
      ...created.blockers.map(({ code }) => code),
    ];
    expect(blockers(plan(DAYS, { streams: [] }))).toEqual(['blocked', 'no_streams_selected']);
    const undated = stream({ schema: schema({ supports_date_window: false }) });
    expect(blockers(plan(DAYS, { streams: [undated] }))).toEqual(['blocked', 'window_unsupported']);
    expect(plan(DAYS, { streams: [stream(), undated] }).decision).toBe('split_runs');
    const many = { start_date: '2025-03-01', end_date: '2026-03-02', split: { unit: 'day', size: 1 } } as const;
    expect(blockers(plan(many))).toEqual(['blocked', 'too_many_chunks']);
    expect(plan({ ...many, start_date: '2025-03-02' }).decision).toBe('split_runs');
    expect(blockers(plan(DAYS, { max_chunks: 3 }))).toEqual(['blocked', 'max_custom_run_chunks']);
  });

  test('needs confirmation when it clears data, has more than 100 chunks, or takes half of the credits', () => {
    const asks = (given: Given, more: Partial<PlannerInput> = {}) => plan(given, more).requires_confirmation;
    expect(asks(DAYS)).toBe(false);
    expect(asks({ mode: 'full_refresh', clear_destination: true })).toBe(true);
    expect(asks({ start_date: '2025-12-05', split: { unit: 'day', size: 1 } })).toBe(true);
    expect(asks({ start_date: '2025-12-06', split: { unit: 'day', size: 1 } })).toBe(false);
    expect(asks(DAYS, { credits_remaining: 79 })).toBe(true);
    expect(asks(DAYS, { credits_remaining: 80 })).toBe(false);
  });
});

describe('a stream', () => {
  test.each([
    ['The stream no longer exists in the source', { schema: null }],
    ['The source cannot limit this stream to a date window', { schema: schema({ supports_date_window: false }) }],
    [
      'The stream has no cursor field',
      { stream: row('a', { cursor_field: null }), schema: schema({ default_cursor_field: null }) },
    ],
    ['The cursor id is not a date or timestamp', { stream: row('a', { cursor_field: ['id'] }) }],
  ])('is reported without a window: %s', (reason, more) => {
    const created = stream(more);
    expect(created).toMatchObject({ supports_date_window: false, reason, warnings: [{ code: 'window_unsupported' }] });
  });

  test.each([
    ['append', true, 'append', 'replaces_window'],
    ['append', false, 'append', 'may_duplicate_rows'],
    ['overwrite', true, 'append_dedup', undefined],
    ['overwrite', false, 'overwrite', undefined],
    ['append_dedup', true, 'append_dedup', undefined],
    ['soft_delete', true, 'soft_delete', undefined],
  ] as const)('of %s (windowed: %p) with a key is written by %s', (own, windowed, mode, warning) => {
    const created = stream({ stream: row('a', { destination_sync_mode: own }), windowed });
    expect(created.destination_sync_mode).toBe(mode);
    expect(created.warnings[0]?.code).toBe(warning as string);
  });

  test('that cannot be merged is appended, never overwritten by a window, with a warning about its rows', () => {
    for (const destination_sync_mode of ['append', 'overwrite'] as const) {
      const keyless = { stream: row('a', { destination_sync_mode, primary_key: null }) };
      const incapable = { stream: row('a', { destination_sync_mode }), supported: ['append', 'overwrite'] as const };
      for (const given of [keyless, incapable]) {
        const appended = (code: string) => ({ destination_sync_mode: 'append', warnings: [{ code }] });
        expect(stream(given)).toMatchObject(appended('replaces_window'));
        expect(stream({ ...given, replaceable: false })).toMatchObject(appended('may_duplicate_rows'));
        // It continues from the live cursor, so it does not read the whole window.
        expect(stream({ ...given, mode: 'incremental' })).toMatchObject(appended('may_duplicate_rows'));
      }
    }
  });

  test('is overwritten when the destination is cleared', () => {
    const created = stream({ windowed: false, mode: 'full_refresh', clear_destination: true });
    expect(created).toMatchObject({ sync_mode: 'full_refresh', destination_sync_mode: 'overwrite', warnings: [] });
  });
});

describe('the load rate', () => {
  const at = (finished_at: string, rows_loaded: number, window: PastChunk['window'] | null = null) => ({
    rows_loaded,
    duration_ms: 1000,
    finished_at,
    window,
  });

  test('is rows by days for windows; for increments, the rows since the previous run without the first load', () => {
    const windows = [
      at('2026-03-02T00:00:00Z', 70, { start: '2026-01-01', end: '2026-01-07' }),
      at('2026-03-01T00:00:00Z', 999),
    ];
    expect(paceOf(windows).rows_per_day).toBe(10);
    const increments = [
      at('2026-03-03T00:00:00Z', 20),
      at('2026-03-02T00:00:00Z', 40),
      at('2026-03-01T00:00:00Z', 1_000_000),
    ];
    expect(paceOf(increments).rows_per_day).toBe(30);
  });

  test('is unknown from runs within a day or without rows, which would estimate 0 rows in 0 ms', () => {
    const within = [at('2026-03-01T00:00:20Z', 0), at('2026-03-01T00:00:10Z', 320_000)];
    const empty = [at('2026-03-03T00:00:00Z', 0), at('2026-03-01T00:00:00Z', 320_000)];
    for (const runs of [within, empty]) {
      expect(plan(DAYS, { pace: paceOf(runs) })).toMatchObject({ estimated_rows: null, estimated_duration_ms: null });
    }
  });

  test('is unknown without history, and so are the estimates', () => {
    expect(paceOf([])).toEqual({ rows_per_day: null, ms_per_row: null });
    expect(plan(DAYS, { pace: paceOf([]) })).toMatchObject({ estimated_rows: null, estimated_credits: null });
  });
});
