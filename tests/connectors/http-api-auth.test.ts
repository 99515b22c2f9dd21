import { afterAll, beforeEach, expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import { AuthenticationError, RetryableError } from '../../server/connectors/contract/errors.ts';
import { json, type SeenRequest, startHttpServer } from '../support/http-server.ts';
import { readAll } from './http-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const stream = { name: 'items', request: { path: '/items' } };
const read = (authentication: object, more: object = {}) =>
  readAll({ base_url: server.url, authentication, streams: [stream], ...more });
const secrets = { token: 'a-secret-token', password: 'pässword:x' };
const only = (allowed: (request: SeenRequest) => boolean) => (request: SeenRequest) =>
  allowed(request) ? Response.json([{ id: 1 }]) : Response.json({}, { status: 401 });

const AT = Date.parse('2026-11-21T10:00:00Z') / 1000;
const hmacOf = (text: string, encoding: 'hex' | 'base64url') =>
  createHmac('sha256', secrets.token).update(text).digest(encoding);

test('a key that cannot sign is an error of the settings', async () => {
  const reading = read({ type: 'jwt', algorithm: 'RS256', key: '{{ secrets.token }}' }, { secrets });
  await expect(reading).rejects.toMatchObject({ type: 'config_error', code: 'invalid_key' });
});

test.each([
  [
    { type: 'bearer', token: '{{ secrets.token }}' },
    ({ headers }: SeenRequest) => headers.authorization === 'Bearer a-secret-token',
  ],
  [
    { type: 'api_key', in: 'header', name: 'X-Api-Key', value: '{{ secrets.token }}' },
    ({ headers }: SeenRequest) => headers['x-api-key'] === 'a-secret-token',
  ],
  [
    { type: 'api_key', in: 'query', name: 'key', value: '{{ secrets.token }}' },
    ({ query }: SeenRequest) => query.key === 'a-secret-token',
  ],
  [
    { type: 'basic', username: '{{ config.user }}', password: '{{ secrets.password }}' },
    ({ headers }: SeenRequest) => headers.authorization === `Basic ${Buffer.from('Zoë:pässword:x').toString('base64')}`,
  ],
  [
    { type: 'jwt', algorithm: 'HS256', key: '{{ secrets.token }}', claims: { iss: '{{ config.user }}', n: 1 } },
    ({ headers }: SeenRequest) => {
      const [head = '', body = '', signature] = (headers.authorization ?? '').replace('Bearer ', '').split('.');
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString() || '{}') as object;
      const expected = { iss: 'Zoë', n: 1, iat: AT, nbf: AT, exp: AT + 1200 };
      return Bun.deepEquals(claims, expected) && signature === hmacOf(`${head}.${body}`, 'base64url');
    },
  ],
  [
    {
      type: 'hmac',
      key: '{{ secrets.token }}',
      message: '{{ config.user }} {{ request.method }}{{ request.path }}?{{ request.query }}{{ request.timestamp }}',
      header: 'X-Signature',
      prefix: 'sha256=',
      timestamp_header: 'X-Time',
    },
    ({ headers }: SeenRequest) =>
      headers['x-time'] === String(AT) && headers['x-signature'] === `sha256=${hmacOf(`Zoë GET/items?${AT}`, 'hex')}`,
  ],
  [
    {
      type: 'aws_sigv4',
      access_key_id: 'AK',
      secret_access_key: '{{ secrets.token }}',
      region: 'eu',
      service: 'execute-api',
    },
    ({ headers }: SeenRequest) =>
      /^AWS4-HMAC-SHA256 Credential=AK\/20261121\/eu\/execute-api\/aws4_request, SignedHeaders=[\w;-]+, Signature=[0-9a-f]{64}$/.test(
        headers.authorization ?? '',
      ) && headers['x-amz-date'] === '20261121T100000Z',
  ],
] as const)('%p signs every request', async (authentication, allowed) => {
  server.on('/items', only(allowed));
  expect((await read(authentication, { secrets, config: { user: 'Zoë' } })).rows).toEqual([['1']]);
  await expect(read({ type: 'none' })).rejects.toBeInstanceOf(AuthenticationError);
});

let clients = 0;
/** A token endpoint and the API it protects. Each test is a separate client, since tokens are cached per process. */
function tokenService(answer: (count: number, form: URLSearchParams, request: SeenRequest) => Response) {
  let count = 0;
  const valid = new Set<string>();
  clients += 1;
  server.on('/token', (request) => answer((count += 1), new URLSearchParams(request.body), request));
  server.on(
    '/items',
    only(({ headers }) => valid.has(headers.authorization ?? '')),
  );
  const give = (token: string, more: object = {}) => {
    valid.add(`Bearer ${token}`);
    return Response.json({ access_token: token, token_type: 'bearer', ...more });
  };
  const authentication = {
    type: 'oauth2_client_credentials',
    token_url: `${server.url}/token`,
    client_id: `client ${clients}`,
    client_secret: '{{ secrets.token }}',
  };
  return { valid, give, authentication, asked: () => server.seen.filter(({ path }) => path === '/token').length };
}

test('client credentials fetch one token for concurrent and later reads', async () => {
  const service = tokenService((count, form) => {
    expect(Object.fromEntries(form)).toMatchObject({
      grant_type: 'client_credentials',
      client_secret: 'a-secret-token',
    });
    return service.give(`token ${count}`, { expires_in: 3600 });
  });
  const reads = await Promise.all(Array.from({ length: 5 }, () => read(service.authentication, { secrets })));
  expect(reads.map(({ rows }) => rows)).toEqual(Array.from({ length: 5 }, () => [['1']]));
  await read(service.authentication, { secrets });
  expect(service.asked()).toBe(1);
});

test('client id and secret are sent in the header if the service requires it', async () => {
  const service = tokenService((_, form, { headers }) => {
    expect(form.has('client_secret')).toBe(false);
    expect(headers.authorization).toStartWith('Basic ');
    return service.give('by header');
  });
  expect((await read({ ...service.authentication, credentials_in: 'basic_header' }, { secrets })).rows).toHaveLength(1);
});

test('a token revoked early is replaced once; a second rejection ends the read', async () => {
  const service = tokenService((count) => service.give(`token ${count} of ${clients}`));
  await read(service.authentication, { secrets });
  service.valid.clear();
  expect((await read(service.authentication, { secrets })).rows).toHaveLength(1);
  expect(service.asked()).toBe(2);
  server.on('/items', json({ message: 'the account is closed' }, { status: 401 }));
  await expect(read(service.authentication, { secrets })).rejects.toThrow('the account is closed');
  expect(service.asked()).toBe(3);
});

test('a token about to expire is replaced before use', async () => {
  const service = tokenService((count) => service.give(`short ${count}`, { expires_in: 0.002 }));
  await read(service.authentication, { secrets });
  await read(service.authentication, { secrets });
  expect(service.asked()).toBeGreaterThan(1);
});

test('a rotated refresh token is used from then on, with a warning', async () => {
  const service = tokenService((count, form) => {
    expect(form.get('grant_type')).toBe('refresh_token');
    if (form.get('refresh_token') !== (count === 1 ? 'the first one' : `refresh ${count - 1}`)) {
      return Response.json({ error: 'invalid_grant' }, { status: 400 });
    }
    return service.give(`access ${count}`, { refresh_token: `refresh ${count}` });
  });
  const authentication = { ...service.authentication, type: 'oauth2_refresh_token', refresh_token: 'the first one' };
  const { rows, warnings } = await read(authentication, { secrets });
  expect(rows).toHaveLength(1);
  expect(warnings).toContain('refresh_token_rotated');
  service.valid.clear();
  expect((await read(authentication, { secrets })).rows).toHaveLength(1);
  expect(service.asked()).toBe(2);
});

test('a rejection by the token endpoint is an authentication error; an outage is retried', async () => {
  const refusing = tokenService(() =>
    Response.json({ error: 'invalid_client', error_description: 'unknown client' }, { status: 400 }),
  );
  const refused = read(refusing.authentication, { secrets });
  await expect(refused).rejects.toThrow('unknown client');
  await expect(refused).rejects.toBeInstanceOf(AuthenticationError);
  const empty = tokenService(() => Response.json({}));
  await expect(read(empty.authentication, { secrets })).rejects.toMatchObject({ code: 'no_token' });
  const shaky = tokenService((count) => (count < 2 ? new Response('', { status: 503 }) : shaky.give('at last')));
  expect((await read(shaky.authentication, { secrets })).rows).toHaveLength(1);
  const nobody = { ...shaky.authentication, client_id: 'another', token_url: 'http://127.0.0.1:1/token' };
  await expect(read(nobody, { secrets })).rejects.toBeInstanceOf(RetryableError);
});

test('limits requests per second and concurrent requests across streams', async () => {
  let running = 0;
  let most = 0;
  const times: number[] = [];
  server.on('/items', async () => {
    times.push(performance.now());
    running += 1;
    most = Math.max(most, running);
    await Bun.sleep(1);
    running -= 1;
    return Response.json([{ id: 1 }]);
  });
  const rate_limit = { requests_per_second: 50, concurrency: 1 };
  const streams = [stream];
  const began = performance.now();
  await Promise.all(Array.from({ length: 6 }, () => readAll({ base_url: server.url, rate_limit, streams })));
  expect(times).toHaveLength(12);
  // Not from the first arrival, which may be late. Each of the 11 timers may be early by a fraction of a millisecond.
  expect((times.at(-1) ?? 0) - began).toBeGreaterThan(11 * 19);
  expect(most).toBe(1);
});
