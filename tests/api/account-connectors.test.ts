import { describe, expect, test } from 'bun:test';
import { accountConnectorsOf } from '../support/account-connectors.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const viewer = api.as(await api.keyWith([]));
const sourcesOnly = api.as(await api.keyWith(['sources.create', 'sources.update', 'sources.delete']));
const other = await api.otherAccount();
const foreign = await makerOf(other.call).source();
const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const TOKEN = 'a-very-secret-token';

const { create, rowOf, eventsOf } = accountConnectorsOf(service, call);

describe('GET /account_connectors', () => {
  test('200: newest first, with only what the filters match', async () => {
    const source = await make.source();
    const destination = await make.destination();
    const ids = async (query: string) =>
      (await call('GET', `/account_connectors${query}`)).body.map((one: { id: string }) => one.id);
    expect((await ids('')).slice(0, 2)).toEqual([destination.id, source.id]);
    expect((await ids('?connector_type=source'))[0]).toBe(source.id);
    expect(await ids('?connector_type=source&connector_name=postgres')).toEqual([]);
    expect(await ids('')).not.toContain(foreign.id);
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', '/account_connectors')).status).toBe(401);
  });

  test('422: an unknown connector_type', async () => {
    expect((await call('GET', '/account_connectors?connector_type=chat')).status).toBe(422);
  });
});

describe('GET /account_connectors/{connector_type}/{account_connector_id}', () => {
  test('200: counts the connections that use it', async () => {
    const { source_id } = await make.connection();
    const { status, body } = await call('GET', `/account_connectors/source/${source_id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: source_id, connections_count: 1, streams_count: 1, catalog_status: 'ready' });
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', `/account_connectors/source/${UNKNOWN}`)).status).toBe(401);
  });

  test('404: unknown, malformed, of the other type, of another account', async () => {
    const destination = await make.destination();
    for (const id of [UNKNOWN, 'nonsense', destination.id, foreign.id]) {
      const { status, body } = await call('GET', `/account_connectors/source/${id}`);
      expect([id, status, body.detail]).toEqual([id, 404, 'Account connector not found']);
    }
  });

  test('422: an unknown type', async () => {
    expect((await call('GET', `/account_connectors/chat/${UNKNOWN}`)).status).toBe(422);
  });
});

describe('DELETE /account_connectors/{account_connector_id}', () => {
  test('204: deletes it, wipes its secrets and frees its name', async () => {
    const { id, name } = await make.source({ token: TOKEN });
    expect(await call('DELETE', `/account_connectors/${id}`)).toMatchObject({ status: 204, body: null });
    expect((await call('GET', `/account_connectors/source/${id}`)).status).toBe(404);
    expect((await rowOf(id)).secrets).toBeNull();
    expect((await create({ name })).status).toBe(201);
    expect(await eventsOf(id)).toContain('account_connector_deleted');
  });

  test('400: account_connector_in_use names the connections', async () => {
    const { id, source_id } = await make.connection();
    const { status, body } = await call('DELETE', `/account_connectors/${source_id}`);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'account_connector_in_use', connection_ids: [id] });
    await call('DELETE', `/connections/${id}`);
    expect((await call('DELETE', `/account_connectors/${source_id}`)).status).toBe(204);
  });

  test('401: without a key', async () => {
    expect((await anonymous('DELETE', `/account_connectors/${UNKNOWN}`)).status).toBe(401);
  });

  test('403: without the permission for the connector type', async () => {
    const { id } = await make.destination();
    expect((await sourcesOnly('DELETE', `/account_connectors/${id}`)).status).toBe(403);
    expect((await viewer('DELETE', `/account_connectors/${id}`)).status).toBe(403);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) {
      expect((await call('DELETE', `/account_connectors/${id}`)).status).toBe(404);
    }
    expect((await other.call('GET', `/account_connectors/source/${foreign.id}`)).status).toBe(200);
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('DELETE', `/account_connectors/${UNKNOWN}?force=true`)).status).toBe(422);
  });
});
