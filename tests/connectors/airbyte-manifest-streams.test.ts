import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { gzipSync } from 'node:zlib';
import { inTurn, json, startHttpServer } from '../support/http-server.ts';
import { check, discover, manifestOf, read, streamOf } from './manifest-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const url = server.url;
const option = (field_name: string) => ({ type: 'RequestOption', inject_into: 'request_parameter', field_name });
const text = { type: ['null', 'string'] };
const id = { id: { type: 'integer' } };

describe('records', () => {
  const transformed = async (record: object, transformations: object[], names: string[], selector = {}) => {
    server.on('/items', json({ data: [record] }));
    const properties = Object.fromEntries(names.map((name) => [name, {}]));
    const extractor = { type: 'DpathExtractor', field_path: ['data'] };
    const stream = streamOf('items', { url, properties, transformations, selector: { extractor, ...selector } });
    return (await read({ manifest: manifestOf([stream]) })).rows;
  };

  test('gain and lose fields', async () => {
    const add = (path: string[], value: string, more = {}) => ({
      type: 'AddFields',
      fields: [{ path, value, ...more }],
    });
    const rows = await transformed(
      { id: 5, code: '007', nested: { keep: 1, drop: 2 }, list: [{ x: 1, y: 2 }], empty: '' },
      [
        add(['double'], '{{ record.id * 2 }}'),
        add(['text'], '{{ record.id }}', { value_type: 'string' }),
        add(['code'], '{{ record.code }}'),
        add(['nested', 'more'], "{{ record['code'] | hash('sha256') }}"),
        { ...add(['never'], '1'), condition: '{{ record.id > 9 }}' },
        {
          type: 'RemoveFields',
          field_pointers: [
            ['nested', 'drop'],
            ['list', '*', 'y'],
          ],
        },
        { type: 'RemoveFields', field_pointers: [['**']], condition: "{{ property == '' }}" },
      ],
      ['id', 'double', 'text', 'code', 'nested', 'never', 'list', 'empty'],
    );
    const hash = new Bun.CryptoHasher('sha256').update('007').digest('hex');
    expect(rows).toEqual([['5', '10', '"5"', '"007"', `{"keep":1,"more":"${hash}"}`, null, '[{"x":1}]', null]]);
  });

  test.each([
    [[{ type: 'KeysToLower' }], { AbC: 1 }, { abc: '1' }],
    [
      [{ type: 'KeysToSnakeCase' }],
      { firstName: 1, 'HTTPCode 2': { innerKey: 1 } },
      { first_name: '1', http_code_2: '{"inner_key":1}' },
    ],
    [[{ type: 'KeysReplace', old: ' ', new: '_' }], { 'a b': 1 }, { a_b: '1' }],
    [[{ type: 'FlattenFields' }], { a: { b: 1, c: [2, 3] }, b: 4 }, { b: '4', 'a.b': '1', 'c.0': '2' }],
    [
      [{ type: 'DpathFlattenFields', field_path: ['a'], delete_origin_value: true }],
      { a: { x: 1 }, y: 2 },
      { x: '1', y: '2', a: null },
    ],
    [
      [{ type: 'DpathFlattenFields', field_path: ['a'], replace_record: true }],
      { a: { x: 1 }, y: 2 },
      { x: '1', y: null },
    ],
  ])('%j', async (transformations, record, expected) => {
    const names = Object.keys(expected);
    expect(await transformed(record, transformations, names)).toEqual([Object.values(expected)] as never);
  });

  test('are selected by a path with wildcards, and filtered before or after transformations', async () => {
    server.on('/items', json({ groups: [{ items: [{ id: 1 }, { id: 2 }] }, { items: [{ id: 3 }] }] }));
    const extractor = { type: 'DpathExtractor', field_path: ['groups', '*', 'items'] };
    const condition = { record_filter: { type: 'RecordFilter', condition: '{{ record.id > 1 }}' } };
    const transformations = [{ type: 'AddFields', fields: [{ path: ['id'], value: '{{ record.id + 1 }}' }] }];
    const ids = async (selector: object) =>
      (
        await read({
          manifest: manifestOf([
            streamOf('items', {
              url,
              properties: id,
              transformations,
              selector: { extractor, ...condition, ...selector },
            }),
          ]),
        })
      ).ids;
    expect(await ids({})).toEqual(['3', '4']);
    expect(await ids({ transform_before_filtering: true })).toEqual(['2', '3', '4']);
  });

  test('have the types of the schema, or else of the first records', async () => {
    const body =
      '[{"id":1234567890123456789,"at":"2026-01-31T10:00:00+02:00","day":"2026-01-31","n":"1.50","tags":["a"],"o":{"b":1}}]';
    server.on('/items', () => new Response(body));
    const properties = {
      id: { type: 'integer' },
      at: { type: ['null', 'string'], format: 'date-time' },
      day: { type: 'string', format: 'date' },
      n: { type: ['number', 'null'] },
      tags: { type: 'array' },
      o: { type: 'object' },
    };
    const declared = { manifest: manifestOf([streamOf('items', { url, properties, primary_key: ['id'] })]) };
    expect((await read(declared)).rows).toEqual([
      ['1234567890123456789', '2026-01-31 08:00:00.000000+00', '2026-01-31', '1.50', '["a"]', '{"b":1}'],
    ]);
    const [found] = await discover({ manifest: manifestOf([streamOf('items', { url })]) });
    expect(found?.fields.map(({ path, type }) => [path[0], type])).toEqual([
      ['id', 'integer'],
      ['at', 'string'],
      ['day', 'string'],
      ['n', 'string'],
      ['tags', 'array'],
      ['o', 'json'],
    ] as never);
  });

  test('with invalid values fail the run, or are NULL with a warning if configured', async () => {
    server.on('/items', json([{ id: 'no number' }, { id: 2 }]));
    const manifest = manifestOf([streamOf('items', { url, properties: id })]);
    await expect(read({ manifest })).rejects.toMatchObject({ code: 'value_does_not_fit' });
    const { ids, warnings } = await read({ manifest, unfitting_values: 'null' });
    expect(ids).toEqual([null, '2']);
    expect(warnings.join()).toContain('1 values of "id"');
    server.on('/items', json([{ at: 1_771_545_600 }]));
    const timed = manifestOf([streamOf('items', { url, properties: { at: { type: 'string', format: 'date-time' } } })]);
    await expect(read({ manifest: timed })).rejects.toMatchObject({ code: 'value_does_not_fit' });
  });
});

test.each([
  ['{{ 1 <= record.id <= 9 }}', ['5']],
  ['{{ 1 <= record.id <= 4 }}', []],
  ['{{ record.name is none or record.name | length > 3 }}', ['5']],
  ["{{ record.tags | selectattr('k', 'equalto', 'a') | map(attribute='v') | list == [1] }}", ['5']],
  ['{% if record.id in [5, 6] %}true{% else %}false{% endif %}', ['5']],
  ["{{ record.absent.deeper == 'x' }}", []],
  ["{{ record.at | default('2026') >= '2026' and not record.tags[1:] }}", ['5']],
])('the condition %s', async (condition, expected) => {
  server.on('/items', json([{ id: 5, name: 'Zoë ☃', tags: [{ k: 'a', v: 1 }] }]));
  const selector = { record_filter: { type: 'RecordFilter', condition } };
  expect((await read({ manifest: manifestOf([streamOf('items', { url, properties: id, selector })]) })).ids).toEqual(
    expected,
  );
});

describe('partitions', () => {
  test('from lists: all combinations, with their values in request and record', async () => {
    server.on('/items', ({ query }) => Response.json([{ id: 1, of: `${query.a}${query.b}` }]));
    const list = (cursor_field: string, values: unknown) => ({
      type: 'ListPartitionRouter',
      cursor_field,
      values,
      request_option: option(cursor_field),
    });
    const stream = streamOf('items', {
      url,
      properties: { of: text, part: text },
      retriever: { partition_router: [list('a', ['x', 'y']), list('b', "{{ config['letters'] }}")] },
      transformations: [
        { type: 'AddFields', fields: [{ path: ['part'], value: '{{ stream_partition.a ~ stream_slice.b }}' }] },
      ],
    });
    const { rows } = await read({ manifest: manifestOf([stream]), config: { letters: ['p', 'q'] } });
    expect(rows).toEqual([
      ['xp', 'xp'],
      ['xq', 'xq'],
      ['yp', 'yp'],
      ['yq', 'yq'],
    ]);
  });

  test('of several routers have the field of the first one', async () => {
    server.on('/items/*', ({ path }) => Response.json([{ id: path.split('/').at(-1) }]));
    const router = (...values: string[]) => ({ type: 'ListPartitionRouter', cursor_field: 'of', values });
    const stream = streamOf('items', {
      url,
      path: '/items/{{ stream_partition.of }}',
      properties: { id: text },
      retriever: { partition_router: [router('a', 'b'), router('c')] },
    });
    expect((await read({ manifest: manifestOf([stream]) })).ids).toEqual(['a', 'b']);
  });

  test('of several routers are combined, and the parents of each are requested once', async () => {
    server.on('/orgs', json([{ id: 'o1' }, { id: 'o2' }]));
    server.on('/items/*', ({ path }) => Response.json([{ id: path.split('/').at(-1) }]));
    const router = {
      type: 'SubstreamPartitionRouter',
      parent_stream_configs: [
        {
          type: 'ParentStreamConfig',
          stream: streamOf('orgs', { url, properties: { id: text } }),
          parent_key: 'id',
          partition_field: 'org',
        },
      ],
    };
    const stream = streamOf('items', {
      url,
      path: '/items/{{ stream_partition.of }}-{{ stream_partition.org }}',
      properties: { id: text },
      retriever: {
        partition_router: [{ type: 'ListPartitionRouter', cursor_field: 'of', values: ['a', 'b'] }, router],
      },
    });
    server.seen.length = 0;
    expect((await read({ manifest: manifestOf([stream]) })).ids).toEqual(['a-o1', 'a-o2', 'b-o1', 'b-o2']);
    expect(server.seen.filter(({ path }) => path === '/orgs')).toHaveLength(1);
  });

  test('from parents and grandparents, with additional fields', async () => {
    server.on('/orgs', json([{ id: 'o1', name: 'One' }, { id: 'o2', name: 'Two' }, { name: 'no id' }]));
    server.on('/orgs/o1/teams', json([{ key: { id: 'a' } }, { key: { id: 'b' } }]));
    server.on('/orgs/o2/teams', json([{ key: { id: 'c' } }]));
    for (const team of ['a', 'b', 'c'])
      server.on(`/teams/${team}`, ({ query }) => Response.json([{ id: `${team}-${query.org}-${query.name}` }]));
    const parent = (stream: object | string, parent_key: string, partition_field: string, more = {}) => ({
      partition_router: {
        type: 'SubstreamPartitionRouter',
        parent_stream_configs: [{ type: 'ParentStreamConfig', stream, parent_key, partition_field, ...more }],
      },
    });
    const orgs = streamOf('orgs', { url, properties: { id: text } });
    const teams = streamOf('teams', {
      url,
      path: '/orgs/{{ stream_partition.org }}/teams',
      properties: { key: {} },
      retriever: parent({ $ref: '#/definitions/orgs' }, 'id', 'org', { extra_fields: [['name']] }),
      transformations: [
        { type: 'AddFields', fields: [{ path: ['org_name'], value: "{{ stream_partition.extra_fields['name'] }}" }] },
      ],
    });
    const members = streamOf('members', {
      url,
      path: "/teams/{{ stream_slice['team'] }}",
      properties: { id: text },
      requester: {
        request_parameters: {
          org: '{{ stream_partition.parent_slice.org }}',
          name: "{{ stream_partition.extra_fields['org_name'] }}",
        },
      },
      retriever: parent('#/definitions/teams', 'key/id', 'team', { extra_fields: [['org_name']] }),
    });
    const manifest = manifestOf([members], { definitions: { orgs, teams } });
    expect((await read({ manifest })).ids).toEqual(['a-o1-One', 'b-o1-One', 'c-o2-Two']);
  });
});

describe('a manifest', () => {
  test('may repeat a name, of which the last value counts, and merge mappings', async () => {
    server.on('/items', json([{ id: 1 }]));
    const stream = JSON.stringify(streamOf('items', { url, path: '/x', properties: id }));
    const manifest = `base: &base {path: /nowhere}\n${'version: 1.0.0\n'.repeat(2)}type: DeclarativeSource\ncheck: {type: CheckStream, stream_names: [items]}\nstreams: [${stream.replace('"path":"/x"', '"<<": {"path": "/nowhere"}, "path": "/a", "path":"/items"').replaceAll('":', '": ')}]`;
    expect((await read({ manifest })).ids).toEqual(['1']);
  });

  test('may name the template itself, and the state', async () => {
    server.on('/items/*', ({ path }) => Response.json([{ id: 1, at: path.split('/').at(-1) }]));
    const stream = streamOf('items', {
      url,
      path: "/items/{{ self.name }}{{ stream_state['at'] if stream_state else config['start'] }}",
      properties: { ...id, at: { type: 'string', format: 'date' } },
      incremental_sync: {
        type: 'DatetimeBasedCursor',
        cursor_field: 'at',
        datetime_format: '%Y-%m-%d',
        start_datetime: '2026-01-01',
      },
    });
    const settings = { manifest: manifestOf([stream]), config: { start: '2026-02-01' } };
    const { state } = await read(settings, { sync_mode: 'incremental' });
    server.seen.length = 0;
    await read(settings, { sync_mode: 'incremental', state: { ...state, cursor: '2026-02-03' } });
    expect(server.seen.at(-1)?.path).toBe('/items/2026-02-03');
  });
});

test('children begin with the page that the record of their parent has', async () => {
  const page = (ids: number[]) => ({ data: ids.map((one) => ({ id: one })), has_more: ids.length > 1 });
  server.on('/invoices', json([{ id: 'a', lines: page([1, 2]) }, { id: 'b', lines: page([4]) }, { id: 'c' }]));
  server.on('/lines/*', ({ query }) => Response.json(page([Number(query.after) + 1])));
  const lines = streamOf('lines', {
    url,
    path: '/lines/{{ stream_partition.of }}',
    properties: id,
    selector: { extractor: { type: 'DpathExtractor', field_path: ['data'] } },
    retriever: {
      paginator: {
        type: 'DefaultPaginator',
        pagination_strategy: {
          type: 'CursorPagination',
          cursor_value: '{{ last_record.id }}',
          stop_condition: '{{ not response.has_more }}',
        },
        page_token_option: option('after'),
      },
      partition_router: {
        type: 'SubstreamPartitionRouter',
        parent_stream_configs: [
          {
            type: 'ParentStreamConfig',
            stream: streamOf('invoices', { url }),
            parent_key: 'id',
            partition_field: 'of',
            lazy_read_pointer: ['lines'],
          },
        ],
      },
    },
  });
  expect((await read({ manifest: manifestOf([lines]) })).ids).toEqual(['1', '2', '3', '4']);
  expect(server.seen.map(({ path }) => path)).toEqual(['/invoices', '/lines/a']);
});

test('partitions are grouped into one request', async () => {
  server.on('/items', json([{ id: 1 }]));
  const partition_router = {
    type: 'GroupingPartitionRouter',
    group_size: 2,
    underlying_partition_router: { type: 'ListPartitionRouter', cursor_field: 'board', values: ['a', 'b', 'a', 'c'] },
  };
  const requester = { request_parameters: { boards: "{{ stream_partition.board | join('-') }}" } };
  await read({
    manifest: manifestOf([streamOf('items', { url, properties: id, requester, retriever: { partition_router } })]),
  });
  expect(server.seen.map(({ query }) => query.boards)).toEqual(['a-b', 'c']);
});

describe('the properties of a request', () => {
  const people: Record<string, object>[] = [
    { id: 'x', a: 1, b: 2, c: { d: 3 } as never },
    { id: 'y', a: 4, b: 5, c: { d: 6 } as never },
  ] as never;
  const properties = { id: { type: 'string' }, a: { type: 'integer' }, b: { type: 'integer' }, c: { type: 'object' } };
  const serve = () =>
    server.on('/people', ({ query }) => {
      const names = ['id', ...(query.fields ?? '').split(',')];
      const page = Number(query.page ?? 0);
      return Response.json(
        people.slice(page, page + 1).map((one) => Object.fromEntries(names.map((name) => [name, one[name]]))),
      );
    });
  const paginator = {
    type: 'DefaultPaginator',
    pagination_strategy: { type: 'PageIncrement', page_size: 1 },
    page_token_option: option('page'),
  };
  const chunked = (limit: number, property_limit_type = 'property_count') => ({
    type: 'QueryProperties',
    property_list: ['a', 'b', 'c'],
    property_chunking: {
      type: 'PropertyChunking',
      property_limit_type,
      property_limit: limit,
      record_merge_strategy: { type: 'GroupByKeyMergeStrategy', key: 'id' },
    },
  });
  const listed = {
    type: 'PropertiesFromEndpoint',
    property_field_path: ['name'],
    retriever: (streamOf('fields', { url }) as { retriever: object }).retriever,
  };
  const asked = { request_parameters: { fields: "{{ stream_slice.extra_fields['query_properties'] | join(',') }}" } };

  test.each([
    ['in place of a parameter, by count', { request_parameters: { fields: chunked(2) } }, ['a,b', 'c']],
    ['in a template, by characters', { ...asked, query_properties: chunked(9, 'characters') }, ['a,b', 'c']],
    ['of an endpoint, at once', { ...asked, fetch_properties_from_endpoint: listed }, ['a,b,c']],
  ])('are sent %s, and the records put together', async (_, requester, chunks) => {
    serve();
    server.on('/fields', json([{ name: 'a' }, { name: 'b' }, { name: 'c' }]));
    const { rows } = await read({
      manifest: manifestOf([streamOf('people', { url, properties, requester, retriever: { paginator } })]),
    });
    expect(rows).toEqual([
      ['x', '1', '2', '{"d":3}'],
      ['y', '4', '5', '{"d":6}'],
    ]);
    const sent = server.seen.filter(({ path }) => path === '/people').map(({ query }) => query.fields);
    expect(sent).toEqual([...chunks, ...chunks, ...chunks]);
    expect(server.seen.length - sent.length).toBe('fetch_properties_from_endpoint' in requester ? 1 : 0);
  });

  test('are those of the selected columns, under the names of the service', async () => {
    serve();
    const transformations = [{ type: 'KeysReplace', old: 'my_', new: '' }];
    const query_properties = {
      ...chunked(1),
      property_selector: { type: 'JsonSchemaPropertySelector', transformations },
    };
    const renamed = { id: properties.id, my_a: { type: 'integer' }, my_b: { type: 'integer' } };
    const manifest = manifestOf([
      streamOf('people', { url, properties: renamed, requester: { ...asked, query_properties }, primary_key: 'id' }),
    ]);
    const [stream] = await discover({ manifest });
    const field = stream?.fields.find(({ path }) => path[0] === 'my_b');
    if (!stream || !field) throw new Error('no field');
    await read({ manifest }, { stream, columns: [{ field, name: 'my_b' }] } as never);
    expect(server.seen.map(({ query }) => query.fields)).toEqual(['b']);
  });
});

describe('a job of the service', () => {
  const files = startHttpServer();
  afterAll(() => files.close());
  const requester = (path: string, more: object = {}) => ({ type: 'HttpRequester', url_base: url, path, ...more });
  const at = (...field_path: string[]) => ({ type: 'DpathExtractor', field_path });
  const job = (more: object = {}) => ({
    type: 'DeclarativeStream',
    name: 'report',
    schema_loader: { type: 'InlineSchemaLoader', schema: { type: 'object', properties: id } },
    retriever: {
      type: 'AsyncRetriever',
      status_mapping: {
        running: ['PENDING'],
        completed: ['DONE'],
        failed: ['BAD'],
        timeout: ['LATE'],
        skipped: ['NONE'],
      },
      status_extractor: at('status'),
      download_target_extractor: at('urls'),
      record_selector: { type: 'RecordSelector', extractor: at() },
      creation_requester: requester('/jobs', {
        http_method: 'POST',
        request_headers: { 'X-Part': '{{ stream_partition.part }}' },
      }),
      polling_requester: requester("/jobs/{{ creation_response['id'] }}", {
        request_headers: {
          'X-Again': "{{ stream_slice.extra_fields['creation_response'].request.headers['X-Part'] }}",
        },
      }),
      delete_requester: requester('/jobs/{{ creation_response.id }}', { http_method: 'DELETE' }),
      abort_requester: requester('/abort', { http_method: 'POST' }),
      download_requester: { type: 'HttpRequester', url_base: '{{ download_target }}' },
      download_decoder: { type: 'GzipDecoder', decoder: { type: 'CsvDecoder' } },
      partition_router: { type: 'ListPartitionRouter', cursor_field: 'part', values: ['p'] },
      ...more,
    },
  });
  const serve = (...statuses: string[]) => {
    server.on('/jobs', json({ id: 'j1' }));
    server.on('/abort', json({}));
    server.on(
      '/jobs/*',
      inTurn(...statuses.map((status) => json({ status, urls: [`${files.url}/1`, `${files.url}/2`] })), json({})),
    );
    files.on('/*', ({ path }) => new Response(gzipSync(`id\n${path.slice(1)}\n`)));
  };

  test('is created, polled, downloaded from any host, and deleted', async () => {
    serve('PENDING', 'DONE');
    expect((await read({ manifest: manifestOf([job()]) })).ids).toEqual(['1', '2']);
    expect(server.seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /jobs',
      'GET /jobs/j1',
      'GET /jobs/j1',
      'DELETE /jobs/j1',
    ]);
    expect(server.seen[1]?.headers['x-again']).toBe('p');
  });

  test.each([
    ['BAD', 'job_failed'],
    ['LATE', 'job_timed_out'],
    ['WHAT', 'unknown_job_status'],
  ])('that ends as %s fails the run, and is aborted', async (status, code) => {
    serve(status);
    await expect(read({ manifest: manifestOf([job()]) })).rejects.toMatchObject({ code });
    expect(server.seen.at(-1)?.path).toBe('/abort');
  });

  test('without records has none, and never sends credentials to another host', async () => {
    serve('NONE');
    expect((await read({ manifest: manifestOf([job()]) })).ids).toEqual([]);
    serve('DONE');
    const authenticator = { type: 'BearerAuthenticator', api_token: 'secret' };
    const signed = job({
      download_requester: { type: 'HttpRequester', url_base: '{{ download_target }}', authenticator },
    });
    files.seen.length = 0;
    await expect(read({ manifest: manifestOf([signed]) })).rejects.toMatchObject({ code: 'foreign_address' });
    expect(files.seen).toHaveLength(0);
  });
});

/** What a stream of `items` returns for answers that are not plain lists of records. */
describe('an answer', () => {
  const add = (...fields: [string, string, string?][]) => ({
    transformations: [
      {
        type: 'AddFields',
        fields: fields.map(([name, value, value_type]) => ({ path: [name], value, ...(value_type && { value_type }) })),
      },
    ],
  });
  const at = (...field_path: string[]) => ({ selector: { extractor: { type: 'DpathExtractor', field_path } } });
  const filters = (...response_filters: object[]) => ({
    requester: { error_handler: { type: 'DefaultErrorHandler', response_filters } },
  });

  test.each([
    ['a list that is not there', { data: { rows: [{ id: 1 }] } }, at('data', 'items'), 'records_missing'],
    ['errors beside an absent list', { errors: [{ message: 'no' }], data: null }, at('data'), 'error_in_response'],
    ['ok: false', { ok: false, error: 'not_allowed' }, at('items'), 'error_in_response'],
    ['an error alone as the record', { ok: false, error: 'not_allowed' }, {}, 'error_in_response'],
  ])('with %s ends the run', async (_, body, part, code) => {
    server.on('/items', json(body));
    const manifest = manifestOf([streamOf('items', { url, properties: id, ...part })]);
    await expect(read({ manifest })).rejects.toMatchObject({ code });
    await expect(check({ manifest })).rejects.toMatchObject({ code });
  });

  test.each([
    ['an empty list', { items: [] }, {}],
    ['null for the list', { items: null, error: null, ok: true }, {}],
    ['nothing at all', {}, {}],
    ['no list, where that is allowed', { page: 1 }, { missing_records: 'empty' }],
  ])('with %s has no records', async (_, body, settings) => {
    server.on('/items', json(body));
    expect(
      (await read({ manifest: manifestOf([streamOf('items', { url, properties: id, ...at('items') })]), ...settings }))
        .ids,
    ).toEqual([]);
  });

  test.each([
    [
      'a status that counts as a success',
      404,
      filters({ type: 'HttpResponseFilter', http_codes: [404], action: 'SUCCESS' }),
      [],
    ],
    [
      'a success that is ignored',
      200,
      filters({ type: 'HttpResponseFilter', predicate: '{{ true }}', action: 'IGNORE' }),
      ['1'],
    ],
  ])('with %s is read as with Airbyte, and counted', async (_, status, part, expected) => {
    server.on('/items', json(status === 404 ? { error: 'gone' } : [{ id: 1 }], { status }));
    const { ids, warnings } = await read({
      manifest: manifestOf([streamOf('items', { url, properties: id, ...part })]),
    });
    expect(ids).toEqual(expected);
    expect(warnings.join()).toContain(`1 responses with status ${status} are ignored`);
  });

  // The values of Airbyte's own kit, but for a missing value that would become the text "None".
  test.each([
    ['{{ record.missing }}', undefined, ''],
    ['', undefined, ''],
    ['{{ record.empty }}', undefined, null],
    ["{{ 'abc' }}", 'integer', 'abc'],
    ["{{ '1.10' }}", 'string', '1.10'],
    ["{{ '1.10' }}", 'integer', '1.10'],
    ['{{ record.id }}', 'string', '1'],
  ])('gives a field %p as %p the value %p', async (value, type, expected) => {
    server.on('/items', json([{ id: 1, empty: null }]));
    const stream = streamOf('items', { url, properties: { x: text }, ...add(['x', value, type]) });
    expect((await read({ manifest: manifestOf([stream]) })).rows).toEqual([[expected]]);
  });

  test.each([
    ['date-time', undefined, '2026-01-31T10:00:00', '2026-01-31 10:00:00.000000+00'],
    ['date-time', undefined, '2026-01-31', '2026-01-31 00:00:00.000000+00'],
    ['date-time', undefined, '2026-01-31 10:00:00 UTC', '2026-01-31 10:00:00.000000+00'],
    ['date-time', undefined, '2026-01-31T10:00:00 +0000', '2026-01-31 10:00:00.000000+00'],
    ['date-time', undefined, '2026-01-31T10:00:00.1234567+02:00', '2026-01-31 08:00:00.123456+00'],
    ['date', undefined, '2026-01-31T00:00:00Z', '2026-01-31'],
    ['date-time', 'timestamp_without_timezone', '2026-01-31T10:00:00Z', '2026-01-31 10:00:00.000000'],
  ])('has a %s (%s) in the form of %s', async (format, airbyte_type, value, cell) => {
    server.on('/items', json([{ at: value }]));
    const properties = { at: { type: 'string', format, ...(airbyte_type && { airbyte_type }) } };
    const { rows, warnings } = await read({ manifest: manifestOf([streamOf('items', { url, properties })]) });
    expect(rows).toEqual([[cell]]);
    expect(warnings.join().includes('1 values of "at" have more than six digits')).toBe(value.includes('1234567'));
  });

  test.each([
    ['a time of the day in a date', { format: 'date' }, '2026-01-31T10:00:00Z'],
    [
      'a zone in a local time',
      { format: 'date-time', airbyte_type: 'timestamp_without_timezone' },
      '2026-01-31T10:00:00+02:00',
    ],
  ])('with %s ends the run, or is NULL and counted by choice', async (_, property, value) => {
    server.on('/items', json([{ at: value }]));
    const manifest = manifestOf([streamOf('items', { url, properties: { at: { type: 'string', ...property } } })]);
    await expect(read({ manifest })).rejects.toMatchObject({ code: 'value_does_not_fit' });
    const { rows, warnings } = await read({ manifest, unfitting_values: 'null' });
    expect(rows).toEqual([[null]]);
    expect(warnings.join()).toContain('1 values of "at"');
  });

  test('of a list router keeps the text of its values, and a parent without a key has no children', async () => {
    server.on('/items', json([{ id: 1 }]));
    server.on('/parents', json([{ key: null }, { key: 'a' }, {}]));
    const request_option = option('v');
    const list = { type: 'ListPartitionRouter', cursor_field: 'v', values: ['1.10', 2, ''], request_option };
    const parents = {
      type: 'SubstreamPartitionRouter',
      parent_stream_configs: [
        {
          type: 'ParentStreamConfig',
          stream: streamOf('parents', { url }),
          parent_key: 'key',
          partition_field: 'v',
          request_option,
        },
      ],
    };
    for (const [router, asked] of [
      [list, ['1.10', '2', undefined]],
      [parents, ['a']],
    ] as const) {
      server.seen.length = 0;
      await read({
        manifest: manifestOf([streamOf('items', { url, properties: id, retriever: { partition_router: router } })]),
      });
      expect(server.seen.filter(({ path }) => path === '/items').map(({ query }) => query.v)).toEqual(asked as never);
    }
  });
});

describe('errors', () => {
  const failing = (error_handler: object, rest: object = {}) =>
    read({ manifest: manifestOf([streamOf('items', { url, properties: id, requester: { error_handler } })]), ...rest });
  const filter = (more: object) => ({ type: 'HttpResponseFilter', ...more });
  const quick = { backoff_strategies: [{ type: 'ConstantBackoffStrategy', backoff_time_in_seconds: 0.001 }] };
  const counting = (answer: (count: number) => Response) => {
    let count = 0;
    server.on('/items', () => answer((count += 1)));
    return () => count;
  };
  const ok = () => Response.json([{ id: 1 }]);

  test("are retried up to the limit, ignored, or fail the run with the manifest's message", async () => {
    const asked = counting((count) => (count < 3 ? new Response('', { status: 418 }) : ok()));
    const again = {
      type: 'DefaultErrorHandler',
      max_retries: 2,
      response_filters: [filter({ http_codes: [418], action: 'RETRY' })],
      ...quick,
    };
    expect((await failing(again)).ids).toEqual(['1']);
    expect(asked()).toBe(3);
    counting(() => new Response('', { status: 418 }));
    await expect(failing({ ...again, max_retries: '{{ 1 }}' })).rejects.toMatchObject({ type: 'transient_error' });
    server.on('/items', json({ error: { code: 'gone' } }, { status: 404 }));
    const ignoring = filter({ predicate: "{{ response.error.code == 'gone' }}", action: 'IGNORE' });
    expect((await failing({ type: 'DefaultErrorHandler', response_filters: [ignoring] })).ids).toEqual([]);
    server.on('/items', json({ error: 'x' }, { status: 402 }));
    const telling = filter({
      http_codes: [402],
      action: 'FAIL',
      failure_type: 'config_error',
      error_message: 'Pay first: {{ response.error }}',
    });
    await expect(failing({ type: 'DefaultErrorHandler', response_filters: [telling] })).rejects.toThrow('Pay first: x');
  });

  test('pass through all handlers of a composite, which may turn a success into an error', async () => {
    const composite = (...error_handlers: object[]) => ({ type: 'CompositeErrorHandler', error_handlers });
    server.on('/items', json({}, { status: 403 }));
    const first = { type: 'DefaultErrorHandler', ...quick };
    expect(
      (await failing(composite(first, { response_filters: [filter({ http_codes: [403], action: 'IGNORE' })] }))).ids,
    ).toEqual([]);
    await expect(failing(composite(first))).rejects.toMatchObject({ type: 'auth_error' });
    const asked = counting((count) => (count < 2 ? Response.json({ busy: true }) : ok()));
    const busy = { ...quick, response_filters: [filter({ predicate: "{{ 'busy' in response }}", action: 'RETRY' })] };
    expect((await failing(composite(busy))).ids).toEqual(['1']);
    expect(asked()).toBe(2);
  });

  test('wait as long as a header says; longer waits are left to the engine', async () => {
    const started = performance.now();
    counting((count) => (count < 2 ? new Response('', { status: 429, headers: { 'x-wait': 'in 0.05 s' } }) : ok()));
    const header = { type: 'WaitTimeFromHeader', header: 'X-Wait', regex: '([.\\d]+)' };
    expect((await failing({ type: 'DefaultErrorHandler', backoff_strategies: [header] })).ids).toEqual(['1']);
    expect(performance.now() - started).toBeGreaterThanOrEqual(49);
    const at = String(Math.floor(Date.parse('2026-11-21T10:00:00Z') / 1000) + 86_400);
    server.on('/items', () => new Response('', { status: 429, headers: { reset: at } }));
    const until = failing({
      type: 'DefaultErrorHandler',
      backoff_strategies: [{ type: 'WaitUntilTimeFromHeader', header: 'reset' }],
    });
    await expect(until).rejects.toMatchObject({ type: 'rate_limited', until: new Date('2026-11-22T10:00:00Z') });
  });
});
