import { gzipSync } from 'node:zlib';
import { strToU8, zipSync } from 'fflate';
import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { json, startHttpServer } from '../support/http-server.ts';
import { check, discover, manifestOf, read, streamOf } from './manifest-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const { url } = server;
const id = { id: { type: 'integer' } };
const text = { type: ['null', 'string'] };
const one = (more: object, rest: object = {}) => ({
  manifest: manifestOf([streamOf('items', { url, properties: id, ...more })]),
  ...rest,
});

describe('an answer', () => {
  const rowsOf = async (body: string | Uint8Array, decoder: object, more: object = {}) => {
    server.on('/items', () => new Response(body as never));
    return (await read(one({ retriever: { decoder }, ...more }))).rows;
  };
  const ab = { properties: { a: text, b: text } };

  test('of JSON Lines, with records of each line selected by the path', async () => {
    const selector = { extractor: { type: 'DpathExtractor', field_path: ['items'] } };
    const lines = '{"items":[{"id":1},{"id":2}]}\r\n\n{"items":[{"id":1234567890123456789}]}';
    const decoder = { type: 'JsonlDecoder' };
    expect(await rowsOf(lines, decoder, { selector })).toEqual([['1'], ['2'], ['1234567890123456789']]);
    await expect(rowsOf('{"id":1}\n{"id', decoder)).rejects.toThrow('/items, line 2 is not valid JSON');
    const deep = `{"id":1}\n{"id":${'['.repeat(90_000)}`;
    await expect(rowsOf(deep, decoder)).rejects.toThrow('/items, line 2: more than 8000000 values or 1000 levels');
  });

  test('of CSV, with a custom delimiter and NULL values', async () => {
    const decoder = { type: 'CsvDecoder', delimiter: '\\t', set_values_to_none: ['-'] };
    const csv = '\uFEFFa\tb\r\n"x ""1""\n2"\t-\r\n\ty\r\nz\r\n';
    expect(await rowsOf(csv, decoder, ab)).toEqual([
      ['x "1"\n2', null],
      ['', 'y'],
      ['z', null],
    ]);
    expect(await rowsOf('a,b\n1,2', { type: 'CsvDecoder' }, ab)).toEqual([['1', '2']]);
    await expect(rowsOf('a,b\n"1,2', { type: 'CsvDecoder' }, ab)).rejects.toMatchObject({ code: 'malformed_csv' });
    const wide = `${Array.from({ length: 3000 }, (_, at) => `c${at}`).join()}\n${'1\n'.repeat(3000)}`;
    await expect(rowsOf(wide, { type: 'CsvDecoder' }, ab)).rejects.toMatchObject({ code: 'csv_limit_exceeded' });
  });

  // The values of Python's xmltodict, which Airbyte uses.
  test.each([
    ['<r/>', { r: null }],
    ['<r><a>1</a><a>2</a><b/></r>', { r: { a: ['1', '2'], b: null } }],
    ['<r x="1">t</r>', { r: { '@x': '1', '#text': 't' } }],
    ['<r><i id="1"><n>a &amp; b</n></i><i id="2"/></r>', { r: { i: [{ '@id': '1', n: 'a & b' }, { '@id': '2' }] } }],
    ['<?xml version="1.0"?><r><![CDATA[x<y]]></r>', { r: 'x<y' }],
    ['<n:r xmlns:n="u"><n:a> 007 </n:a></n:r>', { 'n:r': { '@xmlns:n': 'u', 'n:a': '007' } }],
    ['<r><!-- c --><a x="">&#65;&lt;</a></r>', { r: { a: { '@x': '', '#text': 'A<' } } }],
  ])('of XML: %s', async (xml, value) => {
    const [[cell] = []] = await rowsOf(xml, { type: 'XmlDecoder' }, { properties: null });
    const [found] = Object.values(value);
    expect(typeof found === 'object' && cell ? JSON.parse(cell) : cell).toEqual(found);
  });

  test.each(['<r>', '<r></s>', '{"a":1}', '<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>'])(
    'is not XML: %s',
    async (xml) => {
      await expect(rowsOf(xml, { type: 'XmlDecoder' })).rejects.toMatchObject({ code: 'malformed_xml' });
    },
  );

  test('of a ZIP archive, file by file', async () => {
    const zip = { type: 'ZipfileDecoder', decoder: { type: 'CsvDecoder' } };
    const files = { 'x/a.csv': strToU8('a,b\n1,ü\n'), 'x/': new Uint8Array(), 'b.csv': gzipSync('b,a\n4,3\n') };
    const whole = zipSync(files, { level: 6 });
    const rows = [
      ['1', 'ü'],
      ['3', '4'],
    ];
    expect(await rowsOf(whole, zip, ab)).toEqual(rows);
    expect(await rowsOf(zipSync(files, { level: 0 }), zip, ab)).toEqual(rows);
    expect(await rowsOf(zipSync({}), zip, ab)).toEqual([]);
    const lines = { type: 'ZipfileDecoder', decoder: { type: 'GzipDecoder', decoder: { type: 'JsonlDecoder' } } };
    expect(await rowsOf(zipSync({ a: gzipSync('{"id":1}'), b: gzipSync('{"id":2}') }), lines)).toEqual([['1'], ['2']]);
    const damaged = zipSync({ 'a.csv': strToU8('a\n12345\n') }, { level: 0 });
    damaged[40] = (damaged[40] ?? 0) ^ 1;
    const encrypted = whole.slice();
    encrypted[encrypted.findLastIndex((_, at) => encrypted[at] === 0x50 && encrypted[at + 2] === 1) + 8] = 1;
    for (const body of [damaged, encrypted, whole.slice(0, -30), whole.slice(0, 60), 'a,b\n1,2\n'])
      await expect(rowsOf(body, zip, ab)).rejects.toMatchObject({ code: 'malformed_zip' });
  });

  test('of plain lines, or of any format within gzip', async () => {
    const record = { properties: { record: text } };
    expect(await rowsOf('x\ny\n', { type: 'IterableDecoder' }, record)).toEqual([['x'], ['y']]);
    const gzip = { type: 'GzipDecoder', decoder: { type: 'CsvDecoder' } };
    expect(await rowsOf(gzipSync('a,b\n1,2\n'), gzip, ab)).toEqual([['1', '2']]);
  });

  // Airbyte's CDK takes the first record without fields for the end of all streams.
  test('has no rows for records without fields, also after transformations', async () => {
    const body = '[{"id":1},{},{"id":null},{"gone":1},{"id":2}]';
    const transformations = [{ type: 'RemoveFields', field_pointers: [['gone']] }];
    expect(await rowsOf(body, { type: 'JsonDecoder' }, { transformations })).toEqual([['1'], [null], ['2']]);
  });

  test('that is a list is searched item by item', async () => {
    const selector = { extractor: { type: 'DpathExtractor', field_path: ['item'] } };
    const body = '[{"item":{"id":1}},{"item":[{"id":2},{"id":3}]},{}]';
    expect(await rowsOf(body, { type: 'JsonDecoder' }, { selector })).toEqual([['1'], ['2'], ['3']]);
  });

  test.each([
    [
      { retriever: { decoder: { type: 'CompositeRawDecoder' } } },
      'retriever.decoder: CompositeRawDecoder is not supported',
    ],
    [{ retriever: { decoder: { type: 'CsvDecoder', encoding: 'latin-1' } } }, 'an encoding other than UTF-8'],
    [
      {
        retriever: { paginator: null },
        requester: { request_headers: { x: { type: 'QueryProperties', property_list: ['a'] } } },
      },
      'query_properties is not supported',
    ],
  ])('in an unsupported format is rejected before the request: %j', async (more, message) => {
    await expect(check(one(more))).rejects.toThrow(message);
    expect(server.seen).toEqual([]);
  });
});

test('flattened fields get a prefix and a suffix', async () => {
  server.on('/items', json([{ inner: { id: 1 } }]));
  const key_transformation = { type: 'KeyTransformation', prefix: 'p_', suffix: '{{ config.end }}' };
  const transformations = [{ type: 'DpathFlattenFields', field_path: ['inner'], key_transformation }];
  const settings = one({ transformations, properties: { p_id_x: { type: 'integer' } } }, { config: { end: '_x' } });
  expect((await read(settings)).rows).toEqual([['1']]);
});

test('the first of several schemas wins where they disagree', async () => {
  const loader = (properties: object) => ({ type: 'InlineSchemaLoader', schema: { type: 'object', properties } });
  const schema_loader = [loader({ a: { type: 'integer' } }), loader({ a: text, b: text })];
  const [found] = await discover(one({ properties: null, schema_loader }));
  expect(found?.fields.map(({ path, type }) => [path[0], type])).toEqual([
    ['a', 'integer'],
    ['b', 'string'],
  ]);
});

test('a service that requires start before end never gets an empty window', async () => {
  server.on('/items', json([]));
  const option = (field_name: string) => ({ type: 'RequestOption', inject_into: 'request_parameter', field_name });
  const incremental_sync = {
    type: 'DatetimeBasedCursor',
    cursor_field: 'day',
    datetime_format: '%Y-%m-%d',
    start_datetime: '2026-01-01',
    end_datetime: '2026-01-05',
    step: 'P2D',
    cursor_granularity: 'P1D',
    start_time_option: option('from'),
    end_time_option: option('to'),
  };
  const asked = async (more: object) => {
    server.seen.length = 0;
    await read(one({ properties: { ...id, day: text }, incremental_sync: { ...incremental_sync, ...more } }));
    return server.seen.map(({ query }) => [query.from, query.to]);
  };
  const usual = [
    ['2026-01-01', '2026-01-02'],
    ['2026-01-03', '2026-01-05'],
  ];
  expect(await asked({ end_datetime: '2026-01-05' })).toEqual(usual);
  expect(await asked({ start_datetime: '2026-01-05' })).toEqual([['2026-01-05', '2026-01-05']]);
  expect(await asked({ start_datetime: '2026-01-05', is_compare_strictly: true })).toEqual([]);
});

test('an older configuration is migrated to the newest format', async () => {
  server.on('/items', ({ headers }) => Response.json(headers.authorization === 'Bearer k-new' ? [{ id: 1 }] : []));
  const fields = (path: string[], value: string) => ({ type: 'ConfigAddFields', fields: [{ path, value }] });
  const rules = {
    type: 'ConfigNormalizationRules',
    config_migrations: [
      {
        type: 'ConfigMigration',
        transformations: [
          { ...fields(['credentials', 'key'], "{{ config['key'] }}"), condition: "{{ config.get('key') }}" },
          { type: 'ConfigRemoveFields', field_pointers: [['key']] },
        ],
      },
    ],
    transformations: [{ type: 'ConfigRemapField', field_path: ['mode'], map: { old: 'new' } }],
  };
  const api_token = "{{ config['credentials']['key'] }}-{{ config['mode'] }}{{ config['key'] }}";
  const stream = streamOf('items', {
    url,
    properties: id,
    requester: { authenticator: { type: 'BearerAuthenticator', api_token } },
  });
  const spec = { type: 'Spec', connection_specification: {}, config_normalization_rules: rules };
  const manifest = manifestOf([stream], { spec });
  expect((await read({ manifest, config: { key: 'k', mode: 'old' } })).ids).toEqual(['1']);
  expect((await read({ manifest, config: { credentials: { key: 'k' }, mode: 'new' } })).ids).toEqual(['1']);
});

test('the configuration is validated by the rules of the manifest', async () => {
  const account = { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } };
  const strategy = (base_schema: unknown) => ({ type: 'ValidateAdheresToSchema', base_schema });
  const rules = {
    validations: [
      { type: 'DpathValidator', field_path: ['accounts', '*'], validation_strategy: strategy(account) },
      { type: 'PredicateValidator', value: '{"id": 1}', validation_strategy: strategy(account) },
    ],
  };
  const spec = { type: 'Spec', connection_specification: {}, config_normalization_rules: rules };
  const manifest = manifestOf([streamOf('items', { url, properties: id })], { spec });
  server.on('/items', json([{ id: 1 }]));
  // What is not there is not validated, and a text is JSON: both as with Airbyte.
  expect((await read({ manifest })).ids).toEqual(['1']);
  expect((await read({ manifest, config: { accounts: [{ id: 2 }, '{"id":3}'] } })).ids).toEqual(['1']);
  const refused = (accounts: unknown[]) => expect(read({ manifest, config: { accounts } })).rejects;
  await refused([{ id: 1 }, { id: 'x' }]).toThrow('accounts.* is not valid: "value.id" must be integer');
  await refused(['x']).toThrow('accounts.* is not valid: it is not JSON');
});

test('a rotated refresh token is read from its own path in the configuration', async () => {
  const used: (string | null)[] = [];
  server.on('/token', ({ body }) => {
    used.push(new URLSearchParams(body).get('refresh'));
    return Response.json({ access_token: 'a', next: 'r2' });
  });
  server.on('/items', json([{ id: 1 }]));
  const authenticator = {
    type: 'OAuthAuthenticator',
    token_refresh_endpoint: `${url}/token`,
    refresh_token_name: 'refresh',
    refresh_token_updater: { refresh_token_name: 'next' },
  };
  const replaced: string[] = [];
  const stored = { current: null, replace: async (_: string, next: string) => replaced.push(next) > 0 };
  const settings = one({ requester: { authenticator } }, { secrets: { credentials: { refresh_token: 'r1' } } });
  const rotateSecret = <Result>(_: string, work: (secret: typeof stored) => Promise<Result>) => work(stored);
  expect((await read(settings, { context: { rotateSecret } })).ids).toEqual(['1']);
  expect([used, replaced]).toEqual([['r1'], ['r2']]);
});
