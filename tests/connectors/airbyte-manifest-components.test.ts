import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { json, startHttpServer } from '../support/http-server.ts';
import { check, manifestOf, read, streamOf } from './manifest-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const { url } = server;
const components = readFileSync(join(import.meta.dir, 'components.py'), 'utf8');
const folder = join(import.meta.dir, 'source_shop');
const shop = Object.fromEntries(
  Array.from(new Bun.Glob('**/*.{py,json}').scanSync(folder), (path) => [
    `source_shop/${path}`,
    readFileSync(join(folder, path), 'utf8'),
  ]),
);
const custom = (kind: string, name: string, more: object = {}) => ({
  type: `Custom${kind}`,
  class_name: `source_declarative_manifest.components.${name}`,
  ...more,
});

describe('components in Python', () => {
  test('extract, filter, transform, page, route and authenticate together', async () => {
    server.on('/login', json({ token: 'abc' }));
    server.on('/parents', json([{ id: 1 }, { id: 2 }]));
    server.on('/items', (request) => {
      const { parent, after } = request.query;
      const first = Number(parent) * 100 + (after ? 2 : 0);
      const records = { a: { id: first + 1, n: [1, 2] }, b: { id: first + 2, n: [3] } };
      return Response.json({ data: records, left: after ? 0 : 1 });
    });
    const authenticator = custom('Authenticator', 'Login', { login_url: `${url}/login` });
    const stream = streamOf('items', {
      url,
      requester: { authenticator, request_parameters: { extra: '{{ stream_slice.extra_fields.n }}' } },
      selector: {
        extractor: custom('RecordExtractor', 'KeyedExtractor', {
          field_path: ['data'],
          key_field: "{{ 'na' ~ 'me' }}",
        }),
        record_filter: custom('RecordFilter', 'OddOnly'),
      },
      retriever: {
        paginator: {
          type: 'DefaultPaginator',
          page_token_option: { type: 'RequestOption', inject_into: 'request_parameter', field_name: 'after' },
          page_size_option: { type: 'RequestOption', inject_into: 'request_parameter', field_name: 'size' },
          pagination_strategy: custom('PaginationStrategy', 'Countdown'),
        },
        partition_router: custom('PartitionRouter', 'ParentIds', {
          parent_stream_configs: [
            {
              stream: streamOf('parents', { url, requester: { authenticator } }),
              parent_key: 'id',
              partition_field: 'parent',
              request_option: { type: 'RequestOption', inject_into: 'request_parameter', field_name: 'parent' },
            },
          ],
        }),
      },
      transformations: [
        custom('Transformation', 'Sum', {
          fields: [{ path: ['total'], value: '{{ record.n }}', value_type: 'integer' }],
        }),
        { type: 'AddFields', fields: [{ path: ['twice'], value: '{{ record.total * 2 }}' }] },
        custom('Transformation', 'Tag', { prefix: 'p', $parameters: { name: 'x' } }),
      ],
      properties: {
        id: { type: 'integer' },
        name: { type: 'string' },
        twice: { type: 'integer' },
        tag: { type: 'string' },
      },
    });
    const settings = { manifest: manifestOf([stream]), components, config: { who: 'me', key: 'k' } };
    const { rows } = await read(settings);
    expect(rows).toEqual(
      [101, 103, 201, 203].map((id) => [String(id), 'a', '6', `p-x-me-{'parent': ${String(id)[0]}}`]),
    );
    // Rows and requests are those of Airbyte's CDK 6.54, but that filtered records count for their page.
    const items = server.seen.filter(({ path }) => path === '/items').map(({ query }) => query);
    expect(items.toSorted((a, b) => Number(a.parent) - Number(b.parent))).toEqual([
      { extra: '10', parent: '1', size: '2' },
      { extra: '10', after: '102.2.None', parent: '1', size: '2' },
      { extra: '20', parent: '2', size: '2' },
      { extra: '20', after: '202.2.None', parent: '2', size: '2' },
    ]);
    expect(
      new Set(
        server.seen.slice(1).map(({ path, headers }) => path === '/login' || headers.authorization === 'Token abc'),
      ),
    ).toEqual(new Set([true]));
    const [login] = server.seen.filter(({ path }) => path === '/login');
    expect([login?.body, login?.headers['x-key'], login?.headers['content-type']]).toEqual([
      '{"user": "me"}',
      'k',
      'application/json',
    ]);
  });

  test('choose between authenticators of the manifest', async () => {
    server.on('/items', json([{ id: 1 }]));
    const authenticator = custom('Authenticator', 'Choice', {
      basic: { type: 'BasicHttpAuthenticator', username: "{{ config['who'] }}", password: 'pass' },
      bearer: { type: 'BearerAuthenticator', api_token: "{{ config['key'] }}" },
    });
    const manifest = manifestOf([streamOf('items', { url, requester: { authenticator } })]);
    for (const who of ['basic', 'bearer']) await check({ manifest, components, config: { who, key: 'k' } });
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([
      `Basic ${btoa('basic:pass')}`,
      'Bearer k',
    ]);
  });

  test('nest, keep the digits of numbers, and name class and line of an error', async () => {
    const body = '{"id": 1, "n": 12345678901234567890.123456789, "k": 0.10, "names": ["a"]}';
    server.on('/items', () => new Response(body));
    const extractors = [{ type: 'DpathExtractor', field_path: [] }, custom('RecordExtractor', 'PlainExtractor')];
    const stream = (name: string) =>
      streamOf('items', {
        url,
        selector: { extractor: custom('RecordExtractor', 'Together', { extractors }) },
        transformations: [custom('Transformation', name)],
        properties: { id: { type: 'integer' }, n: { type: 'number' }, k: { type: 'number' }, name: { type: 'string' } },
      });
    const settings = (name: string) => ({ manifest: manifestOf([stream(name)]), components, config: { who: 'x' } });
    const { rows } = await read(settings('Tag'));
    expect(rows).toEqual([['1', '12345678901234567890.123456789', '0.1', 'a']]);
    const line = components.split('\n').findIndex((text) => text.includes('record["missing"]')) + 1;
    expect(read(settings('Broken'))).rejects.toThrow(`components.py line ${line}, Broken._lookup: KeyError: 'missing'`);
  });

  test('of a package build requests, judge responses and declare schemas', async () => {
    let tokens = 0;
    let tries = 0;
    server.on('/token', () => {
      tokens += 1;
      return tokens === 1 ? new Response('', { status: 503 }) : Response.json({ access_token: 'abc' });
    });
    server.on('/v1/items.json', (request) => {
      tries += 1;
      if (tries === 1) return new Response('busy', { headers: { 'x-wait': '0.001' } });
      const { from, page } = request.query;
      const id = Number(from?.slice(-2)) * 10 + Number(page ?? 0);
      return Response.json({ items: [{ id, at: 'Wed, 31 Jan 2024 04:05:06 +0000' }], last: page !== undefined });
    });
    const of = (kind: string, name: string, more: object = {}) => ({
      type: `Custom${kind}`,
      class_name: `source_shop.components.${name}`,
      ...more,
    });
    const option = (field_name: string) => ({ type: 'RequestOption', inject_into: 'request_parameter', field_name });
    const requester = of('Requester', 'requests.ShopRequester', {
      url_base: `${url}/v1`,
      path: '/items',
      http_method: 'GET',
      suffix: '.json',
      request_parameters: {
        drop: '{{ config.who }}',
        empty: '{{ config.none }}',
        slice: '{{ stream_slice.start_time }}',
      },
      authenticator: of('Authenticator', 'auth.ShopAuthenticator', {
        token_refresh_endpoint: `${url}/token`,
        client_id: '{{ config.who }}',
        client_secret: '{{ config.key }}',
        grant_type: 'client_credentials',
      }),
      error_handler: of('ErrorHandler', 'requests.ShopErrorHandler', {
        backoff_strategies: [of('BackoffStrategy', 'requests.ShopBackoff')],
      }),
    });
    const stream = streamOf('items', {
      retriever: {
        requester,
        paginator: {
          type: 'DefaultPaginator',
          page_token_option: option('page'),
          pagination_strategy: of('PaginationStrategy', 'requests.ShopPages', { page_size: 1, start_from_page: 0 }),
        },
        record_selector: { type: 'RecordSelector', extractor: { type: 'DpathExtractor', field_path: ['items'] } },
      },
      incremental_sync: of('IncrementalSync', 'requests.ShopCursor', {
        cursor_field: 'at',
        cursor_datetime_formats: ['%Y-%m-%dT%H:%M:%S%z'],
        datetime_format: '%Y-%m-%d',
        start_datetime: '2024-01-01',
        end_datetime: '2024-01-05',
        step: 'P3D',
        cursor_granularity: 'P1D',
        start_time_option: option('from'),
        end_time_option: option('to'),
      }),
      schema_loader: of('SchemaLoader', 'records.ShopSchema', { $parameters: { name: 'items' } }),
      transformations: [of('Transformation', 'records.Times')],
    });
    const settings = { manifest: manifestOf([stream]), files: shop, config: { who: 'me', key: 'k' } };
    const { rows } = await read(settings);
    expect(rows.map(([id]) => id)).toEqual(['10', '11', '40', '41']);
    expect(rows[0]?.slice(1)).toEqual([
      '2024-01-31 04:05:06+00',
      '2024-01-31T04:05:06+00:00|2024-02-28T4:05|1 day, 2:00:00|2024-01-02T03:04:05+01:00|2023-03-14T15:00:00+00:00',
      'eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJzaG9wIn0.fU8uKS7s_Xrh6FP8Rbq-FqeWd3oVIr6D233Tr7LHxJ0',
    ]);
    const sent = server.seen.filter(({ path }) => path === '/v1/items.json');
    const first = { stream: 'items', slice: '2024-01-01', from: '2024-01-01', to: '2024-01-03', days: '3', drop: 'me' };
    const last = { stream: 'items', slice: '2024-01-04', from: '2024-01-04', to: '2024-01-05', days: '2', drop: 'me' };
    const requests = sent.map(({ query, headers }) => [query, headers['x-page']]);
    // As Airbyte's CDK sends them. The response to the first one is `busy`.
    expect(requests).toHaveLength(5);
    for (const step of [first, last])
      for (const page of [undefined, '1'])
        expect(requests).toContainEqual([{ ...step, ...(page && { page }) }, page ?? 'None']);
    const [, token] = server.seen;
    expect([token?.headers.authorization, token?.body]).toEqual([
      `Basic ${btoa('me:k')}`,
      'grant_type=client_credentials',
    ]);
    expect(new Set(sent.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer abc']));
  });

  test.each([
    ['Login', null, 'Login) is not supported: components.py is missing'],
    ['Absent', components, 'Absent) is not supported: components.py has no class Absent'],
    ['Cloud', components, 'Cloud) is not supported: the sandbox has no boto3'],
    [
      'Other',
      components,
      'Other) is not supported: it extends none of NoAuth, DeclarativeAuthenticator, BasicHttpAuthenticator',
    ],
  ])('that cannot run are refused by name: %s', async (name, file, message) => {
    const authenticator = custom('Authenticator', name);
    const manifest = manifestOf([streamOf('items', { url, requester: { authenticator } })]);
    expect(check({ manifest, ...(file !== null && { components: file }) })).rejects.toThrow(message);
  });
});
