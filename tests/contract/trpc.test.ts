import { describe, expect, test } from 'bun:test';
import { TRPCClientError } from '@trpc/client';
import { createApiClient } from '../../client/api.ts';
import { createApp } from '../../server/http/app.ts';
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

  test('a body beyond the limit is 413', async () => {
    const response = await fetch(`${url}/trpc/connections.create`, {
      method: 'POST',
      headers: { authorization: `Bearer ${context.api_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'x'.repeat(1024 * 1024) }),
    });
    expect(response.status).toBe(413);
  });
});

describe('REST on a socket', () => {
  test('HEAD is GET without its body', async () => {
    const headers = { authorization: `Bearer ${context.api_key}` };
    const response = await fetch(`${url}/users/me`, { method: 'HEAD', headers });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(await response.text()).toBe('');
  });
});
