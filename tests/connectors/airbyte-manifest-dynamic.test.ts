import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { json, startHttpServer } from '../support/http-server.ts';
import { check, discover, manifestOf, read, streamOf } from './manifest-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const { url } = server;
const properties = { id: { type: 'integer' }, updated: { type: 'string', format: 'date-time' } };
const NOW = new Date('2026-03-01T00:00:00Z');
const context = { now: () => NOW };
const paths = () => server.seen.map(({ path }) => path);

describe('a stream that starts with a full read', () => {
  const cursor = {
    type: 'DatetimeBasedCursor',
    cursor_field: 'updated',
    datetime_format: '%Y-%m-%dT%H:%M:%SZ',
    start_datetime: '2026-01-01T00:00:00Z',
  };
  const since = {
    start_time_option: { type: 'RequestOption', inject_into: 'request_parameter', field_name: 'since' },
  };
  const parts = { type: 'ListPartitionRouter', cursor_field: 'shop', values: ['a', 'b'] };
  const delegating = (full: object = {}, more: object = {}) => {
    const of = (part: object, path: string) => streamOf('items', { url, path, properties, ...part });
    return manifestOf([
      {
        type: 'StateDelegatingStream',
        name: 'items',
        full_refresh_stream: of({ incremental_sync: cursor, ...full }, '/all'),
        incremental_stream: of({ incremental_sync: { ...cursor, ...since } }, '/events'),
        ...more,
      },
    ]);
  };
  const item = (id: number, updated: string) => ({ id, updated: `2026-${updated}T00:00:00Z` });
  const incremental = (manifest: object, state: object | null = null) =>
    read({ manifest: manifest as never }, { sync_mode: 'incremental', state: state as never, context });

  beforeEach(() => {
    server.on('/all', json([item(1, '02-01'), item(2, '02-10')]));
    server.on('/all/*', json([item(1, '02-01'), item(2, '02-10')]));
    server.on('/events', json([item(2, '02-10'), item(3, '02-20')]));
  });

  test('continues incrementally from where the full read ended', async () => {
    const manifest = delegating();
    const first = await incremental(manifest);
    expect([first.ids, paths()]).toEqual([['1', '2'], ['/all']]);
    server.seen.length = 0;
    const second = await incremental(manifest, first.state);
    expect([second.ids, paths(), server.seen[0]?.query.since]).toEqual([['3'], ['/events'], '2026-02-10T00:00:00Z']);
    expect(second.state).toMatchObject({ caught_up: true });
    // An interrupted incremental read does not start over.
    server.seen.length = 0;
    await incremental(manifest, { ...second.state, complete: false });
    expect(paths()).toEqual(['/events']);
  });

  test('is read in full again by a full refresh, and after an interrupted first read', async () => {
    const manifest = delegating();
    expect((await read({ manifest }, { context })).ids).toEqual(['1', '2']);
    const { state } = await incremental(manifest);
    server.seen.length = 0;
    expect((await incremental(manifest, { ...state, complete: false })).ids).toEqual(['1']);
    expect(paths()).toEqual(['/all']);
  });

  test('is read in full again when the service no longer has the changes', async () => {
    const manifest = delegating({}, { api_retention_period: "{{ 'P30D' }}" });
    await incremental(manifest, { cursor: '2026-01-20 00:00:00+00' });
    await incremental(manifest, { cursor: '2026-02-20 00:00:00+00' });
    // Requested until yesterday, although nothing has changed for a long time.
    await incremental(manifest, { cursor: '2026-01-20', read_until: '2026-02-28', complete: true });
    expect(paths()).toEqual(['/all', '/events', '/events']);
  });

  test('resumes at the lowest cursor of its partitions', async () => {
    const requester = { path: '/all/{{ stream_partition.shop }}' };
    const full = streamOf('items', { url, properties, requester, retriever: { partition_router: parts } });
    const manifest = delegating({ retriever: full.retriever });
    const { state } = await incremental(manifest);
    const partitions = state?.partitions as Record<string, { read_until: string }>;
    expect(Object.keys(partitions)).toHaveLength(2);
    const [one] = Object.values(partitions);
    if (one) one.read_until = '2026-02-05 00:00:00.000000+00';
    server.seen.length = 0;
    await incremental(manifest, state);
    expect(server.seen.map(({ path, query }) => [path, query.since])).toEqual([['/events', '2026-02-05T00:00:00Z']]);
  });

  test('is rejected if its two streams have different names, or lack a cursor each', async () => {
    const other = delegating({ name: 'others' });
    await expect(check({ manifest: other })).rejects.toThrow('both streams need the name of the StateDelegatingStream');
    const [found] = await discover({ manifest: delegating({ incremental_sync: null }) });
    expect(found?.supported_sync_modes).toEqual(['full_refresh']);
  });
});

describe('streams from a template', () => {
  const map = (path: string, value: string, more: object = {}) => ({
    type: 'ComponentMappingDefinition',
    field_path: path.split('/'),
    value,
    ...more,
  });
  const dynamic = (components_resolver: object, template: object = {}, more: object = {}) => ({
    type: 'DynamicDeclarativeStream',
    name: 'tables',
    stream_template: { ...streamOf('', { url, path: '', properties, ...template }) },
    components_resolver,
    ...more,
  });
  const source = (dynamic_streams: object[], more: object = {}) =>
    manifestOf([], { check: { type: 'CheckDynamicStream', stream_count: 1 }, dynamic_streams, ...more });
  const ofConfig = (components_mapping: object[], pointers: string[] = ['tables']) => ({
    type: 'ConfigComponentsResolver',
    stream_config: pointers.map((one) => ({ type: 'StreamConfig', configs_pointer: [one] })),
    components_mapping,
  });

  test('listed by the service, with the fields it lists', async () => {
    server.on('/bases', json([{ key: 'b1', title: 'Base One' }]));
    const fields = [
      { name: 'Id', type: 'autoNumber' },
      { name: 'Day', type: 'formula', result: 'date' },
      { name: 'Tags', type: 'list' },
      { name: 'Either', type: 'either' },
      { name: 'Note' },
      { name: 'Hidden', type: 'string' },
    ];
    server.on(
      '/bases/b1/tables',
      json({
        tables: [
          { id: 't1', name: '2024', fields: [] },
          { id: 't2', name: 'B', fields },
        ],
      }),
    );
    server.on('/data/b1/t2', json([{ Id: 7, Day: '2026-01-02', Tags: ['x'], Either: 1, Note: 'n', Hidden: 'h' }]));
    const retriever = (path: string, more: object = {}) => streamOf('x', { url, path, ...more }).retriever as object;
    const parent = {
      type: 'ParentStreamConfig',
      stream: streamOf('bases', { url }),
      parent_key: 'key',
      partition_field: 'base',
    };
    const loader = {
      type: 'DynamicSchemaLoader',
      retriever: retriever('', {
        selector: {
          extractor: { type: 'DpathExtractor', field_path: ['tables'] },
          record_filter: { condition: '{{ record.id == parameters.table }}' },
          $parameters: { table: '' },
        },
      }),
      schema_filter: { type: 'RecordFilter', condition: "{{ 'Hidden' not in record }}" },
      schema_transformations: [
        { type: 'KeysToLower' },
        { type: 'AddFields', fields: [{ path: ['table'], value: "{{ {'type': ['null', 'string']} }}" }] },
      ],
      schema_type_identifier: {
        type: 'SchemaTypeIdentifier',
        schema_pointer: ['fields'],
        key_pointer: ['name'],
        type_pointer: ['type'],
        types_mapping: [
          { current_type: 'autoNumber', target_type: 'integer' },
          { current_type: 'formula', target_type: 'number', condition: "{{ raw_schema.result == 'number' }}" },
          { current_type: 'formula', target_type: 'date', condition: "{{ raw_schema['result'] == 'date' }}" },
          {
            current_type: 'list',
            target_type: { field_type: 'array', items: { field_type: 'array', items: 'string' } },
          },
          { current_type: 'either', target_type: ['integer', 'string'] },
        ],
      },
    };
    const resolver = {
      type: 'HttpComponentsResolver',
      retriever: retriever('/bases/{{ stream_partition.base }}/tables', {
        selector: { extractor: { type: 'DpathExtractor', field_path: ['tables'] } },
        retriever: {
          partition_router: {
            type: 'SubstreamPartitionRouter',
            parent_stream_configs: [{ ...parent, extra_fields: [['title']] }],
          },
        },
      }),
      components_mapping: [
        map('name', "{{ stream_slice.extra_fields['title'] | replace(' ', '_') }}/{{ components_values.name }}"),
        map('retriever/requester/path', 'data/{{ stream_slice.base }}/{{ components_values.id }}'),
        map('schema_loader/retriever/requester/path', 'bases/{{ stream_slice.base }}/tables'),
        map('schema_loader/retriever/record_selector/record_filter/$parameters/table', '{{ components_values.id }}'),
        map('transformations/1/fields/*/value', '{{ components_values.name }}'),
      ],
    };
    const transformations = [{ type: 'KeysToLower' }, { type: 'AddFields', fields: [{ path: ['table'], value: '' }] }];
    const manifest = source([dynamic(resolver, { properties: null, schema_loader: loader, transformations })]);
    const streams = await discover({ manifest });
    expect(streams.map(({ name }) => name)).toEqual(['Base_One/2024', 'Base_One/B']);
    expect(streams[1]?.fields.map(({ path, type }) => [path[0], type])).toEqual([
      ['id', 'integer'],
      ['day', 'date'],
      ['tags', 'array'],
      ['either', 'string'],
      ['note', 'string'],
      ['table', 'string'],
    ]);
    const { rows } = await read({ manifest }, { name: 'Base_One/B' });
    expect(rows).toEqual([['7', '2026-01-02', '["x"]', '1', 'n', 'B']]);
    server.on('/data/b1/t1', json([]));
    expect((await check({ manifest })).checks.map(({ title }) => title)).toEqual([
      'Manifest',
      'First page of Base_One/2024',
    ]);
    const unknown = structuredClone(manifest) as {
      dynamic_streams: { stream_template: { schema_loader: typeof loader } }[];
    };
    unknown.dynamic_streams[0]?.stream_template.schema_loader.schema_type_identifier.types_mapping.shift();
    await expect(discover({ manifest: unknown })).rejects.toMatchObject({ code: 'unknown_type' });
  });

  test('listed in the configuration: all combinations, in YAML, at new paths', async () => {
    const resolver = ofConfig(
      [
        map('name', '{{ components_values.table }}_{{ components_values.source_config_1[1] }}', {
          value_type: 'string',
        }),
        map('retriever/requester/path', '/{{ components_values.table }}', { value_type: 'string' }),
        map('retriever/requester/request_parameters', 'region: "{{ components_values.source_config_1[1] }}"', {
          create_or_update: true,
        }),
        map('primary_key', "{{ components_values['key'] }}", {
          create_or_update: true,
          condition: "{{ components_values.get('key') }}",
        }),
        map(
          'transformations',
          '- type: AddFields\n  fields: [{ path: [id], value: "{% raw %}{{ record.id + 1 }}{% endraw %}" }]',
          {
            create_or_update: true,
          },
        ),
        map('no/such/place', 'x'),
      ],
      ['tables', 'regions'],
    );
    server.on('/t1', ({ query }) => Response.json([{ id: query.region === 'eu' ? 1 : 2 }]));
    server.on('/t2', json([{ id: 3 }]));
    const manifest = source([dynamic(resolver)]);
    const config = { tables: [{ table: 't1', key: 'id' }, { table: 't2' }], regions: ['eu', 'us'] };
    const streams = await discover({ manifest, config });
    expect(streams.map(({ name, source_defined_primary_key: key }) => [name, key])).toEqual([
      ['t1_eu', [['id']]],
      ['t1_us', [['id']]],
      ['t2_eu', null],
      ['t2_us', null],
    ]);
    expect((await read({ manifest, config }, { name: 't1_us' })).ids).toEqual(['3']);
    const twice = { ...config, regions: ['eu', 'eu'] };
    await expect(discover({ manifest, config: twice })).rejects.toMatchObject({ code: 'duplicate_stream' });
    const many = { ...config, regions: Array.from({ length: 1001 }, (_, at) => `r${at}`) };
    await expect(discover({ manifest, config: many })).rejects.toMatchObject({ code: 'too_many_streams' });
  });

  test('from parameters of the manifest, and conditional ones', async () => {
    const resolver = {
      type: 'ParametrizedComponentsResolver',
      stream_parameters: {
        list_of_parameters_for_stream: [{ name: '1.10', size: 5 }, { name: '2024' }, { name: 'a: b' }],
      },
      components_mapping: [
        map('name', '{{ components_values.name }}'),
        map('retriever/requester/path', '/{{ components_values.name }}'),
        map('retriever/requester/http_method', '{{ components_values.method }}', {
          condition: '{{ components_values.method }}',
        }),
      ],
    };
    const streams = [
      { type: 'ConditionalStreams', condition: '{{ config.all }}', streams: [streamOf('more', { url, properties })] },
      streamOf('always', { url, properties }),
    ];
    const template = streamOf('a template', { url, properties });
    const made = { ...dynamic(resolver), stream_template: template };
    const manifest = source([made], { streams });
    const names = async (config: object) => (await discover({ manifest, config } as never)).map(({ name }) => name);
    expect(await names({ all: true })).toEqual(['more', 'always', '1.10', '2024', 'a: b']);
    expect(await names({ all: false })).toEqual(['always', '1.10', '2024', 'a: b']);
  });

  test('are rejected before any request if the template uses unsupported features', async () => {
    const custom = { retriever: { paginator: { type: 'CustomPaginator', class_name: 'a.B' } } };
    const resolver = ofConfig([map('name', '{{ components_values.table }}')]);
    const bad = source([dynamic(resolver, custom)]);
    const refused = check({ manifest: bad, config: { tables: [{ table: 't' }] } });
    await expect(refused).rejects.toThrow('dynamic_streams[0].stream_template.retriever.paginator: CustomPaginator');
    await expect(refused).rejects.toThrow('CustomPaginator (a.B) is not supported');
    const rest = { ...bad, streams: [streamOf('items', { url, properties })] };
    const left = await discover({ manifest: rest, skip_unsupported_streams: true });
    expect(left.map(({ name }) => name)).toEqual(['items']);
    const gap = source([dynamic(ofConfig([]))]);
    await expect(discover({ manifest: gap, config: { tables: [{}] } })).rejects.toThrow('stream "".name');
    expect(server.seen).toEqual([]);
  });
});

test('a property of which the schema has the name alone takes any value', async () => {
  server.on('/items', json([{ id: 1, any: { a: 1 } }]));
  const stream = streamOf('items', { url: server.url, properties: { id: { type: 'integer' }, any: null } });
  expect((await read({ manifest: manifestOf([stream]) })).rows).toEqual([['1', '{"a":1}']]);
});
