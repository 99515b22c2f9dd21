import { afterAll, beforeEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { json, startHttpServer } from '../support/http-server.ts';
import normalized from './cdk-normalized.json';
import { check, manifestOf, read, streamOf } from './manifest-support.ts';
import { PythonSession } from '../../server/connectors/airbyte-manifest/python/session.ts';

// Retrievers and normalizations in Python. Rows and requests are those of Airbyte's CDK 7.39.1.

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const { url } = server;
const components = readFileSync(join(import.meta.dir, 'retrievers.py'), 'utf8');
const custom = (type: string, name: string, more: object = {}) => ({
  type: `Custom${type}`,
  class_name: `source_declarative_manifest.components.${name}`,
  ...more,
});
const option = { type: 'RequestOption', inject_into: 'request_parameter' };
const config = { url: `${url}/`, key: 'k', auth: 'token' };
const selector = (field: string) => ({
  type: 'RecordSelector',
  extractor: { type: 'DpathExtractor', field_path: [field] },
});
const settings = (stream: object) => ({ manifest: manifestOf([stream as never]), components, config });

test('a retriever restarts when an error handler in Python says so', async () => {
  let failures = 1;
  const link = { headers: { link: '</companies>; rel="next"; x="1", </other>; rel=last' } };
  server.on('/companies', ({ query: { scroll } }) => {
    if (scroll === 'a' && failures-- > 0) return new Response('', { status: 500 });
    const page = { undefined: 1, a: 3, b: 5 }[String(scroll)] ?? 7;
    return Response.json({ data: [{ id: page }, { id: page + 1 }], scroll: scroll === undefined ? 'a' : 'b' }, link);
  });
  const stream = streamOf('companies', {
    retriever: {
      ...custom('Retriever', 'ScrollRetriever'),
      requester: {
        type: 'HttpRequester',
        url_base: url,
        path: '/companies',
        request_parameters: { size: '2' },
        error_handler: custom('ErrorHandler', 'RestartingHandler', {
          backoff_strategies: [{ type: 'ConstantBackoffStrategy', backoff_time_in_seconds: 0.01 }],
        }),
      },
      record_selector: {
        ...selector('data'),
        record_filter: { type: 'RecordFilter', condition: '{{ record.id != 4 }}' },
      },
      paginator: {
        type: 'DefaultPaginator',
        page_token_option: { ...option, field_name: 'scroll' },
        pagination_strategy: custom('PaginationStrategy', 'UntilSameToken', { cursor_value: '{{ response.scroll }}' }),
      },
    },
    properties: { id: { type: 'integer' } },
  });
  const { ids } = await read(settings(stream));
  expect(ids).toEqual(['1', '2', '3', '1', '2', '3', '5', '6']);
  expect(server.seen.map(({ query }) => query.scroll ?? null)).toEqual([null, 'a', 'a', null, 'a', 'b']);
  expect(new Set(server.seen.map(({ query }) => query.size))).toEqual(new Set(['2']));
  // Of a check, the retriever ends after the first page.
  await check(settings(stream));
});

test('a retriever sends requests of its own for what it reads', async () => {
  server.on('/channels', ({ query }) =>
    Response.json({ channels: [{ id: `c${query.page ?? 0}`, is_member: query.page === '1' }] }),
  );
  server.on('/join', json({ ok: true }));
  const stream = streamOf('channels', {
    retriever: {
      class_name: 'source_shop.components.JoiningRetriever',
      type: 'CustomRetriever',
      requester: { type: 'HttpRequester', url_base: url, path: '/channels' },
      record_selector: selector('channels'),
      paginator: {
        type: 'DefaultPaginator',
        page_token_option: { ...option, field_name: 'page' },
        pagination_strategy: {
          type: 'CursorPagination',
          cursor_value: "{{ 1 if last_record.id == 'c0' else '' }}",
        },
      },
    },
    transformations: [{ type: 'AddFields', fields: [{ path: ['added'], value: 'never' }] }],
    properties: { id: { type: 'string' }, added: { type: 'string' } },
  });
  const { rows } = await read(settings(stream));
  expect(rows).toEqual([
    ['c0', null],
    ['c1', null],
  ]);
  const joined = server.seen.filter(({ path }) => path === '/join');
  expect(joined.map(({ body, headers }) => [body, headers.authorization])).toEqual([['{"channel": "c0"}', 'Bearer k']]);
});

test('extractors read with retrievers, transformations with requesters of the manifest', async () => {
  server.on(
    '/deals',
    json({
      results: [
        { id: 'd1', amount: ' 1.50' },
        { id: 'd2', amount: '' },
      ],
    }),
  );
  server.on('/associations/deal/contacts', json({ results: [{ from: 'd1', to: [7, 8] }] }));
  server.on('/associations/deal/lines', json({ results: [{ from: 'd2', to: [9] }] }));
  for (const id of ['d1', 'd2']) server.on(`/details/${id}`, json({ name: ` ${id} ` }));
  server.on('/properties', json({ properties: [{ name: 'amount', type: 'number' }] }));
  const stream = streamOf('deals', {
    retriever: {
      requester: { type: 'HttpRequester', url_base: url, path: '/deals' },
      record_selector: {
        type: 'RecordSelector',
        extractor: custom('RecordExtractor', 'Associated', {
          field_path: ['results'],
          entity: "{{ parameters['entity'] }}",
          associations: ['contacts', 'lines'],
          $parameters: { entity: 'deal' },
        }),
        schema_normalization: custom('SchemaNormalization', 'Trimmed'),
      },
    },
    transformations: [
      custom('Transformation', 'FromEndpoint', {
        requester: {
          type: 'HttpRequester',
          url_base: url,
          path: "/details/{{ stream_slice['parent_id'] }}",
          authenticator: { type: 'ApiKeyAuthenticator', header: 'x-key', api_token: '{{ config.key }}' },
        },
        record_selector: { type: 'RecordSelector', extractor: { type: 'DpathExtractor', field_path: [] } },
        $parameters: { name: 'deals' },
      }),
    ],
    schema_loader: [
      {
        type: 'InlineSchemaLoader',
        schema: {
          properties: { id: { type: 'string' }, name: { type: ['null', 'string'] }, contacts: { type: 'array' } },
        },
      },
      {
        type: 'DynamicSchemaLoader',
        retriever: {
          type: 'SimpleRetriever',
          requester: { type: 'HttpRequester', url_base: url, path: '/properties' },
          record_selector: {
            type: 'RecordSelector',
            extractor: { type: 'DpathExtractor', field_path: [] },
          },
        },
        schema_type_identifier: { schema_pointer: ['properties'], key_pointer: ['name'], type_pointer: ['type'] },
        schema_transformations: [custom('Transformation', 'Renamed')],
      },
    ],
  });
  const { rows } = await read(settings(stream));
  expect(rows).toEqual([
    [null, 'd1', 'd1', '["7","8"]'],
    [null, 'd2', 'd2', null],
  ]);
  const sent = server.seen.map(({ path, body, headers }) => [
    path,
    body,
    headers.authorization ?? headers['x-key'] ?? null,
  ]);
  const ids = '{"inputs": [{"id": "d1"}, {"id": "d2"}]}';
  // The schema is requested by the discovery and for the normalization.
  expect(sent.filter(([path]) => path !== '/properties')).toEqual([
    ['/deals', '', null],
    ['/associations/deal/contacts', ids, 'Bearer k'],
    ['/associations/deal/lines', ids, 'Bearer k'],
    ['/details/d1', '', 'k'],
    ['/details/d2', '', 'k'],
  ]);
});

test('records are converted to their schema as by the CDK', async () => {
  const stop = new AbortController();
  const options = {
    files: { 'components.py': components },
    config: {},
    signal: stop.signal,
    redact: (text: string) => text,
  };
  const python = new PythonSession(options, () => ({}));
  const component = { class_name: 'components.Trimmed' };
  for (const [schema, record, expected] of normalized as [object, object, object][])
    expect([schema, await python.call(component, 'normalize', [[structuredClone(record)], schema])]).toEqual([
      schema,
      [expected],
    ]);
  stop.abort();
});
