import { describe, expect, test } from 'bun:test';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

const context = await testDeps();
const app = createApp(context.deps);
const api = testApi(context);
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;

/** Sends bytes as they are, for requests that no well-behaved client makes. */
async function send(method: string, path: string, options: { body?: Body; headers?: Record<string, string> } = {}) {
  const headers = { authorization: `Bearer ${context.api_key}`, ...options.headers };
  const response = await app.handle(new Request(`http://localhost${path}`, { method, headers, body: options.body }));
  const text = await response.text();
  const json = response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : null;
  return { status: response.status, headers: response.headers, text, json };
}
const post = (body: Body, type = 'application/json') =>
  send('POST', '/connections', { body, headers: { 'content-type': type } });
const problems = (answer: { json: { detail: { loc: unknown; type: string }[] } }) =>
  answer.json.detail.map(({ loc, type }) => ({ loc, type }));

describe('401', () => {
  test.each([
    ['no header', '', 'not_authenticated'],
    ['another scheme', 'Basic YTpi', 'invalid_token'],
    ['an unknown key', 'Bearer nobody-has-this-key-0123456789', 'invalid_token'],
    ['an empty key', 'Bearer ', 'invalid_token'],
    ['a key with a control character', 'Bearer a\tb', 'invalid_token'],
  ])('%s', async (_, authorization, code) => {
    const answer = await send('GET', '/users/me', { headers: { authorization } });
    expect(answer.status).toBe(401);
    expect(answer.json).toEqual({ detail: expect.any(String), code });
    expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
  });

  test('precedes validation of shape and object', async () => {
    const answer = await send('POST', `/connections/${UNKNOWN}`, { body: '{broken', headers: { authorization: '' } });
    expect(answer.status).toBe(401);
  });
});

describe('403', () => {
  test('names the permission, and precedes validation of shape and object', async () => {
    const authorization = `Bearer ${await api.keyWith([])}`;
    const answer = await send('POST', `/connections/${UNKNOWN}`, { body: '{broken', headers: { authorization } });
    expect(answer.status).toBe(403);
    expect(answer.json).toMatchObject({ code: 'permission_denied', required_permission: 'connections.update' });
  });

  test('names all permissions of which one is enough', async () => {
    const authorization = `Bearer ${await api.keyWith(['connections.run'])}`;
    const answer = await send('POST', '/account_connectors', { body: '{}', headers: { authorization } });
    expect(answer.json.required_permission).toEqual(['sources.create', 'destinations.create']);
  });
});

describe('paths and methods', () => {
  test.each(['GET', 'POST', 'OPTIONS'])('an unknown path is 404 in JSON: %s', async (method) => {
    const answer = await send(method, '/nothing/here');
    expect(answer.status).toBe(404);
    expect(answer.json).toEqual({ detail: 'Not Found', code: 'not_found' });
  });

  test('a known path with another method is 405 and lists the methods', async () => {
    const answer = await send('PUT', '/connections');
    expect(answer.status).toBe(405);
    expect(answer.json).toEqual({ detail: 'Method Not Allowed', code: 'method_not_allowed' });
    expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
  });

  test('unknown HTTP methods are 405, too', async () => {
    expect((await send('PROPFIND', '/connections')).status).toBe(405);
  });

  test('a path without parameters never falls through to one with', async () => {
    expect((await send('PATCH', '/users/me')).status).toBe(405);
  });

  test('OPTIONS lists the methods without a key', async () => {
    const answer = await send('OPTIONS', '/users/me', { headers: { authorization: '' } });
    expect(answer.status).toBe(204);
    expect(answer.headers.get('allow')).toContain('GET');
  });

  test('path parameters are percent-decoded once', async () => {
    expect((await send('GET', '/connectors/source/%64emo')).json.name).toBe('demo');
    expect((await send('GET', '/connectors/source/%2564emo')).status).toBe(404);
  });

  test.each(['abc', '%00', '%E0%A4', '..%2F..', "'; drop table users"])('the id %p names no object', async (id) => {
    expect((await send('GET', `/connections/${id}`)).status).toBe(404);
  });

  test('an invalid value for a declared UUID is 422', async () => {
    const path = `/connections/${UNKNOWN}/runs/${UNKNOWN}/stream_runs/abc/network_logs?connector_type=source`;
    const answer = await send('GET', path);
    expect(answer.status).toBe(422);
    expect(problems(answer)).toEqual([{ loc: ['path', 'stream_run_id'], type: 'uuid_parsing' }]);
  });
});

describe('422, body', () => {
  test('truncated JSON reports the position', async () => {
    const answer = await post('{"name": ');
    expect(answer.status).toBe(422);
    expect(problems(answer)).toEqual([{ loc: ['body', 9], type: 'json_invalid' }]);
    expect(Object.keys(answer.json)).toEqual(['detail']);
  });

  test.each([['[]'], ['"text"'], ['7'], ['null']])('%s instead of an object', async (body) => {
    expect(problems(await post(body))).toEqual([{ loc: ['body'], type: 'dict_type' }]);
  });

  test('a missing required body', async () => {
    expect(problems(await send('POST', '/connections'))).toEqual([{ loc: ['body'], type: 'missing' }]);
  });

  test('all problems are reported at once, with their locations', async () => {
    const body = { name: '', tags: [3], backfill_days: 1.5, max_parallel_streams: 51, source_id: 'x', other: 1 };
    expect(problems(await post(JSON.stringify(body)))).toEqual(
      expect.arrayContaining([
        { loc: ['body', 'name'], type: 'string_too_short' },
        { loc: ['body', 'tags', 0], type: 'string_type' },
        { loc: ['body', 'backfill_days'], type: 'int_parsing' },
        { loc: ['body', 'max_parallel_streams'], type: 'less_than_equal' },
        { loc: ['body', 'source_id'], type: 'uuid_parsing' },
        { loc: ['body', 'destination_id'], type: 'missing' },
        { loc: ['body', 'other'], type: 'extra_forbidden' },
      ]),
    );
  });

  test('what was sent is not repeated', async () => {
    const answer = await post(JSON.stringify({ name: 7, source_id: 'do-not-show', status: 'nor-this' }));
    expect(answer.text).not.toContain('do-not-show');
    expect(answer.text).not.toContain('nor-this');
  });

  test.each([
    ['a NUL character', '{"name":"a\\u0000b"}', ['body', 'name'], 'value_error'],
    ['half a surrogate pair', '{"name":"a\\ud800b"}', ['body', 'name'], 'value_error'],
    ['the key __proto__', '{"__proto__":{"name":"x"}}', ['body', '__proto__'], 'extra_forbidden'],
    ['bytes that are no UTF-8', new Uint8Array([0x7b, 0xff, 0x7d]), ['body', 0], 'json_invalid'],
  ])('%s is refused', async (_, body, loc, type) => {
    expect(problems(await post(body))).toEqual([{ loc, type }]);
  });

  test('deep nesting is rejected', async () => {
    const answer = await post(`{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
    expect(answer.status).toBe(422);
  });

  test('a body with another content type is rejected', async () => {
    const answer = await post('name=x', 'application/x-www-form-urlencoded');
    expect(problems(answer)).toEqual([{ loc: ['header', 'content-type'], type: 'value_error' }]);
  });

  test('an optional body may be absent or null, and then the object is looked for', async () => {
    for (const body of [undefined, 'null']) {
      expect((await send('POST', `/connections/${UNKNOWN}/run`, { body })).status).toBe(404);
    }
  });
});

describe('422, query', () => {
  test.each([
    ['a number in hexadecimal', 'limit=0x10', { loc: ['query', 'limit'], type: 'int_parsing' }],
    ['a number with exponent', 'limit=1e2', { loc: ['query', 'limit'], type: 'int_parsing' }],
    ['an empty number', 'limit=', { loc: ['query', 'limit'], type: 'int_parsing' }],
    ['a number out of range', 'limit=0', { loc: ['query', 'limit'], type: 'greater_than_equal' }],
    ['a scalar that comes twice', 'limit=1&limit=2', { loc: ['query', 'limit'], type: 'int_parsing' }],
    ['an unknown key', 'page=2', { loc: ['query', 'page'], type: 'extra_forbidden' }],
  ])('%s', async (_, query, problem) => {
    const answer = await send('GET', `/connections?${query}`);
    expect(answer.status).toBe(422);
    expect(problems(answer)).toEqual([problem]);
  });

  test.each(['banana', '1', 'True', 'yes', ''])('%p is not a boolean', async (value) => {
    const path = `/connections/${UNKNOWN}/runs/${UNKNOWN}/stream_runs?cross_account=${value}`;
    expect(problems(await send('GET', path))).toEqual([{ loc: ['query', 'cross_account'], type: 'bool_parsing' }]);
  });

  test('false is false', async () => {
    const path = `/connections/${UNKNOWN}/runs/${UNKNOWN}/stream_runs?cross_account=`;
    const authorization = `Bearer ${await api.keyWith([])}`;
    expect((await send('GET', `${path}false`, { headers: { authorization } })).status).toBe(404);
    expect((await send('GET', `${path}true`, { headers: { authorization } })).status).toBe(403);
  });
});

describe('413', () => {
  const big = new Uint8Array(1024 * 1024 + 1).fill(32);

  test('a body with Content-Length is rejected unread', async () => {
    let read = false;
    const body = new ReadableStream(
      {
        pull: (controller) => {
          read = true;
          controller.enqueue(big);
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { 'content-length': String(big.length), 'content-type': 'application/json' };
    const answer = await send('POST', '/connections', { body, headers });
    expect(answer.status).toBe(413);
    expect(answer.json).toMatchObject({ detail: expect.any(String), code: 'body_too_large' });
    expect(read).toBeFalse();
  });

  test('a body of unknown length is rejected while it is read', async () => {
    let chunks = 0;
    const body = new ReadableStream({
      pull: (controller) => {
        chunks += 1;
        controller.enqueue(new Uint8Array(64 * 1024).fill(32));
      },
    });
    const answer = await send('POST', '/connections', { body, headers: { 'content-type': 'application/json' } });
    expect(answer.status).toBe(413);
    expect(chunks).toBeLessThan(30);
  });
});

describe('every response', () => {
  test.each([
    ['GET', '/users/me'],
    ['GET', '/nothing'],
    ['PUT', '/connections'],
    ['GET', '/docs'],
    ['GET', '/trpc/users.me'],
    ['GET', '/healthz'],
  ])('%s %s has a request id and the safety headers', async (method, path) => {
    const { headers } = await send(method, path);
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  test('under an https address demands TLS, under another does not', async () => {
    const secure = createApp({
      ...context.deps,
      config: { ...context.deps.config, PUBLIC_URL: 'https://pipelines.example' },
    });
    const answer = await secure.handle(new Request('http://localhost/healthz'));
    expect(answer.headers.get('strict-transport-security')).toBe('max-age=31536000');
    expect((await send('GET', '/healthz')).headers.get('strict-transport-security')).toBeNull();
  });

  test('echoes only valid request IDs', async () => {
    const id = async (given: string) =>
      (await send('GET', '/users/me', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
    expect(await id('deploy-42.a')).toBe('deploy-42.a');
    expect(await id('a b<script>')).not.toContain('script');
    expect(await id('x'.repeat(200))).toHaveLength(36);
  });

  test('500 reveals only the ID under which the cause is logged', async () => {
    const broken = createApp({
      ...context.deps,
      secrets: {
        ...context.deps.secrets,
        hmacs: () => {
          throw new Error('the cause');
        },
      },
    });
    const headers = { authorization: `Bearer ${context.api_key}`, 'x-request-id': 'trace-1' };
    const response = await broken.handle(new Request('http://localhost/users/me', { headers }));
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({
      detail: 'Internal server error',
      code: 'internal_error',
      request_id: 'trace-1',
    });
  });
});
