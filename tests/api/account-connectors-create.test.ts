import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { tasks } from '../../db/schema/index.ts';
import { openParameters } from '../../server/connector-runtime/connector-secrets.ts';
import { accountConnectorsOf } from '../support/account-connectors.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const viewer = api.as(await api.keyWith([]));
const sourcesOnly = api.as(await api.keyWith(['sources.create', 'sources.update', 'sources.delete']));
const warehouse = await createPlainDatabase();

const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const TOKEN = 'a-very-secret-token';

const { create, rowOf, eventsOf } = accountConnectorsOf(service, call);

describe('POST /account_connectors', () => {
  test('201: a source that passes its test is active, and its discovery is queued', async () => {
    const { status, body } = await create({ parameters: { rows: 7 } });
    expect(status).toBe(201);
    expect(body).toMatchObject({ status: 'active', catalog_status: 'pending', revision: 1, connections_count: 0 });
    expect(body.last_test.status).toBe('passed');
    expect(body.parameters).toMatchObject({ rows: 7, streams: 1 });
    const ordered = await deps.db.select().from(tasks).where(eq(tasks.account_connector_id, body.id));
    expect(ordered).toMatchObject([{ kind: 'discover_catalog', status: 'queued' }]);
    expect(await eventsOf(body.id)).toEqual(['account_connector_created']);
  });

  test('201: connects to a real database with the given credentials', async () => {
    const body = await make.connector('destination', 'postgres', postgresParameters(warehouse.url));
    expect(body).toMatchObject({ status: 'active', last_test: { status: 'passed' } });
    expect(body.parameters.password).toBe('**********');
  });

  test('201: a connector that fails its test is created as broken, with the reason', async () => {
    const parameters = { ...postgresParameters(warehouse.url), database: 'not_there' };
    const body = await make.connector('destination', 'postgres', parameters);
    expect(body).toMatchObject({ status: 'broken', last_test: { status: 'failed' } });
    expect(body.last_test.checks).toMatchObject([{ status: 'failed', fix: expect.stringContaining('Check') }]);
    expect(body.status_message).toContain('not_there');
    expect(await eventsOf(body.id)).toEqual(['account_connector_created', 'account_connector_broken']);
  });

  test('201: test_connection=false skips the test', async () => {
    const { status, body } = await create({ test_connection: false, parameters: { check: 'fails' } });
    expect(status).toBe(201);
    expect(body).toMatchObject({ status: 'pending_test', last_test: { status: 'skipped' }, catalog_status: 'never' });
  });

  test('201: secrets are sealed, and shown as a mask', async () => {
    const { body } = await create({ parameters: { token: TOKEN } });
    expect(body.parameters.token).toBe('**********');
    const row = await rowOf(body.id);
    expect(JSON.stringify(row)).not.toContain(TOKEN);
    expect(openParameters(deps, row).token).toBe(TOKEN);
  });

  test.each([
    ['duplicate_name', 'name', async () => ({ name: (await make.source()).name.toUpperCase() })],
    ['unknown_connector', 'connector_name', async () => ({ connector_name: 'nothing' })],
    [
      'connector_type_mismatch',
      'connector_type',
      async () => ({ connector_name: 'demo', connector_type: 'destination' }),
    ],
    ['invalid_reference', 'connector_id', async () => ({ connector_id: UNKNOWN })],
    ['missing_parameter', 'parameters.host', async () => ({ connector_name: 'postgres' })],
    ['invalid_parameter', 'parameters.rows', async () => ({ parameters: { rows: -1 } })],
    ['invalid_parameter', 'parameters.rowz', async () => ({ parameters: { rowz: 1 } })],
    ['invalid_parameter', 'auth_method', async () => ({ auth_method: 'oauth2' })],
    [
      'invalid_ssh_key',
      'ssh_tunnel.encrypted_private_key',
      async () => ({ ssh_tunnel: { host: 'h', username: 'u', encrypted_private_key: 'k' } }),
    ],
    ['invalid_parameter', 'datasets', async () => ({ datasets: [{ name: 'n', sql: 'select 1' }] })],
  ])('400: %s names the field %s', async (code, field, body) => {
    const answer = await create(await body());
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code, field });
  });

  test.each([
    ['date_range_conflict', '?start_date=2026-01-01'],
    ['missing_dates', '?date_range=custom&start_date=2026-01-01'],
    ['inverted_range', '?date_range=custom&start_date=2026-01-02&end_date=2026-01-01'],
    ['range_too_long', '?date_range=custom&start_date=2024-01-01&end_date=2026-01-01'],
  ])('400: %s for an invalid usage window', async (code, query) => {
    const answer = await create({}, query);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe(code);
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', '/account_connectors', {})).status).toBe(401);
  });

  test('403: without the permission for the connector type', async () => {
    const body = { name: uniqueName('x'), connector_type: 'destination', connector_name: 'sample' };
    const answer = await sourcesOnly('POST', '/account_connectors', body);
    expect(answer.status).toBe(403);
    expect(answer.body).toMatchObject({ code: 'permission_denied', required_permission: 'destinations.create' });
    const source = { ...body, connector_type: 'source' };
    expect((await sourcesOnly('POST', '/account_connectors', source)).status).toBe(201);
    expect((await viewer('POST', '/account_connectors', source)).status).toBe(403);
  });

  test('422: requires a name, refuses unknown keys, validates dates', async () => {
    const { status, body } = await call('POST', '/account_connectors?end_date=tomorrow', {
      connector_type: 'source',
      connector_name: 'sample',
      extra: 1,
    });
    expect(status).toBe(422);
    const issues = body.detail.map((issue: { loc: string[]; type: string }) => [issue.loc.join('.'), issue.type]);
    expect(issues).toContainEqual(['body.name', 'missing']);
    expect(issues).toContainEqual(['body.extra', 'extra_forbidden']);
    expect(issues.map(([loc]: string[]) => loc)).toContain('query.end_date');
  });
});
