import { expect, test } from 'bun:test';
import type { Batch, ConnectorContext, ReadRequest } from '../../server/connectors/contract/connector.ts';
import { DemoConfig, demoSource } from '../../server/connectors/demo/source.ts';
import { DEMO_STREAMS, demoSchema } from '../../server/connectors/demo/streams.ts';

const NOW = '2026-11-21T10:00:00Z';

const contextOf = (settings: object, now = NOW) =>
  ({
    config: DemoConfig.parse(settings),
    now: () => new Date(now),
    signal: new AbortController().signal,
  }) as ConnectorContext<DemoConfig>;

function requestOf(name: string, more: Partial<ReadRequest> = {}): ReadRequest {
  const stream = demoSchema(
    DEMO_STREAMS.find((demo) => demo.name === name) ?? (DEMO_STREAMS[0] as (typeof DEMO_STREAMS)[0]),
  );
  const columns = stream.fields.map((field) => ({ field, masking: 'none' as const }));
  const base = { stream, columns, filters: [], sync_mode: 'full_refresh' as const, cursor_field: null };
  return { ...base, primary_key: [['id']], state: null, window: null, ...more };
}

async function readAll(context: ConnectorContext<DemoConfig>, request: ReadRequest) {
  const batches: Batch[] = [];
  for await (const batch of demoSource.read(context, request)) batches.push(batch);
  return { batches, rows: batches.flatMap((batch) => batch.rows) };
}

test('the same seed gives the same rows, another seed gives others', async () => {
  const first = await readAll(contextOf({ rows: 3000, seed: 7 }), requestOf('events'));
  expect(first.rows).toHaveLength(3000);
  expect((await readAll(contextOf({ rows: 3000, seed: 7 }), requestOf('events'))).rows).toEqual(first.rows);
  expect((await readAll(contextOf({ rows: 3000, seed: 8 }), requestOf('events'))).rows).not.toEqual(first.rows);
});

test('each stream has its share of the rows and its references point to users that exist', async () => {
  const context = contextOf({ rows: 1000 });
  const users = await readAll(context, requestOf('users'));
  const orders = await readAll(context, requestOf('orders'));
  expect([users.rows.length, orders.rows.length]).toEqual([100, 500]);
  const ids = new Set(users.rows.map((row) => row[0]));
  expect(orders.rows.every((row) => ids.has(row[1] ?? null))).toBe(true);
});

test('adjacent windows return every row once', async () => {
  const context = contextOf({ rows: 5000, start_date: '2026-01-01', end_date: '2026-02-01' });
  const whole = await readAll(context, requestOf('orders'));
  const windows = [
    { start: null, end: '2026-01-10' },
    { start: '2026-01-10', end: '2026-01-10T12:00:00Z' },
    { start: '2026-01-10T12:00:00Z', end: null },
  ];
  const parts = [];
  for (const window of windows) parts.push(await readAll(context, requestOf('orders', { window })));
  expect(parts.every(({ rows }) => rows.length > 0)).toBe(true);
  expect(parts.flatMap(({ rows }) => rows)).toEqual(whole.rows);
});

test('a read that resumes after midnight returns the rest of the same rows', async () => {
  const whole = await readAll(contextOf({ rows: 12_000 }), requestOf('events'));
  const state = whole.batches[0]?.state ?? null;
  const rest = await readAll(contextOf({ rows: 12_000 }, '2026-11-22T00:10:00Z'), requestOf('events', { state }));
  expect(rest.rows).toEqual(whole.rows.slice(whole.batches[0]?.rows.length));
});

test('a read resumes from a cursor that a user set', async () => {
  const context = contextOf({ rows: 1000 });
  const whole = await readAll(context, requestOf('events'));
  const cursor = whole.rows[499]?.at(-1) ?? null;
  const rest = await readAll(context, requestOf('events', { sync_mode: 'incremental', state: { cursor } }));
  expect(rest.rows).toEqual(whole.rows.slice(500));
});

test('the end date must be after the start date', () => {
  expect(DemoConfig.safeParse({ start_date: '2026-02-01', end_date: '2026-01-01' }).success).toBe(false);
});
