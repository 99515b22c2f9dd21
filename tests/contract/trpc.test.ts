import { describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { createTRPCClient, httpBatchLink, TRPCClientError } from '@trpc/client';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { createApiClient } from '../../client/api.ts';
import { createApp } from '../../server/http/app.ts';
import type { AppRouter } from '../../server/router.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

const context = await testDeps();
const api = testApi(context);
const app = createApp(context.deps).listen({ hostname: '127.0.0.1', port: 0 });
const url = `http://127.0.0.1:${app.server!.port}`;
const client = createApiClient(url, context.api_key);
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

/** The error of a call that must fail. */
async function failure(call: Promise<unknown>): Promise<Record<string, unknown>> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof TRPCClientError)) throw new Error('the call did not fail');
  return error.data;
}

describe('tRPC', () => {
  test('returns the same as REST, with concurrent calls in one request', async () => {
    const [me, connections] = await Promise.all([client.users.me.query(), client.connections.list.query({})]);
    expect(me as unknown).toEqual((await api.call('GET', '/users/me')).body);
    expect(connections).toEqual([]);
  });

  test('401 with the code of REST', async () => {
    const data = await failure(createApiClient(url, 'nobody-has-this-key-0123456789').users.me.query());
    expect(data).toMatchObject({ code: 'invalid_token', httpStatus: 401 });
  });

  test('403 with the permission', async () => {
    const viewer = createApiClient(url, await api.keyWith([]));
    const data = await failure(viewer.runs.stop.mutate({ connection_run_id: UNKNOWN }));
    expect(data).toMatchObject({ code: 'permission_denied', required_permission: 'connections.run', httpStatus: 403 });
  });

  test('404 with the code of REST', async () => {
    const data = await failure(client.connections.get.query({ connection_id: UNKNOWN }));
    expect(data).toMatchObject({ code: 'not_found', detail: 'Connection not found', httpStatus: 404 });
  });

  test('422 with the locations of REST, and without its coercion of text', async () => {
    const data = await failure(client.connections.list.query({ limit: '5' as unknown as number }));
    expect(data.httpStatus).toBe(422);
    expect(data.detail).toEqual([{ loc: ['query', 'limit'], msg: expect.any(String), type: 'int_parsing' }]);
  });

  test('unknown keys are rejected', async () => {
    const data = await failure(client.users.me.query(Object.assign({}, { all: true })));
    expect(data).toMatchObject({ httpStatus: 422, detail: [{ type: 'extra_forbidden' }] });
  });

  const headers = { authorization: `Bearer ${context.api_key}`, 'content-type': 'application/json' };

  test('a batch of more than a hundred calls is refused with the limit and the id of the request', async () => {
    const link = httpBatchLink({ url: `${url}/trpc`, headers });
    const batching = createTRPCClient<AppRouter>({ links: [link] });
    const calls = Array.from({ length: 101 }, () => batching.users.me.query());
    const [first, ...rest] = await Promise.all(calls.map((call) => failure(call)));
    expect(first).toMatchObject({ code: 'batch_too_large', httpStatus: 400, limit: 100, calls: 101 });
    expect(first!.detail).toContain('at most 100 calls');
    expect(first!.request_id).not.toBe('');
    expect(rest).toHaveLength(100);
  });

  test('415 carries the code of an unsupported media type', async () => {
    const body = '<name/>';
    const answer = await fetch(`${url}/trpc/connections.create`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/xml' },
      body,
    });
    const { error } = (await answer.json()) as { error: { code: number; data: object } };
    expect([answer.status, error.code]).toEqual([415, TRPC_ERROR_CODES_BY_KEY.UNSUPPORTED_MEDIA_TYPE]);
    expect(error.data).toMatchObject({ code: 'unsupported_media_type', httpStatus: 415 });
  });

  test('reads may be sent as POST', async () => {
    const link = httpBatchLink({ url: `${url}/trpc`, headers, methodOverride: 'POST' });
    const posting = createTRPCClient<AppRouter>({ links: [link] });
    expect(await posting.users.me.query()).toMatchObject({ is_me: true });
  });

  test('a call that its caller aborts is `aborted`', async () => {
    const aborting = new AbortController();
    const call = client.connections.list.query({}, { signal: aborting.signal });
    aborting.abort();
    expect(await call.catch((error: unknown) => error)).toMatchObject({ code: 'aborted', status: null });
  });

  test('a client that leaves in the middle of its body is not an error of the service', async () => {
    const errors: unknown[] = [];
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const log = new Proxy(context.deps.log, {
      get: (target, name, receiver) =>
        name === 'error'
          ? (...all: unknown[]) => errors.push(all)
          : name === 'debug'
            ? () => resolve()
            : Reflect.get(target, name, receiver),
    });
    const own = createApp({ ...context.deps, log }).listen({ hostname: '127.0.0.1', port: 0 });
    for (const path of ['/trpc/connections.create', '/connections']) {
      const socket = connect(own.server!.port!, '127.0.0.1');
      const lines = [`POST ${path} HTTP/1.1`, 'host: localhost', `authorization: ${headers.authorization}`];
      socket.write([...lines, 'content-type: application/json', 'content-length: 1000', '', '{"name":'].join('\r\n'));
      await new Promise((written) => socket.once('ready', written));
      socket.resetAndDestroy();
      await ended;
    }
    expect(errors).toEqual([]);
    await own.stop();
  });

  test('a body beyond the limit is 413', async () => {
    const response = await fetch(`${url}/trpc/connections.create`, {
      method: 'POST',
      headers: { authorization: `Bearer ${context.api_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'x'.repeat(1024 * 1024) }),
    });
    expect(response.status).toBe(413);
  });

  test('a procedure may take a larger body: not without a key, and not in a batch', async () => {
    const examples = Array.from({ length: 150_000 }, (_, n) => ({ id: '12345678901234567890', text: `"${n}"\n` }));
    const openapi = JSON.stringify({ openapi: '3.1.0', paths: {}, examples });
    expect(openapi.length).toBeGreaterThan(7_000_000);
    const draft = (path: string, key: string, input: object) =>
      fetch(`${url}/trpc/account_connectors.draftDefinition${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(input),
      });
    const answer = await draft('', context.api_key, { openapi });
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as { error: { data: { code: string } } }).error.data.code).toBe('no_lists');
    expect((await draft('', 'nobody-has-this-key-0123456789', { openapi })).status).toBe(401);
    const twice = await draft(',account_connectors.draftDefinition?batch=1', context.api_key, [
      { openapi },
      { openapi },
    ]);
    expect(twice.status).toBe(413);
  });
});

describe('REST on a socket', () => {
  test.each([
    ['gzip, zstd', 'zstd'],
    ['gzip;q=1, zstd;q=0.5', 'gzip'],
    ['gzip', 'gzip'],
    ['*', 'zstd'],
    ['identity', null],
    ['zstd;q=0, gzip;q=0', null],
  ])('compresses 1 kB or more for Accept-Encoding %s with %s', async (accepted, encoding) => {
    const answer = await app.handle(
      new Request('http://localhost/openapi.json', { headers: { 'accept-encoding': accepted } }),
    );
    expect(answer.headers.get('content-encoding')).toBe(encoding);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const plain = encoding === 'zstd' ? zstdDecompressSync(bytes) : encoding === 'gzip' ? gunzipSync(bytes) : bytes;
    expect(JSON.parse(new TextDecoder().decode(plain)).openapi).toBe('3.1.0');
    expect(encoding === null || bytes.byteLength < plain.byteLength / 4).toBe(true);
  });

  test('does not compress less than 1 kB', async () => {
    const headers = { authorization: `Bearer ${context.api_key}`, 'accept-encoding': 'gzip' };
    const answer = await app.handle(new Request('http://localhost/connections', { headers }));
    expect([answer.headers.get('content-encoding'), await answer.text()]).toEqual([null, '[]']);
  });

  test('HEAD is GET without its body', async () => {
    const headers = { authorization: `Bearer ${context.api_key}` };
    const response = await fetch(`${url}/users/me`, { method: 'HEAD', headers });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(await response.text()).toBe('');
  });
});
