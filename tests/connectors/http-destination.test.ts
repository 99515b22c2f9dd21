import { afterAll, beforeEach, expect, test } from 'bun:test';
import type { Cell, TargetColumn, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { AuthenticationError, ConfigurationError } from '../../server/connectors/contract/errors.ts';
import { httpDestination } from '../../server/connectors/http/destination.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { inTurn, json, startHttpServer } from '../support/http-server.ts';
import { contextOf } from './places.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});

const column = (name: string, type: TargetColumn['type']) => ({
  name,
  type,
  source_type: null,
  dialect: null,
  nullable: true,
});
const COLUMNS = [column('id', 'integer'), column('name', 'string')];
const target = (more: Partial<WriteTarget> = {}): WriteTarget => ({
  schema: null,
  table: 'contacts',
  columns: COLUMNS,
  primary_key: ['id'],
  cursor_column: null,
  mode: 'append',
  connection_id: 'connection',
  stream_id: 'stream',
  connection_run_id: 'run',
  stream_run_id: 'stream run',
  fence: 1,
  state_version: 0,
  ...more,
});
const rowsFrom = (first: number, count: number): Cell[][] =>
  Array.from({ length: count }, (_, at) => [String(first + at), `n${first + at}`]);
const batch = (rows: Cell[][]) => ({ rows, bytes: rows.length * 20 });
function contextFor(settings: object) {
  const warnings: string[] = [];
  const context = contextOf(
    httpDestination,
    { filesRoot: '/nowhere' },
    { settings: { url: `${server.url}/rows`, ...settings } },
  );
  return {
    context: { ...context, warn: (_: string, message: string) => void warnings.push(message) } as never,
    warnings,
  };
}
const open = (settings: object = {}, more: Partial<WriteTarget> = {}) =>
  httpDestination.open(contextFor(settings).context, target(more));
const keys = () => server.seen.map(({ headers }) => headers['idempotency-key']);

test('batches are split by rows and by bytes, independent of incoming batches', async () => {
  server.on('/rows', json({}));
  const writer = await open({ batch_rows: 4 });
  for (const [first, count] of [
    [0, 3],
    [3, 1],
    [4, 6],
  ] as const)
    await writer.write(batch(rowsFrom(first, count)));
  expect((await writer.finish(null)).rows_loaded).toBe(10);
  expect(server.seen.map(({ body }) => JSON.parse(body).length)).toEqual([4, 4, 2]);
  server.seen.length = 0;
  const small = await open({ batch_bytes: 1024 });
  await small.write(batch([...rowsFrom(0, 20), ['20', 'x'.repeat(2000)], ...rowsFrom(21, 60)]));
  await small.finish(null);
  expect(server.seen.flatMap(({ body }) => JSON.parse(body)).map(({ id }) => id)).toEqual(
    Array.from({ length: 81 }, (_, id) => id),
  );
  expect(server.seen.filter(({ body }) => body.length > 1100)).toHaveLength(1);
});

test('an attempt that repeats rows repeats their idempotency keys; other rows, positions and runs have others', async () => {
  server.on('/rows', json({}));
  const attempt = async (rows: Cell[][], more: Partial<WriteTarget> = {}) => {
    server.seen.length = 0;
    const writer = await open({ batch_rows: 2 }, more);
    await writer.write(batch(rows.slice(0, 4)));
    await writer.checkpoint({ cursor: 'a' });
    await writer.write(batch(rows.slice(4)));
    await writer.finish(null);
    return keys();
  };
  const first = await attempt(rowsFrom(0, 8));
  expect(new Set(first).size).toBe(4);
  expect(await attempt(rowsFrom(0, 8), { fence: 2 })).toEqual(first);
  // Resumed from the checkpoint.
  server.seen.length = 0;
  const resumed = await open(
    { batch_rows: 2 },
    { fence: 3, state_version: 1, counts: { rows_loaded: 4, rows_updated: 0, rows_deleted: 0, bytes_loaded: 80 } },
  );
  await resumed.write(batch(rowsFrom(4, 4)));
  expect((await resumed.finish(null)).rows_loaded).toBe(8);
  expect(keys()).toEqual(first.slice(2));
  expect((await attempt(rowsFrom(1, 8))).some((key) => first.includes(key))).toBe(false);
  expect((await attempt(rowsFrom(0, 8), { stream_run_id: 'another' })).some((key) => first.includes(key))).toBe(false);
  const same = await attempt(Array.from({ length: 8 }, () => ['1', 'same']));
  expect(new Set(same).size).toBe(4);
});

test('a batch is retried with the same key and rows', async () => {
  server.on(
    '/rows',
    inTurn(json({}, { status: 503 }), json({}, { status: 429, headers: { 'retry-after': '0' } }), json({})),
  );
  const writer = await open();
  await writer.write(batch(rowsFrom(0, 3)));
  expect((await writer.finish(null)).rows_loaded).toBe(3);
  expect(new Set(keys()).size).toBe(1);
  expect(new Set(server.seen.map(({ body }) => body)).size).toBe(1);
  expect(server.seen).toHaveLength(3);
});

test('rows that the service rejects are not counted as loaded, and its reason is reported', async () => {
  server.on('/rows', json({ results: { failed: [{ index: 1, message: 'no such country' }, { index: 2 }] } }));
  const { context, warnings } = contextFor({ rejected_selector: 'results.failed' });
  const writer = await httpDestination.open(context, target());
  await writer.write(batch(rowsFrom(0, 5)));
  expect(await writer.finish(null)).toMatchObject({ rows_loaded: 3, rows_rejected: 2 });
  expect(warnings.join()).toContain('no such country');
  server.on('/rows', json({ rejected: 1 }));
  const counted = await open({ rejected_selector: 'rejected' });
  await counted.write(batch(rowsFrom(0, 5)));
  expect(await counted.finish(null)).toMatchObject({ rows_loaded: 4, rows_rejected: 1 });
});

test('an error of the endpoint fails the run with its message, and no row is counted', async () => {
  for (const [status, type] of [
    [400, ConfigurationError],
    [401, AuthenticationError],
    [413, ConfigurationError],
  ] as const) {
    server.on('/rows', json({ message: 'not like this' }, { status }));
    const writer = await open();
    await writer.write(batch(rowsFrom(0, 3)));
    const error = await writer.finish(null).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toContain('not like this');
  }
});

test('values keep their digits and types', async () => {
  server.on('/rows', json({}));
  const columns = [
    column('big', 'integer'),
    column('nan', 'number'),
    column('on', 'boolean'),
    column('at', 'timestamp_tz'),
    column('doc', 'json'),
    { ...column('pg', 'array'), source_type: 'integer[]', dialect: 'postgres' },
    column('bytes', 'binary'),
    column('none', 'string'),
  ];
  const writer = await open({ format: 'jsonl' }, { columns });
  await writer.write(
    batch([
      [
        '12345678901234567890',
        'NaN',
        'true',
        '2026-01-31 23:59:59.120000+00',
        '{"a":\n1.50}',
        '{1,2}',
        '\\x00ff',
        null,
      ],
    ]),
  );
  await writer.finish(null);
  expect(server.seen[0]?.body).toBe(
    '{"big":12345678901234567890,"nan":"NaN","on":true,"at":"2026-01-31T23:59:59.12Z","doc":{"a": 1.50},"pg":"{1,2}","bytes":"AP8=","none":null}\n',
  );
  expect(server.seen[0]?.headers['content-type']).toBe('application/x-ndjson');
});

test('settings without required credentials are rejected', () => {
  const parsed = parseParameters(httpDestination, { url: 'https://api.example.com', authentication: 'bearer' });
  expect('problems' in parsed && parsed.problems.map(({ parameter }) => parameter)).toEqual(['token']);
  expect('config' in parseParameters(httpDestination, { url: 'https://api.example.com/{{ table }}' })).toBe(true);
});
