import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import type { StoredSecret } from '../../server/connectors/contract/connector.ts';
import { inTurn, json, makeItems, type SeenRequest, startHttpServer } from '../support/http-server.ts';
import { HttpRequester } from '../../server/connectors/airbyte-manifest/components/request-components.ts';
import { Templates } from '../../server/connectors/airbyte-manifest/interpolation/template.ts';
import { buildRequest } from '../../server/connectors/airbyte-manifest/requests/build-request.ts';
import joinedUrls from './cdk-joined-urls.json';
import { check, manifestOf, read, streamOf } from './manifest-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const url = server.url;
const items = makeItems(10);
const fields = { id: { type: 'integer' }, name: { type: ['null', 'string'] } };
const one = (more: object, rest: object = {}) => ({
  manifest: manifestOf([streamOf('items', { url, properties: fields, ...more })]),
  ...rest,
});
const option = (field_name: string, inject_into = 'request_parameter') => ({
  type: 'RequestOption',
  inject_into,
  field_name,
});
const wholeIds = items.map(({ id }) => String(id));

describe('a request', () => {
  /** Made by the CDK. */
  test('has the URL that Airbyte joins', () => {
    const scope = { config: {}, parameters: {} };
    for (const [url_base = '', path = '', expected] of joinedUrls) {
      const requester = HttpRequester.parse({ type: 'HttpRequester', url_base, path, http_method: 'GET' });
      const templates = new Templates(() => new Date());
      const page = { requester, templates, scope, injections: [], address: null, origins: new Set<string>() };
      expect([url_base, path, buildRequest(page).url.href]).toEqual([url_base, path, expected!]);
    }
  });

  test('is rendered from templates, with values as Airbyte would send them', async () => {
    server.on('/v1/items', json([{ id: 1 }]));
    const requester = {
      url_base: '{{ config["base"] }}/v1/',
      path: '/{{ parameters.what }}',
      $parameters: { what: 'items' },
      request_parameters: {
        day: "{{ format_datetime(config['since'], '%Y%m%d') }}",
        list: "{{ ['a', 'b'] }}",
        nothing: '{{ config.get("absent") }}',
        version: '1.10',
        truth: '{{ config.since is defined }}',
      },
      request_headers: { 'X-Version': '2.0', 'X-Sum': '{{ 1 + 2 }}' },
    };
    await read(one({ requester }, { config: { base: url, since: '2026-01-31T10:00:00Z' } }));
    const [seen] = server.seen;
    expect(seen?.path).toBe('/v1/items');
    expect(seen?.query).toEqual({ day: '20260131', list: 'b', version: '1.10', truth: 'True' });
    expect(seen?.headers['x-version']).toBe('2.0');
    expect(seen?.headers['x-sum']).toBe('3');
  });

  test('has a body in JSON or as a form', async () => {
    server.on('/items', json([{ id: 1 }]));
    const post = { http_method: 'POST' };
    await read(
      one({
        requester: {
          ...post,
          request_body_json: { query: '{"a": [1, {{ 1 + 1 }}]}', none: '{{ none }}', n: { m: '{{ true }}' } },
        },
      }),
    );
    await read(one({ requester: { ...post, request_body_data: { a: 'b c', n: 5 } } }));
    await read(one({ requester: { ...post, request_body: { type: 'RequestBodyJsonObject', value: { x: 'y' } } } }));
    expect(server.seen.map(({ body }) => body)).toEqual([
      '{"query":{"a":[1,2]},"n":{"m":true}}',
      'a=b+c&n=5',
      '{"x":"y"}',
    ]);
    expect(server.seen.map(({ headers }) => headers['content-type'])).toEqual([
      'application/json',
      'application/x-www-form-urlencoded',
      'application/json',
    ]);
  });
});

/** The first page is the one requested without a number. */
const numbered = ({ query }: SeenRequest) => {
  const [page, size] = [Number(query.page ?? 1), Number(query.limit)];
  return Response.json(items.slice((page - 1) * size, page * size));
};

describe('pages', () => {
  const paginator = (pagination_strategy: object, token: object, size = 'limit') => ({
    retriever: {
      paginator: {
        type: 'DefaultPaginator',
        pagination_strategy,
        page_token_option: token,
        page_size_option: option(size),
      },
    },
  });

  test('by number', async () => {
    server.on('/items', numbered);
    const { ids } = await read(
      one(paginator({ type: 'PageIncrement', page_size: 4, start_from_page: 1 }, option('page'))),
    );
    expect(ids).toEqual(wholeIds);
    expect(server.seen.map(({ query }) => [query.page, query.limit])).toEqual([
      [undefined, '4'],
      ['2', '4'],
      ['3', '4'],
    ] as never);
  });

  test('by offset, the size from the configuration, in a body', async () => {
    server.on('/items', ({ body }) => {
      const { page } = JSON.parse(body) as { page: { from?: number; size: number } };
      return Response.json({ data: items.slice(page.from ?? 0, (page.from ?? 0) + page.size) });
    });
    const nested = (name: string) => ({ type: 'RequestOption', inject_into: 'body_json', field_path: ['page', name] });
    const more = {
      requester: { http_method: 'POST' },
      selector: { extractor: { type: 'DpathExtractor', field_path: ['data'] } },
      retriever: {
        paginator: {
          type: 'DefaultPaginator',
          pagination_strategy: {
            type: 'OffsetIncrement',
            page_size: "{{ config['size'] }}",
            inject_on_first_request: true,
          },
          page_token_option: nested('from'),
          page_size_option: nested('size'),
        },
      },
    };
    expect((await read(one(more, { config: { size: 3 } }))).ids).toEqual(wholeIds);
    expect(server.seen[0]?.body).toBe('{"page":{"from":0,"size":3}}');
  });

  test.each([
    ['of the answer', '{{ response.meta.next }}', '{{ not response.meta.next }}'],
    ['of the last record', "{{ last_record['id'] + 1 }}", '{{ last_page_size < 4 }}'],
  ])('by a cursor %s', async (_, cursor_value, stop_condition) => {
    server.on('/items', ({ query }) => {
      const from = Number(query.after ?? 0);
      return Response.json({ data: items.slice(from, from + 4), meta: { next: from + 4 < 10 ? from + 4 : null } });
    });
    const more = paginator({ type: 'CursorPagination', page_size: 4, cursor_value, stop_condition }, option('after'));
    const selector = { extractor: { type: 'DpathExtractor', field_path: ['data'] } };
    expect((await read(one({ ...more, selector }))).ids).toEqual(wholeIds);
    expect(server.seen).toHaveLength(3);
  });

  test('by a URL of the response or the Link header, relative or absolute, but never to another host', async () => {
    const elsewhere = startHttpServer();
    elsewhere.on('/items', json([]));
    const address = (cursor_value: string) => ({
      retriever: {
        paginator: {
          type: 'DefaultPaginator',
          pagination_strategy: { type: 'CursorPagination', cursor_value },
          page_token_option: { type: 'RequestPath' },
        },
      },
    });
    server.on('/items', ({ query }) => {
      const at = Number(query.page ?? 1);
      const next = at < 3 ? `<${url}/items?page=${at + 1}>; rel="next"; results="true"` : '';
      return Response.json([{ id: at }], { headers: { link: next } });
    });
    expect((await read(one(address('{{ headers["link"]["next"]["url"] }}')))).ids).toEqual(['1', '2', '3']);
    server.on('/items', inTurn(json([{ id: 1 }]), json([{ id: 2 }])));
    expect((await read(one(address('{{ "items?page=2" if last_record.id == 1 else none }}')))).ids).toEqual(['1', '2']);
    server.on('/items', json([{ id: 1 }]));
    const foreign = read(one(address(`${elsewhere.url}/items`)));
    await expect(foreign).rejects.toMatchObject({ code: 'foreign_address' });
    expect(elsewhere.seen).toHaveLength(0);
    await elsewhere.close();
  });

  test.each([
    ['/v2/items?page=2', '/v2/items'],
    ['items?page=2', '/v2/items'],
    ['?page=2', '/v2/'],
  ])('by the address %s below a base with a path', async (next, path) => {
    server.on('/v2/*', ({ query }) => Response.json(query.page ? [{ id: 2 }] : [{ id: 1 }]));
    const more = {
      url: `${url}/v2`,
      path: '/items',
      ...paginator(
        { type: 'CursorPagination', page_size: 1, cursor_value: `{{ '${next}' if last_record.id == 1 else '' }}` },
        { type: 'RequestPath' },
      ),
    };
    expect((await read(one(more))).ids).toEqual(['1', '2']);
    expect(server.seen.at(-1)?.path).toBe(path);
  });

  test.each([
    [
      'the last record after the transformations',
      '{{ last_record.id + 1 if last_record.id < 3 else none }}',
      undefined,
    ],
    ['a condition on nothing', '{{ last_record.id + 1 }}', "{{ 'next' not in response.meta and last_record.id > 0 }}"],
  ])('by %s', async (_, cursor_value, stop_condition) => {
    server.on('/items', ({ query }) => Response.json({ data: [{ ID: Number(query.page ?? 1) }], meta: null }));
    const more = {
      ...paginator(
        { type: 'CursorPagination', page_size: 1, cursor_value, ...(stop_condition && { stop_condition }) },
        option('page'),
      ),
      selector: { extractor: { type: 'DpathExtractor', field_path: ['data'] } },
      transformations: [{ type: 'KeysToLower' }],
    };
    expect((await read(one(more))).ids).toEqual(stop_condition ? ['1'] : ['1', '2', '3']);
  });

  test('may be equal a few times', async () => {
    server.on('/items', ({ query }) => Response.json(Number(query.page ?? 0) < 4 ? [{ id: 1 }] : []));
    expect((await read(one(paginator({ type: 'PageIncrement', page_size: 1 }, option('page'))))).ids).toHaveLength(4);
  });

  test('emptied by a filter are not the last ones', async () => {
    server.on('/items', numbered);
    const more = paginator({ type: 'PageIncrement', page_size: 2, start_from_page: 1 }, option('page'));
    const selector = { record_filter: { type: 'RecordFilter', condition: '{{ record.id > 7 }}' } };
    expect((await read(one({ ...more, selector }))).ids).toEqual(['8', '9']);
  });
});

describe('signing', () => {
  const secrets = { key: 'the-key', user: 'Zoë', password: 'p:w', creds: { kind: 'b' } };
  const only = (allowed: (request: SeenRequest) => boolean) => (request: SeenRequest) =>
    allowed(request) ? Response.json([{ id: 1 }]) : Response.json({ message: 'who are you?' }, { status: 401 });
  const key = '{{ config["key"] }}';
  const bearer = { type: 'BearerAuthenticator', api_token: key };

  const isSigned = (authorization: string) => {
    const [prefix, head = '', body = '', signature] = authorization.split(/[ .]/);
    const now = Date.parse('2026-11-21T10:00:00Z') / 1000;
    const decoded = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as unknown;
    return (
      prefix === 'Token' &&
      Bun.deepEquals(decoded(head), { typ: 'JWT', kid: 'Zoë', alg: 'HS256' }) &&
      Bun.deepEquals(decoded(body), { scope: 'read', iss: 'us', iat: now, exp: now + 1200, nbf: now }) &&
      signature === createHmac('sha256', 'the-key').update(`${head}.${body}`).digest('base64url')
    );
  };

  test.each([
    [bearer, ({ headers }: SeenRequest) => headers.authorization === 'Bearer the-key'],
    [
      { type: 'ApiKeyAuthenticator', api_token: key, header: 'X-Key' },
      ({ headers }: SeenRequest) => headers['x-key'] === 'the-key',
    ],
    [
      { type: 'ApiKeyAuthenticator', api_token: `T ${key}`, inject_into: option('k') },
      ({ query }: SeenRequest) => query.k === 'T the-key',
    ],
    [
      { type: 'BasicHttpAuthenticator', username: '{{ config.user }}', password: '{{ config.password }}' },
      ({ headers }: SeenRequest) => headers.authorization === `Basic ${Buffer.from('Zoë:p:w').toString('base64')}`,
    ],
    [
      {
        type: 'SelectiveAuthenticator',
        authenticator_selection_path: ['creds', 'kind'],
        authenticators: { a: { type: 'NoAuth' }, b: bearer },
      },
      ({ headers }: SeenRequest) => headers.authorization === 'Bearer the-key',
    ],
    [
      { type: 'ApiKeyAuthenticator', api_token: key, inject_into: option('k', 'body_data') },
      ({ body }: SeenRequest) => body === 'k=the-key',
    ],
    [
      { type: 'ApiKeyAuthenticator', api_token: key, inject_into: option('k', 'body_json') },
      ({ body }: SeenRequest) => body === '{"k":"the-key"}',
    ],
    [
      {
        type: 'JwtAuthenticator',
        secret_key: key,
        algorithm: 'HS256',
        header_prefix: 'Token',
        jwt_headers: { kid: '{{ config.user }}' },
        jwt_payload: { iss: `{{ json_loads('{"name": "us"}')['name'] }}` },
        additional_jwt_payload: { scope: 'read' },
      },
      ({ headers }: SeenRequest) => isSigned(headers.authorization ?? ''),
    ],
  ])('%p', async (authenticator, allowed) => {
    server.on('/items', only(allowed));
    const http_method = JSON.stringify(authenticator).includes('body_') ? 'POST' : 'GET';
    expect((await read(one({ requester: { authenticator, http_method } }, { secrets }))).ids).toEqual(['1']);
    const none = check(one({ requester: { authenticator: { type: 'NoAuth' } } }, { secrets }));
    await expect(none).rejects.toMatchObject({ type: 'auth_error', code: 'unauthorized' });
  });

  test('a token for a signed statement', async () => {
    server.on('/token', ({ body }) => {
      const { grant_type, assertion = '', ...rest } = Object.fromEntries(new URLSearchParams(body));
      const payload = JSON.parse(Buffer.from(assertion.split('.')[1] ?? '', 'base64url').toString());
      const isWhole = grant_type === 'urn:ietf:params:oauth:grant-type:jwt-bearer' && Object.keys(rest).length === 0;
      return Response.json({ access_token: isWhole && payload.iss === 'us' ? 't1' : 'refused' });
    });
    server.on(
      '/items',
      only(({ headers }) => headers.authorization === 'Bearer t1'),
    );
    const authenticator = {
      type: 'OAuthAuthenticator',
      token_refresh_endpoint: `${url}/token`,
      use_profile_assertion: true,
      profile_assertion: { type: 'JwtAuthenticator', secret_key: key, algorithm: 'HS256', jwt_payload: { iss: 'us' } },
    };
    expect((await read(one({ requester: { authenticator } }, { secrets }))).ids).toEqual(['1']);
  });

  test('a session of username and password, where the token of the configuration is refused', async () => {
    server.on('/session', ({ body }) =>
      Response.json(body === '{"username":"Zoë","password":"p:w"}' ? { id: 's1' } : {}),
    );
    server.on(
      '/items',
      only(({ headers }) => headers['x-session'] === 's1'),
    );
    const authenticator = {
      type: 'LegacySessionTokenAuthenticator',
      header: 'X-Session',
      login_url: 'session',
      validate_session_url: 'me',
      username: '{{ config.user }}',
      password: '{{ config.password }}',
      session_token: '{{ config.old }}',
      session_token_response_key: 'id',
    };
    const settings = { secrets: { ...secrets, old: 'expired' } };
    expect((await read(one({ requester: { authenticator } }, settings))).ids).toEqual(['1']);
    expect(server.seen.map(({ path }) => path)).toEqual(['/items', '/session', '/items']);
  });

  test('OAuth 2 with a refresh token, which is stored again when the service rotates it', async () => {
    const forms: URLSearchParams[] = [];
    server.on('/token', ({ body, headers }) => {
      forms.push(new URLSearchParams(body));
      return Response.json({ token: `t-${forms.length}-${headers['x-more']}`, refresh_token: 'r2', expires_in: 3600 });
    });
    server.on(
      '/items',
      only(({ headers }) => headers.authorization === 'Bearer t-1-yes'),
    );
    const authenticator = {
      type: 'OAuthAuthenticator',
      token_refresh_endpoint: `${url}/token`,
      client_id: 'me',
      client_secret: key,
      refresh_token: '{{ config.refresh }}',
      access_token_name: 'token',
      scopes: ['a', 'b'],
      refresh_request_body: { audience: '{{ config.user }}' },
      refresh_request_headers: { 'X-More': 'yes' },
    };
    const rotated: string[][] = [];
    const replace = async (used: string, next: string) => rotated.push([used, next]) > 0;
    const rotateSecret = <Result>(current: string, work: (stored: StoredSecret) => Promise<Result>) =>
      work({ current, replace });
    const settings = one({ requester: { authenticator } }, { secrets: { ...secrets, refresh: 'r1' } });
    const { ids, warnings } = await read(settings, { context: { rotateSecret } });
    expect(ids).toEqual(['1']);
    expect(Object.fromEntries(forms[0] ?? [])).toEqual({
      grant_type: 'refresh_token',
      client_id: 'me',
      client_secret: 'the-key',
      refresh_token: 'r1',
      scopes: 'b',
      audience: 'Zoë',
    });
    expect([rotated, warnings]).toEqual([[['r1', 'r2']], []]);
  });

  test('OAuth 2 with client credentials, as JSON', async () => {
    server.on('/token', ({ body }) =>
      Response.json({ access_token: (JSON.parse(body) as { grant_type: string }).grant_type }),
    );
    server.on(
      '/items',
      only(({ headers }) => headers.authorization === 'Bearer client_credentials'),
    );
    const authenticator = {
      type: 'OAuthAuthenticator',
      token_refresh_endpoint: `${url}/token`,
      client_id: 'you',
      client_secret: key,
      grant_type: 'client_credentials',
      refresh_request_headers: { 'Content-Type': 'application/json' },
    };
    expect((await read(one({ requester: { authenticator } }, { secrets }))).ids).toEqual(['1']);
  });

  test('a session token, fetched once and again after a rejection', async () => {
    let logins = 0;
    server.on('/login', ({ body }) => Response.json({ session: { id: `${body}-${(logins += 1)}` } }));
    server.on(
      '/items',
      only(({ headers }) => headers['x-session'] === `user=Zo%C3%AB-${logins}`),
    );
    const authenticator = {
      type: 'SessionTokenAuthenticator',
      login_requester: {
        type: 'HttpRequester',
        url_base: url,
        path: '/login',
        http_method: 'POST',
        request_body_data: { user: '{{ config.user }}' },
      },
      session_token_path: ['session', 'id'],
      expiration_duration: 'PT1H',
      request_authentication: { type: 'ApiKey', inject_into: option('X-Session', 'header') },
    };
    const settings = one({ requester: { authenticator } }, { secrets });
    await read(settings);
    await read(settings);
    expect(logins).toBe(1);
    server.on(
      '/items',
      only(({ headers }) => headers['x-session'] === 'user=Zo%C3%AB-2'),
    );
    expect((await read(settings)).ids).toEqual(['1']);
    expect(logins).toBe(2);
  });
});
