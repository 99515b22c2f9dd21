import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { startHttpServer } from '../support/http-server.ts';
import { airbyteManifestSource } from '../../server/connectors/airbyte-manifest/source.ts';
import { contextFor, discover, manifestOf, read, streamOf } from './manifest-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
interface Row {
  id: number;
  at: string | number | null;
  of?: string;
}
let rows: Row[] = [];
beforeEach(() => {
  server.seen.length = 0;
  rows = [
    { id: 1, at: '2026-01-01T00:00:00Z' },
    { id: 2, at: '2026-01-15T12:00:00Z' },
    { id: 3, at: '2026-02-01T00:00:00Z' },
    { id: 4, at: '2026-02-20T00:00:00Z' },
  ];
});
const option = (field_name: string) => ({ type: 'RequestOption', inject_into: 'request_parameter', field_name });
const properties = { id: { type: 'integer' }, at: { type: 'string', format: 'date-time' } };
const ISO = '%Y-%m-%dT%H:%M:%SZ';
const cursor = (more: object = {}) => ({
  type: 'DatetimeBasedCursor',
  cursor_field: 'at',
  datetime_format: ISO,
  start_datetime: '2026-01-01T00:00:00Z',
  ...more,
});
const limits = { start_time_option: option('from'), end_time_option: option('to') };
const settings = (incremental_sync: object, more: object = {}) => ({
  manifest: manifestOf([streamOf('items', { url: server.url, properties, incremental_sync, ...more })]),
});
/** A service with inclusive limits, like most services. */
const limited = () =>
  server.on('/items', ({ query }) => {
    const [from, to] = [Date.parse(query.from ?? ''), Date.parse(query.to ?? '')];
    return Response.json(
      rows.filter(({ at }) => at === null || (Date.parse(String(at)) >= from && Date.parse(String(at)) <= to)),
    );
  });
const incremental = { sync_mode: 'incremental' as const };
const windows = () => server.seen.map(({ query }) => [query.from, query.to]);

describe('a count as the cursor', () => {
  const counted = (more: object = {}, rest: object = {}) => ({
    manifest: manifestOf([
      streamOf('items', {
        url: server.url,
        properties: { id: { type: 'integer' } },
        incremental_sync: {
          type: 'IncrementingCountCursor',
          cursor_field: 'id',
          start_value_option: option('since'),
          ...more,
        },
        ...rest,
      }),
    ]),
    config: { first: 2 },
  });
  const since = () =>
    server.on('/items', ({ query }) => Response.json(rows.filter(({ id }) => id >= Number(query.since))));

  test('is sent from its start, and then from the highest one', async () => {
    since();
    const { ids, state } = await read(counted({ start_value: '{{ config.first }}' }), incremental);
    expect(ids).toEqual(['2', '3', '4']);
    expect(state).toMatchObject({ cursor: '4', complete: true });
    rows.push({ id: 10, at: null });
    const next = await read(counted(), { ...incremental, state });
    expect([next.ids, next.state?.cursor]).toEqual([['10'], '10']);
    expect(server.seen.map(({ query }) => query.since)).toEqual(['2', '4']);
    const [stream] = await discover(counted());
    expect(stream).toMatchObject({ default_cursor_field: ['id'], supports_date_window: false });
  });

  test('what is not a count is loaded, and does not move it', async () => {
    server.on('/items', () => Response.json([{ id: 7 }, { id: 'x' }]));
    const loose = counted({}, { properties: { id: { type: 'string' } } });
    const { ids, state, warnings } = await read(loose, incremental);
    expect([ids, state?.cursor]).toEqual([['7', 'x'], '7']);
    expect(warnings.join()).toContain('is not a count, such as "x"');
    await expect(read(counted({ start_value: 'first' }))).rejects.toThrow('not a count: "first"');
  });

  test('has no partitions, as with Airbyte', async () => {
    const partition_router = { type: 'ListPartitionRouter', cursor_field: 'of', values: ['a'] };
    await expect(discover(counted({}, { retriever: { partition_router } }))).rejects.toThrow(
      'an IncrementingCountCursor with a partition router is not supported',
    );
  });
});

describe('pagination that restarts', () => {
  const page = (query: Record<string, string>) => {
    const found = rows.filter(({ at }) => String(at) >= (query.from ?? ''));
    return found.slice(Number(query.page ?? 0) * 2, Number(query.page ?? 0) * 2 + 2);
  };
  const reset = (more: object, filter: object[] = []) =>
    settings(cursor(limits), {
      requester: { error_handler: { type: 'DefaultErrorHandler', response_filters: filter } },
      retriever: {
        paginator: {
          type: 'DefaultPaginator',
          pagination_strategy: { type: 'PageIncrement', page_size: 2 },
          page_token_option: option('page'),
        },
        ...more,
      },
    });
  const splitting = (number_of_records: number) => ({
    type: 'PaginationReset',
    action: 'SPLIT_USING_CURSOR',
    limits: { type: 'PaginationResetLimits', number_of_records },
  });

  // Airbyte returns the record at the limit twice in a full refresh, too.
  test('start at the cursor after so many records', async () => {
    server.on('/items', ({ query }) => Response.json(page(query)));
    const { ids } = await read(reset({ pagination_reset: splitting(2) }));
    expect(ids).toEqual(['1', '2', '2', '3', '3', '4', '4']);
    expect(server.seen.map(({ query }) => [query.from?.slice(0, 10), query.page])).toEqual([
      ['2026-01-01', undefined],
      ['2026-01-15', undefined],
      ['2026-02-01', undefined],
      ['2026-02-20', undefined],
    ]);
  });

  test('fail where they would begin at the same place forever', async () => {
    server.on('/items', ({ query }) => Response.json(page(query)));
    rows = rows.map((row) => ({ ...row, at: '2026-01-01T00:00:00Z' }));
    await expect(read(reset({ pagination_reset: splitting(2) }))).rejects.toThrow(
      'pagination restarts where it started before',
    );
  });

  test('once more where a response asks for it', async () => {
    const filter = { type: 'HttpResponseFilter', action: 'RESET_PAGINATION', http_codes: [410] };
    let failures = 1;
    server.on('/items', ({ query }) => {
      if (query.page === '1' && failures-- > 0) return new Response('scroll expired', { status: 410 });
      return Response.json(page(query));
    });
    expect((await read(reset({}, [filter]))).ids).toEqual(['1', '2', '1', '2', '3', '4']);
    failures = 2;
    await expect(read(reset({}, [filter]))).rejects.toThrow('pagination restarts where it started before');
  });
});

describe('a read in steps', () => {
  const stepped = settings(
    cursor({
      ...limits,
      step: 'P1M',
      cursor_granularity: 'PT1S',
      end_datetime: { type: 'MinMaxDatetime', datetime: '2026-03-01', datetime_format: '%Y-%m-%d' },
    }),
  );

  test('requests adjacent windows and returns a state after each', async () => {
    limited();
    const { ids, state, batches } = await read(stepped, incremental);
    expect(ids).toEqual(['1', '2', '3', '4']);
    expect(windows()).toEqual([
      ['2026-01-01T00:00:00Z', '2026-01-31T23:59:59Z'],
      ['2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z'],
    ]);
    expect(state).toMatchObject({ cursor: '2026-02-20 00:00:00.000000+00', complete: true });
    expect(batches.filter((batch) => batch.state)[0]?.state).toMatchObject({
      read_until: '2026-02-01 00:00:00.000000+00',
      complete: false,
    });
  });

  test('resumes from every state with exactly the remaining rows', async () => {
    limited();
    const { batches } = await read(stepped, incremental);
    for (const [at, { state }] of batches.entries()) {
      if (!state) continue;
      const before = batches.slice(0, at + 1).flatMap((batch) => batch.rows.map((row) => row[0]));
      const rest = await read(stepped, { ...incremental, state: JSON.parse(JSON.stringify(state)) });
      expect([...before, ...rest.ids]).toEqual(['1', '2', '3', '4']);
    }
  });

  test('neither loses nor duplicates rows at the last cursor', async () => {
    limited();
    const { state } = await read(stepped, incremental);
    rows.push(
      { id: 5, at: '2026-02-20T00:00:00Z' },
      { id: 6, at: '2026-02-21T00:00:00Z' },
      { id: 7, at: '2026-01-02T00:00:00Z' },
    );
    server.seen.length = 0;
    const second = await read(stepped, { ...incremental, state });
    expect(second.ids).toEqual(['5', '6']);
    expect(windows()[0]?.[0]).toBe('2026-02-20T00:00:00Z');
    expect((await read(stepped, { ...incremental, state: second.state })).ids).toEqual([]);
  });

  test('can be limited to a window, excluding its end', async () => {
    limited();
    const window = { start: '2026-01-10', end: '2026-02-01' };
    expect((await read(stepped, { window })).ids).toEqual(['2']);
    expect(windows()).toEqual([['2026-01-10T00:00:00Z', '2026-01-31T23:59:59Z']]);
    expect((await discover(stepped))[0]).toMatchObject({
      supports_date_window: true,
      is_resumable: true,
      default_cursor_field: ['at'],
    });
  });
});

describe('a cursor', () => {
  test('applies the lookback window after a complete read', async () => {
    limited();
    const back = settings(cursor({ ...limits, lookback_window: "P{{ config.get('days', 10) }}D" }));
    const { state } = await read(back, incremental);
    server.seen.length = 0;
    rows.push({ id: 8, at: '2026-02-15T00:00:00Z' });
    expect((await read(back, { ...incremental, state })).ids).toEqual(['8']);
    expect(windows()[0]?.[0]).toBe('2026-02-10T00:00:00Z');
  });

  test.each([
    ['%s', (at: string) => Date.parse(at) / 1000, '1771545600'],
    ['%ms', (at: string) => Date.parse(at), '1771545600000'],
    ['%s_as_float', (at: string) => Date.parse(at) / 1000, '1771545600.0'],
    [
      '%d/%m/%Y %H:%M',
      (at: string) => `${at.slice(8, 10)}/${at.slice(5, 7)}/${at.slice(0, 4)} ${at.slice(11, 16)}`,
      '20/02/2026 00:00',
    ],
  ])('is formatted as %s', async (datetime_format, form, asked) => {
    rows = rows.map((row) => ({ ...row, at: form(String(row.at)) }));
    server.on('/items', () => Response.json(rows));
    const formed = settings(
      cursor({
        datetime_format,
        start_datetime: { type: 'MinMaxDatetime', datetime: '2026-01-01', datetime_format: '%Y-%m-%d' },
        is_client_side_incremental: true,
        ...limits,
      }),
      {
        properties: { id: { type: 'integer' }, at: { type: ['string', 'number'] } },
      },
    );
    const { ids, state } = await read(formed, incremental);
    expect(ids).toEqual(['1', '2', '3', '4']);
    expect(state?.cursor).toBe('2026-02-20 00:00:00.000000+00');
    server.seen.length = 0;
    expect((await read(formed, { ...incremental, state })).ids).toEqual([]);
    expect(windows()[0]?.[0]).toBe(asked);
  });

  // As with Airbyte, the filter of the service decides, unless the manifest says that there is none.
  test.each([
    [true, ['9']],
    [false, ['1', '2', '3', '9']],
  ])(
    'that is not sent takes one request, and old rows are dropped if the manifest says so: %s',
    async (drops, again) => {
      server.on('/items', () => Response.json(rows));
      const untold = settings(cursor({ step: 'P1D', cursor_granularity: 'PT1S', is_client_side_incremental: drops }));
      const { state } = await read(untold, incremental);
      expect(server.seen).toHaveLength(1);
      rows.push({ id: 9, at: '2026-02-20T00:00:00Z' });
      expect((await read(untold, { ...incremental, state })).ids).toEqual(again);
    },
  );

  test('in the future does not hide earlier rows', async () => {
    limited();
    const open = settings(cursor(limits));
    server.on('/items', ({ query }) =>
      Response.json(rows.filter(({ at }) => Date.parse(String(at)) >= Date.parse(query.from ?? ''))),
    );
    rows.push({ id: 10, at: '2030-01-01T00:00:00Z' });
    const { state } = await read(open, incremental);
    rows.push({ id: 11, at: '2026-12-01T00:00:00Z' });
    expect((await read(open, { ...incremental, state })).ids).toEqual(['11']);
  });

  test('that is not a time does not move, and neither does one that is missing', async () => {
    rows = [...rows, { id: 5, at: null }, { id: 6, at: 'yesterday-ish' }];
    server.on('/items', () => Response.json(rows));
    const open = settings(cursor(), { properties: { id: { type: 'integer' }, at: { type: 'string' } } });
    const { ids, state, warnings } = await read(open, incremental);
    expect(ids).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(state?.cursor).toBe('2026-02-20 00:00:00.000000+00');
    expect(warnings.join()).toContain('the at of 1 records is not a time, such as "yesterday-ish"');
  });

  test('of a record in the future is requested where the manifest has a later end', async () => {
    rows.push({ id: 5, at: '2026-12-24T00:00:00Z' });
    limited();
    const later = settings(cursor({ ...limits, end_datetime: '2027-01-01T00:00:00Z' }));
    const { ids, state } = await read(later, incremental);
    expect([ids.at(-1), windows()[0]?.[1]]).toEqual(['5', '2027-01-01T00:00:00Z']);
    rows.push({ id: 6, at: '2026-12-01T00:00:00Z' });
    expect((await read(later, { ...incremental, state })).ids).toContain('6');
  });

  test('with more rows at its last value than a state holds says so', async () => {
    rows = Array.from({ length: 20_001 }, (_, id) => ({ id, at: '2026-02-01T00:00:00Z' }));
    server.on('/items', () => Response.json(rows));
    const many = settings(cursor());
    const { state, warnings } = await read(many, incremental);
    expect(JSON.stringify(state).length).toBeLessThan(500);
    expect(warnings.join()).toContain('more than 20000 rows have the last value of the cursor');
    const again = await read(many, { ...incremental, state });
    expect([again.ids.length, again.state?.boundary]).toEqual([20_001, []]);
  });

  test('of a feed stops paging where the last read ended', async () => {
    let asked = 0;
    server.on('/items', ({ query }) => {
      asked += 1;
      const page = Number(query.page ?? 0);
      return Response.json(rows.toReversed().slice(page, page + 1));
    });
    const paginator = {
      type: 'DefaultPaginator',
      pagination_strategy: { type: 'PageIncrement' },
      page_token_option: option('page'),
    };
    const feed = settings(cursor({ is_data_feed: true }), { retriever: { paginator } });
    const { ids, state } = await read(feed, incremental);
    expect(ids).toEqual(['4', '3', '2', '1']);
    asked = 0;
    rows.push({ id: 5, at: '2026-03-01T00:00:00Z' });
    expect((await read(feed, { ...incremental, state })).ids).toEqual(['5']);
    expect(asked).toBeLessThan(5);
  });

  // The last record of a page decides, also before there is a state.
  test.each([
    [
      'an old record within a page',
      [
        [9, 1, 8],
        [7, 6],
      ],
      ['9', '8', '7', '6'],
      3,
    ],
    [
      'records before the start of the first read',
      [
        [9, 8],
        [2, 1],
        [1, 1],
      ],
      ['9', '8'],
      2,
    ],
  ])('of a feed goes on over %s', async (_, pages, expected, requests) => {
    server.on('/items', ({ query }) => {
      const page = pages[Number(query.page ?? 0)] ?? [];
      return Response.json(page.map((day) => ({ id: day, at: `2026-01-0${day}T00:00:00Z` })));
    });
    const paginator = {
      type: 'DefaultPaginator',
      pagination_strategy: { type: 'PageIncrement' },
      page_token_option: option('page'),
    };
    const start_datetime = '2026-01-05T00:00:00Z';
    const feed = settings(cursor({ is_data_feed: true, start_datetime }), { retriever: { paginator } });
    const context = contextFor(feed).context;
    const [stream] = await airbyteManifestSource.discover(context);
    server.seen.length = 0;
    expect((await read(feed, { ...incremental, stream: stream as never })).ids).toEqual(expected);
    expect(server.seen).toHaveLength(requests);
  });
});

describe('partitions', () => {
  const parents = { type: 'ListPartitionRouter', cursor_field: 'of', values: ['a', 'b'], request_option: option('of') };
  const limitedByPart = () =>
    server.on('/items', ({ query }) =>
      Response.json(
        rows.filter(({ at, of }) => of === query.of && Date.parse(String(at)) >= Date.parse(query.from ?? '')),
      ),
    );

  test('have separate cursors', async () => {
    rows = [
      { id: 1, at: '2026-01-01T00:00:00Z', of: 'a' },
      { id: 2, at: '2026-03-01T00:00:00Z', of: 'b' },
    ];
    limitedByPart();
    const parted = settings(cursor(limits), { retriever: { partition_router: parents } });
    const { ids, state } = await read(parted, incremental);
    expect(ids).toEqual(['1', '2']);
    expect(Object.keys(state?.partitions as object)).toEqual(['{"of":"a"}', '{"of":"b"}']);
    rows.push({ id: 3, at: '2026-02-01T00:00:00Z', of: 'a' }, { id: 4, at: '2026-02-01T00:00:00Z', of: 'b' });
    server.seen.length = 0;
    expect((await read(parted, { ...incremental, state })).ids).toEqual(['3']);
    // Partitions are asked for at the same time.
    expect(server.seen.map(({ query }) => query.from).toSorted()).toEqual([
      '2026-01-01T00:00:00Z',
      '2026-03-01T00:00:00Z',
    ]);
  });

  test('that are named twice are read once', async () => {
    rows = [{ id: 1, at: '2026-01-01T00:00:00Z', of: 'a' }];
    limitedByPart();
    const twice = { ...parents, values: ['a', 'b', 'a'] };
    expect((await read(settings(cursor(limits), { retriever: { partition_router: twice } }))).ids).toEqual(['1']);
    // Both are asked for at the same time.
    expect(server.seen.map(({ query }) => query.of).toSorted()).toEqual(['a', 'b']);
  });

  test('share one if the manifest says so', async () => {
    rows = [
      { id: 1, at: '2026-01-05T00:00:00Z', of: 'a' },
      { id: 2, at: '2026-03-01T00:00:00Z', of: 'b' },
    ];
    limitedByPart();
    const shared = settings(cursor({ ...limits, global_substream_cursor: true }), {
      retriever: { partition_router: parents },
    });
    const { state } = await read(shared, incremental);
    expect(state).toMatchObject({ shared: true, cursor: '2026-03-01 00:00:00.000000+00' });
    server.seen.length = 0;
    await read(shared, { ...incremental, state });
    expect(server.seen.map(({ query }) => query.from)).toEqual(['2026-03-01T00:00:00Z', '2026-03-01T00:00:00Z']);
  });

  test('of an incremental parent: only its changed records are read', async () => {
    let orders: Row[] = [
      { id: 1, at: '2026-01-01T00:00:00Z' },
      { id: 2, at: '2026-01-02T00:00:00Z' },
    ];
    server.on('/orders', () => Response.json(orders));
    server.on('/lines/*', ({ path }) =>
      Response.json([{ id: Number(path.split('/').at(-1)), at: '2026-01-03T00:00:00Z' }]),
    );
    const order = streamOf('orders', {
      url: server.url,
      properties,
      incremental_sync: cursor({ is_client_side_incremental: true }),
    });
    const router = {
      type: 'SubstreamPartitionRouter',
      parent_stream_configs: [
        {
          type: 'ParentStreamConfig',
          stream: order,
          parent_key: 'id',
          partition_field: 'order',
          incremental_dependency: true,
        },
      ],
    };
    const lines = streamOf('lines', {
      url: server.url,
      path: '/lines/{{ stream_partition.order }}',
      properties,
      incremental_sync: cursor(),
      retriever: { partition_router: router },
    });
    const { ids, state } = await read({ manifest: manifestOf([lines]) }, incremental);
    expect(ids).toEqual(['1', '2']);
    orders = [...orders, { id: 3, at: '2026-01-04T00:00:00Z' }];
    server.seen.length = 0;
    expect((await read({ manifest: manifestOf([lines]) }, { ...incremental, state })).ids).toEqual(['3']);
    expect(server.seen.map(({ path }) => path)).not.toContain('/lines/1');
  });
});
