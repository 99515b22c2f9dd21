import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { StreamState } from '../../server/connectors/contract/connector.ts';
import { httpApiSource } from '../../server/connectors/http-api/source.ts';
import { requestValue } from '../../server/connectors/http-api/datetime-cursor.ts';
import { json, startHttpServer } from '../support/http-server.ts';
import { apiContext, discoverOne, readAll } from './http-support.ts';
import { requestOf } from './reading.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});

interface Event {
  id: number;
  at: string;
}
const DAY = 86_400_000;
const EPOCH = Date.parse('2026-01-01T00:00:00Z');
const iso = (ms: number) => new Date(ms).toISOString();

/** How services treat limits: half-open, inclusive, or ignored. */
const heeding = (
  events: () => Event[],
  how: 'half-open' | 'inclusive' | 'ignored',
  order: (events: Event[]) => Event[],
) =>
  server.on('/events', ({ query }) => {
    const from = query.from === undefined ? '' : iso(Date.parse(query.from));
    const to = query.to === undefined ? '~' : iso(Date.parse(query.to));
    const within = ({ at }: Event) => how === 'ignored' || (at >= from && (how === 'inclusive' ? at <= to : at < to));
    const found = order(events().filter(within));
    const offset = Number(query.offset);
    return Response.json(found.slice(offset, offset + 4));
  });

const request = {
  path: '/events',
  query: { offset: '{{ page.offset }}', from: '{{ window.start }}', to: '{{ window.end }}' },
};
const schema = { properties: { id: { type: 'integer' }, at: { type: 'string', format: 'date-time' } } };
const streamOf = (incremental: object) => ({
  name: 'events',
  request,
  schema,
  pagination: { type: 'offset' },
  incremental: { cursor_field: 'at', ...incremental },
});

const ways: [string, object, 'half-open' | 'inclusive' | 'ignored', (events: Event[]) => Event[]][] = [
  ['in ascending order', { order: 'ascending' }, 'half-open', (events) => events],
  ['in no order', {}, 'half-open', (events) => events.toReversed()],
  ['in windows of days', { step_days: 2, start: '2026-01-01' }, 'half-open', (events) => events.toReversed()],
  ['in windows whose limits belong to them', { step_days: 1, start: '2026-01-01' }, 'inclusive', (events) => events],
  ['in ascending windows', { step_days: 3, start: '2026-01-01', order: 'ascending' }, 'inclusive', (events) => events],
  ['by a service that heeds no limit', { step_days: 4, start: '2026-01-01' }, 'ignored', (events) => events],
];

describe('rows that share a cursor are neither lost nor duplicated, wherever a read is interrupted', () => {
  test.each(ways)(
    '%s',
    async (_, incremental, how, order) => {
      const run = fc.record({ newEvents: fc.array(fc.nat(3), { maxLength: 12 }), crashAfter: fc.nat(6) });
      await fc.assert(
        fc.asyncProperty(fc.array(run, { minLength: 1, maxLength: 5 }), async (runs) => {
          const events: Event[] = [];
          heeding(() => events, how, order);
          let clock = EPOCH;
          let state: StreamState | null = null;
          const committed: string[] = [];
          for (const { newEvents, crashAfter } of [...runs, { newEvents: [], crashAfter: 1000 }]) {
            // Steps of zero, half a day, a day and a day and a half: many rows share their time.
            for (const step of newEvents) events.push({ id: events.length, at: iso((clock += (step * DAY) / 2)) });
            const now = new Date(clock + 1);
            const { context } = apiContext(
              { base_url: server.url, streams: [streamOf(incremental)] },
              { now: () => now },
            );
            const stream = await discoverOne(context);
            let pending: string[] = [];
            let batches = 0;
            let crashed = false;
            for await (const batch of httpApiSource.read(
              context,
              requestOf(stream, { sync_mode: 'incremental', state }),
            )) {
              pending.push(...batch.rows.map(([id]) => id ?? ''));
              if (batch.state) {
                committed.push(...pending);
                pending = [];
                state = JSON.parse(JSON.stringify(batch.state)) as StreamState;
              }
              batches += 1;
              crashed = batches > crashAfter;
              if (crashed) break;
            }
            if (!crashed) expect(pending).toEqual([]);
          }
          expect(committed.toSorted((a, b) => Number(a) - Number(b))).toEqual(events.map(({ id }) => String(id)));
        }),
        { numRuns: 25 },
      );
    },
    30_000,
  );
});

const read = (incremental: object, more: object = {}) =>
  readAll({ base_url: server.url, streams: [streamOf(incremental)] }, { sync_mode: 'incremental', ...more });
const limits = () => server.seen.map(({ query }) => [query.from, query.to]);

test("windows begin at midnight, cover every day up to now, and use the service's format", async () => {
  server.on('/events', json([]));
  await read({ step_days: 10, start: '2026-10-25', format: 'date', end_inclusive: true });
  expect(limits()).toEqual([
    ['2026-10-25', '2026-11-03'],
    ['2026-11-04', '2026-11-13'],
    ['2026-11-14', '2026-11-21'],
  ]);
  server.seen.length = 0;
  await read({ step_days: 300, start: '2026-01-01', format: 'unix' });
  expect(limits()).toEqual([
    ['1767225600', '1793145600'],
    ['1793145600', '1795255200'],
  ]);
});

test.each([{ order: 'ascending' }, {}])(
  'rows at the cursor come once, whatever fields are selected (%j)',
  async (order) => {
    const rows = [1, 2, 3].map((id) => ({ id, name: `n${id}`, at: iso(EPOCH + Math.min(id, 2) * DAY) }));
    server.on('/events', ({ query }) => Response.json(query.offset === '0' ? rows : []));
    const properties = { ...schema.properties, name: { type: 'string' } };
    const settings = { base_url: server.url, streams: [{ ...streamOf(order), schema: { properties } }] };
    const stream = await discoverOne(apiContext(settings).context);
    const ids = async (fields: string[], state: StreamState | null) => {
      const wanted = stream.fields.filter(({ path }) => fields.includes(path[0]!));
      const columns = wanted.map((field) => ({ field, masking: 'none' as const }));
      const found = await readAll(settings, { stream, columns, sync_mode: 'incremental', state });
      return { ids: found.rows.map((row) => row[fields.indexOf('id')]), state: found.state };
    };
    const first = await ids(['id', 'at'], null);
    expect(first.ids).toEqual(['1', '2', '3']);
    rows.push({ id: 4, name: 'n4', at: rows[2]!.at });
    const second = await ids(['id', 'name'], first.state);
    expect(second.ids).toEqual(['4']);
    expect((await ids(['id', 'at', 'name'], second.state)).ids).toEqual([]);
    // A field that is not selected has changed: the selected cells still identify the row.
    Object.assign(rows[1]!, { name: 'changed' });
    expect((await ids(['id', 'at'], first.state)).ids).toEqual(['4']);
    // States of earlier versions have no hashes of records.
    const boundary = (first.state!.boundary as string[]).map((entry) => entry.split('.').slice(0, 2).join('.'));
    expect((await ids(['id', 'at'], { ...first.state!, boundary })).ids).toEqual(['4']);
  },
);

test('empty windows are not requested again, except the last', async () => {
  server.on('/events', json([]));
  const incremental = { step_days: 10, start: '2026-01-01' };
  const { state } = await read(incremental);
  expect(state).toMatchObject({ cursor: null, complete: true });
  server.seen.length = 0;
  await read(incremental, { state });
  expect(limits()).toEqual([['2026-11-17T00:00:00Z', '2026-11-21T10:00:00Z']]);
});

test('a lookback window is read again, but not twice after a crash', async () => {
  const events = Array.from({ length: 10 }, (_, id) => ({ id, at: iso(EPOCH + id * DAY) }));
  heeding(
    () => events,
    'half-open',
    (all) => all,
  );
  const incremental = { order: 'ascending', look_back_days: 3 };
  const whole = await read(incremental);
  expect(whole.state).toMatchObject({ cursor: '2026-01-10 00:00:00.000000+00', complete: true });
  const again = await read(incremental, { state: whole.state });
  expect(again.rows.map(([id]) => id)).toEqual(['6', '7', '8']);
  const cutShort = { ...whole.state, complete: false };
  expect((await read(incremental, { state: cutShort })).rows).toEqual([]);
});

test("the run's window limits the read; a cursor set by a user is where it resumes", async () => {
  const events = Array.from({ length: 10 }, (_, id) => ({ id, at: iso(EPOCH + id * DAY) }));
  heeding(
    () => events,
    'ignored',
    (all) => all,
  );
  const windowed = await read({}, { window: { start: '2026-01-03', end: '2026-01-06' } });
  expect(windowed.rows.map(([id]) => id)).toEqual(['2', '3', '4']);
  const set = await read({}, { state: { cursor: '2026-01-08' } });
  expect(set.rows.map(([id]) => id)).toEqual(['7', '8', '9']);
  await expect(read({}, { state: { cursor: 'yesterday' } })).rejects.toMatchObject({ code: 'invalid_cursor' });
});

test('numbers are compared numerically, with all their digits', async () => {
  const rows = ['9007199254740993', '9007199254740992', '99', '9007199254740994'];
  server.on(
    '/events',
    ({ query }) => new Response(query.offset === '0' ? `[${rows.map((id) => `{"id": ${id}}`).join(',')}]` : '[]'),
  );
  const stream = { ...streamOf({ cursor_field: 'id', type: 'number' }), schema: undefined };
  const reading = (state: StreamState | null) =>
    readAll({ base_url: server.url, streams: [stream] }, { sync_mode: 'incremental', state });
  const first = await reading(null);
  expect(first.state?.cursor).toBe('9007199254740994');
  expect((await reading({ cursor: '9007199254740993' })).rows).toEqual([['9007199254740993'], ['9007199254740994']]);
  expect((await reading(first.state)).rows).toEqual([]);
});

test('records out of the declared ascending order end the read', async () => {
  server.on('/events', ({ query }) =>
    Response.json(
      query.offset === '0'
        ? [
            { id: 1, at: iso(EPOCH + 1) },
            { id: 2, at: iso(EPOCH) },
          ]
        : [],
    ),
  );
  await expect(read({ order: 'ascending' })).rejects.toMatchObject({ code: 'not_ascending' });
});

test.each([
  ['2026-01-31 23:59:59.123456+00', 'start', 'iso', false, '2026-01-31T23:59:59.123456Z'],
  ['2026-01-31 23:59:59.100000+00', 'start', 'unix', false, 1769903999],
  ['2026-01-31 23:59:59.100000+00', 'end', 'unix', false, 1769904000],
  ['2026-02-01 00:00:00.000000+00', 'end', 'date', false, '2026-02-01'],
  ['2026-02-01 00:00:00.000000+00', 'end', 'date', true, '2026-01-31'],
  ['2026-02-01 00:00:00.000001+00', 'end', 'date', true, '2026-02-01'],
  ['2026-02-01 00:00:00.000000+00', 'end', 'unix_ms', true, 1769903999999],
] as const)('%s as %s in %s, inclusive: %p', (...row) => {
  const [normal, side, format, end_inclusive, wanted] = row;
  const incremental = {
    cursor_field: 'at',
    type: 'time',
    format,
    order: 'none',
    look_back_days: 0,
    end_inclusive,
  } as const;
  expect(requestValue(normal, side, incremental)).toBe(wanted);
});
