import { afterAll, describe, expect, test } from 'bun:test';
import { draftDefinition } from '../../server/connectors/http-api/openapi/draft-definition.ts';
import { parseDefinition } from '../../server/connectors/http-api/parse-definition.ts';
import { makeItems, paged, startHttpServer } from '../support/http-server.ts';
import { readAll } from './http-support.ts';

const text = { type: 'string' };
const whole = { type: 'integer' };
const object = (properties: object) => ({ type: 'object', properties });
const list = (items: object) => ({ type: 'array', items });
const query = (name: string, schema: object = text, more: object = {}) => ({ name, in: 'query', schema, ...more });
const get = (schema: object, parameters: object[] = [], headers?: object) => ({
  get: { parameters, responses: { 200: { headers, content: { 'application/json': { schema } } } } },
});
const record = object({ id: whole, name: text });
const api = (paths: object, more: object = {}) =>
  JSON.stringify({ openapi: '3.1.0', servers: [{ url: 'https://shop.example.com/v2' }], paths, ...more });

/** The draft as the connector reads it. */
function drafted(document: string) {
  const draft = draftDefinition(document);
  const { definition } = parseDefinition(draft.definition);
  return { ...draft, streams: definition!.streams, parsed: definition! };
}
const streamOf = (operation: object, path = '/orders') => drafted(api({ [path]: operation })).streams[0]!;

describe('pagination is guessed from names', () => {
  const cases: [string, object, object, Record<string, string>][] = [
    [
      'a page number and a size',
      get(list(record), [query('page', whole), query('per_page', { ...whole, maximum: 200 })]),
      { type: 'page_number', start: 1, size: 200 },
      { page: '{{ page.number }}', per_page: '{{ page.size }}' },
    ],
    [
      'pages counted from 0',
      get(object({ content: list(record) }), [query('page', { ...whole, default: 0 })]),
      { type: 'page_number', start: 0, size: null },
      { page: '{{ page.number }}' },
    ],
    [
      'an offset',
      get(object({ items: list(record) }), [query('offset', whole), query('limit', { ...whole, default: 50 })]),
      { type: 'offset', size: 50 },
      { offset: '{{ page.offset }}', limit: '{{ page.size }}' },
    ],
    [
      'a token',
      get(object({ items: list(record), meta: object({ nextPageToken: text, has_more: { type: 'boolean' } }) }), [
        query('pageToken'),
      ]),
      { type: 'cursor', token: 'meta.nextPageToken', has_more: 'meta.has_more' },
      { pageToken: '{{ page.token }}' },
    ],
    [
      'the key of the last record',
      get(object({ data: list(record), has_more: { type: 'boolean' } }), [query('starting_after')]),
      { type: 'cursor', token: 'data[-1].id', has_more: 'has_more' },
      { starting_after: '{{ page.token }}' },
    ],
    [
      'a URL in the body',
      get(object({ results: list(record), next: { type: ['string', 'null'], format: 'uri' } }), [query('page', whole)]),
      { type: 'next_address', address: 'next' },
      {},
    ],
    [
      'a link in the body',
      get(object({ results: list(record), _links: object({ next: object({ href: text }) }) })),
      { type: 'next_address', address: '_links.next.href' },
      {},
    ],
    [
      'a Link header',
      get(list(record), [query('page', whole)], { Link: { schema: text } }),
      { type: 'link_header', rel: 'next' },
      {},
    ],
    [
      'a name that JMESPath has to quote',
      get(object({ value: list(record), '@odata.nextLink': text })),
      { type: 'next_address', address: '"@odata.nextLink"' },
      {},
    ],
    ['nothing', get(list(record)), { type: 'none' }, {}],
  ];
  test.each(cases)('%s', (_way, operation, pagination, sent) => {
    const stream = streamOf(operation);
    expect(stream.pagination).toMatchObject(pagination);
    expect(stream.request.query).toEqual(sent);
    expect(stream.primary_key).toBe('id');
  });
});

describe('streams', () => {
  test('have the list of the response, by reference and in an envelope', () => {
    const components = { schemas: { Order: { allOf: [record, object({ total: text })] } } };
    const paths = {
      '/orders': get(object({ data: list({ $ref: '#/components/schemas/Order' }), errors: list(text) })),
      '/deep': get(object({ response: object({ rows: list(record) }) })),
    };
    const { streams } = drafted(api(paths, { components }));
    expect(streams.map(({ name, records, primary_key }) => [name, records, primary_key])).toEqual([
      ['orders', 'data', 'id'],
      ['deep', 'response.rows', 'id'],
    ]);
  });

  test('take the parameters of their path from a parent, or from the settings', () => {
    const line = object({ sku: text });
    const { streams, config, left_out } = drafted(
      api({
        '/{shop}/orders/{orderId}/lines/{line}/taxes': get(list(line)),
        '/{shop}/orders/{orderId}/lines': get(list(line), [query('currency', text, { required: true })]),
        '/{shop}/orders': get(list(record)),
        '/{shop}/orders/{orderId}': get(record),
        '/tags': get(list(text)),
        '/report': { post: {} },
      }),
    );
    expect(streams).toMatchObject([
      { name: 'orders', request: { path: '/{{ config.shop }}/orders' } },
      {
        name: 'lines',
        parent: { stream: 'orders', fields: { orderId: 'id' } },
        request: {
          path: '/{{ config.shop }}/orders/{{ parent.id }}/lines',
          query: { currency: '{{ config.currency }}' },
        },
      },
    ]);
    expect(config.toSorted()).toEqual(['currency', 'shop']);
    expect(left_out).toEqual([
      { path: '/{shop}/orders/{orderId}', reason: 'The response is described as a single object, without a list' },
      { path: '/tags', reason: 'The response is a list of single values' },
      {
        path: '/{shop}/orders/{orderId}/lines/{line}/taxes',
        reason: 'The records of /{shop}/orders/{orderId}/lines have no value for orderId, line',
      },
    ]);
  });

  test('are incremental where a parameter and a field show changes, and have names of their own', () => {
    const changed = object({ uuid: text, updatedAt: { type: 'string', format: 'date-time' } });
    const { streams } = drafted(
      api({
        '/a/items': get(list(changed), [query('updated_since', { ...text, format: 'date' })]),
        '/b/items': get(list(record)),
      }),
    );
    expect(streams).toMatchObject([
      {
        name: 'items',
        primary_key: 'uuid',
        request: { query: { updated_since: '{{ window.start }}' } },
        incremental: { cursor_field: 'updatedAt', format: 'date' },
      },
      { name: 'b_items' },
    ]);
  });

  test('say what was guessed, in comments too', () => {
    const { definition, streams } = draftDefinition(api({ '/orders': get(list(record), [query('page', whole)]) }));
    expect(streams).toEqual([
      { name: 'orders', path: '/orders', assumptions: ['Pages by the parameter page', 'Primary key id'] },
    ]);
    expect(definition).toContain('# Pages by the parameter page\n');
  });
});

test.each([
  [{}, [], 'No authentication: the document has no security scheme'],
  [{ sid: { type: 'apiKey', in: 'cookie', name: 's' } }, ['sid'], 'No authentication: sid cannot be expressed'],
  [{ main: { type: 'http', scheme: 'bearer' } }, ['main'], 'Authentication by the security scheme main'],
  [
    { main: { type: 'http', scheme: 'bearer' }, other: { type: 'http', scheme: 'basic' } },
    [],
    'Authentication by the security scheme main, which the document does not require in general. Others in the document: other',
  ],
])('the guessed authentication has a comment, too: %j, required %j', (securitySchemes, required, comment) => {
  const security = required.map((name) => ({ [name]: [] }));
  const { definition, assumptions, parsed } = drafted(
    api({ '/orders': get(list(record)) }, { components: { securitySchemes }, security }),
  );
  expect(assumptions).toEqual([comment]);
  expect(definition).toContain(`# ${comment}\n`);
  expect(definition.includes(`# ${comment}\nauthentication:\n`)).toBe(parsed.authentication.type !== 'none');
});

test.each([
  [
    { type: 'http', scheme: 'bearer' },
    { type: 'bearer', token: '{{ secrets.token }}' },
  ],
  [
    { type: 'http', scheme: 'Basic' },
    { type: 'basic', username: '{{ config.username }}' },
  ],
  [
    { type: 'apiKey', in: 'header', name: 'X-Key' },
    { type: 'api_key', in: 'header', name: 'X-Key' },
  ],
  [
    {
      type: 'oauth2',
      flows: { clientCredentials: { tokenUrl: 'https://id.example.com/token', scopes: { read: '' } } },
    },
    { type: 'oauth2_client_credentials', token_url: 'https://id.example.com/token', scope: 'read' },
  ],
  [
    { type: 'oauth2', flows: { authorizationCode: { tokenUrl: 'https://id/t', authorizationUrl: 'https://id/a' } } },
    { type: 'oauth2_refresh_token', token_url: 'https://id/t', authorization_url: 'https://id/a' },
  ],
])('authentication: %p', (scheme, authentication) => {
  const components = { securitySchemes: { cookie: { type: 'apiKey', in: 'cookie', name: 'sid' }, main: scheme } };
  const { parsed } = drafted(
    api({ '/orders': get(list(record)) }, { components, security: [{ cookie: [] }, { main: [] }] }),
  );
  expect(parsed.authentication).toMatchObject(authentication);
});

test('Swagger 2 in YAML, with the host and the schema in their old places', () => {
  const { parsed, streams } = drafted(`
swagger: '2.0'
host: api.example.com
basePath: /v1/
paths:
  /orders:
    get:
      parameters: [{ name: page, in: query, type: integer }]
      responses: { 200: { schema: { type: array, items: { type: object, properties: { id: { type: integer } } } } } }
`);
  expect(parsed.base_url).toBe('https://api.example.com/v1');
  expect(streams[0]?.pagination.type).toBe('page_number');
});

test.each([
  ['[', 'invalid_openapi'],
  ['{"info": {}}', 'invalid_openapi'],
  [api({}), 'no_lists'],
  [
    api(
      { '/a': get({ $ref: '#/components/schemas/a' }) },
      { components: { schemas: { a: { $ref: '#/components/schemas/a' } } } },
    ),
    'no_lists',
  ],
  [api({ '/a': get(list(record)) }).replace('3.1.0', '4.0.0'), 'invalid_openapi'],
])('refuses %p', (document, code) => {
  expect(() => draftDefinition(document)).toThrow(expect.objectContaining({ code }));
});

describe('a service that the document describes', () => {
  const server = startHttpServer();
  afterAll(() => server.close());

  test('is read as a whole by the draft', async () => {
    const items = makeItems(250);
    server.on('/items', paged.byNumber(items));
    const operation = get(list(record), [query('page', whole), query('limit', { ...whole, maximum: 100 })]);
    const { parsed } = drafted(api({ '/items': operation }, { servers: [{ url: server.url }] }));
    const { rows } = await readAll({ ...parsed, base_url: server.url, streams: parsed.streams });
    expect(rows).toHaveLength(250);
  });
});
