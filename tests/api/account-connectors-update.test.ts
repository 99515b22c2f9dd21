import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, events } from '../../db/schema/index.ts';
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
const sourcesOnly = api.as(await api.keyWith(['sources.create', 'sources.update', 'sources.delete']));
const other = await api.otherAccount();
const foreign = await makerOf(other.call).source();
const warehouse = await createPlainDatabase();

const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const TOKEN = 'a-very-secret-token';

const { create, rowOf, eventsOf } = accountConnectorsOf(service, call);

describe('POST /account_connectors/{account_connector_id}', () => {
  const update = (id: string, body: object) => call('POST', `/account_connectors/${id}`, body);

  test('200: a new name alone does not trigger a new test', async () => {
    const { id, last_tested_at } = await make.source();
    const name = uniqueName('renamed');
    const { status, body } = await update(id, { name });
    expect(status).toBe(200);
    expect(body).toMatchObject({ name, revision: 2, status: 'active', last_tested_at });
    const [event] = await deps.db
      .select()
      .from(events)
      .where(and(eq(events.account_connector_id, id), eq(events.event, 'account_connector_updated')));
    expect(event).toMatchObject({
      actor: { type: 'user', id: service.user_id },
      payload: { changed_fields: ['name'] },
    });
  });

  test('200: an update that changes nothing leaves the revision and emits no event', async () => {
    const before = await make.source({ token: TOKEN });
    const { status, body } = await update(before.id, { name: before.name, parameters: before.parameters });
    expect(status).toBe(200);
    expect(body).toEqual(before);
    expect(await eventsOf(before.id)).toEqual(['account_connector_created']);
  });

  test('200: omitting a secret or sending its mask keeps it, a new value replaces it', async () => {
    const { id } = await make.source({ token: TOKEN });
    await update(id, { parameters: { token: '**********', rows: 5 } });
    expect(openParameters(deps, await rowOf(id))).toMatchObject({ token: TOKEN, rows: 5 });
    await update(id, { parameters: { rows: 6 } });
    expect(openParameters(deps, await rowOf(id))).toMatchObject({ token: TOKEN, rows: 6 });
    await update(id, { parameters: { token: 'another' } });
    expect(openParameters(deps, await rowOf(id)).token).toBe('another');
    await update(id, { parameters: { token: null } });
    expect(openParameters(deps, await rowOf(id)).token).toBeUndefined();
  });

  test('200: new credentials are tested at once, or marked as untested', async () => {
    const { id } = await make.connector('destination', 'postgres', postgresParameters(warehouse.url));
    const untested = await update(id, { parameters: { password: 'wrong' }, test_connection: false });
    expect(untested.body).toMatchObject({ status: 'pending_test' });
    const broken = await update(id, { parameters: { password: 'wrong again' } });
    expect(broken.body).toMatchObject({ status: 'broken', last_test: { status: 'failed' } });
    const mended = await update(id, { parameters: { password: postgresParameters(warehouse.url).password } });
    expect(mended.body).toMatchObject({ status: 'active', last_test: { status: 'passed' } });
    expect((await eventsOf(id)).slice(-2)).toEqual(['account_connector_updated', 'account_connector_authenticated']);
  });

  test.each([
    ['immutable_field', 'connector_name', { connector_name: 'demo' }],
    ['immutable_field', 'connector_type', { connector_type: 'destination' }],
    ['invalid_parameter', 'parameters.rows', { parameters: { rows: 'many' } }],
  ])('400: %s names the field %s', async (code, field, body) => {
    const { id } = await make.source();
    const answer = await update(id, body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code, field });
  });

  test('400: stale_revision returns the current revision', async () => {
    const { id } = await make.source();
    const { status, body } = await update(id, { name: uniqueName('x'), revision: 7 });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'stale_revision', revision: 1 });
  });

  test('400: duplicate_name', async () => {
    const [one, two] = [await make.source(), await make.source()];
    const { status, body } = await update(two.id, { name: one.name });
    expect(status).toBe(400);
    expect(body.code).toBe('duplicate_name');
  });

  test('400: run_active while a run uses the current settings', async () => {
    const { id, source_id } = await make.connection();
    const run = await call('POST', `/connections/${id}/run`);
    const { status, body } = await update(source_id, { parameters: { rows: 5 } });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'run_active', connection_run_ids: [run.body] });
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/account_connectors/${UNKNOWN}`, {})).status).toBe(401);
  });

  test('403: without the permission for the connector type', async () => {
    const { id } = await make.destination();
    const { status, body } = await sourcesOnly('POST', `/account_connectors/${id}`, { name: 'x' });
    expect(status).toBe(403);
    expect(body.required_permission).toBe('destinations.update');
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) expect((await update(id, { name: 'x' })).status).toBe(404);
  });

  test('422: an update needs at least one field', async () => {
    const { status, body } = await update(UNKNOWN, {});
    expect(status).toBe(422);
    expect(body.detail).toMatchObject([{ loc: ['body'], type: 'value_error' }]);
  });
});

describe('POST /account_connectors/{account_connector_id}/login', () => {
  const login = (id: string) => call('POST', `/account_connectors/${id}/login`);

  test('200: a passed test activates the connector', async () => {
    const { body } = await create({ test_connection: false });
    expect(await login(body.id)).toMatchObject({ status: 200, body: 'active' });
    const row = await rowOf(body.id);
    expect(row).toMatchObject({ status: 'active', catalog_status: 'pending', last_test: { status: 'passed' } });
    expect(await eventsOf(body.id)).toContain('account_connector_authenticated');
  });

  test('400: upstream_error with the message of the external system, which the state keeps', async () => {
    const parameters = { ...postgresParameters(warehouse.url), password: 'wrong' };
    const { body } = await create({ connector_name: 'postgres', parameters, test_connection: false });
    const answer = await login(body.id);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'upstream_error', status: 'broken' });
    expect(answer.body.detail).not.toContain('wrong');
    expect(await rowOf(body.id)).toMatchObject({ status: 'broken', last_test: { status: 'failed' } });
  });

  test('400: the first upstream_error does not mark a working connector as broken', async () => {
    const { id } = await make.source();
    await deps.db
      .update(accountConnectors)
      .set({ parameters: { ...(await rowOf(id)).parameters, check: 'fails' } })
      .where(eq(accountConnectors.id, id));
    const states = [];
    for (let attempt = 0; attempt < 3; attempt += 1) states.push((await login(id)).body.status);
    expect(states).toEqual(['active', 'active', 'broken']);
  });

  test('400: login_not_supported for a connector that no longer exists', async () => {
    const { id } = await make.source();
    await deps.db.update(accountConnectors).set({ connector_name: 'gone' }).where(eq(accountConnectors.id, id));
    const { status, body } = await login(id);
    expect(status).toBe(400);
    expect(body.code).toBe('login_not_supported');
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/account_connectors/${UNKNOWN}/login`)).status).toBe(401);
  });

  test('403: without the permission for the connector type', async () => {
    const { id } = await make.destination();
    expect((await sourcesOnly('POST', `/account_connectors/${id}/login`)).status).toBe(403);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) expect((await login(id)).status).toBe(404);
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('POST', `/account_connectors/${UNKNOWN}/login?x=1`)).status).toBe(422);
  });
});

describe('POST /account_connectors/{account_connector_id}/schema_tests', () => {
  const role = `loader_${crypto.randomUUID().slice(0, 8)}`;
  const admin = postgres(warehouse.url, { max: 1, onnotice: () => {} });
  const tested = (id: string, destination_schema: string) =>
    call('POST', `/account_connectors/${id}/schema_tests`, { destination_schema });
  let id = '';
  beforeAll(async () => {
    await admin.unsafe(`create role ${role} login password 'right'; create schema shop authorization ${role}`);
    const parameters = { ...postgresParameters(warehouse.url), username: role, password: 'right' };
    ({ id } = await make.connector('destination', 'postgres', parameters));
  });
  afterAll(async () => {
    await admin.unsafe(`drop owned by ${role}; drop role ${role}`);
    await admin.end();
  });

  test('200: passes in a schema that can be written, whatever the default one allows', async () => {
    const { status, body } = await tested(id, 'shop');
    expect([status, body.status]).toEqual([200, 'passed']);
    expect(body.checks.at(-1)).toEqual({ title: 'Schema shop', status: 'passed', message: null });
  });

  test('200: fails elsewhere with the statements that help, and leaves the destination as it is', async () => {
    const before = await rowOf(id);
    const { status, body } = await tested(id, 'shops');
    expect([status, body.status]).toEqual([200, 'failed']);
    expect(body.checks.at(-1)).toMatchObject({
      title: 'Schema shops',
      status: 'failed',
      message: 'There is no schema shops, and this user may not create it',
      statements: [expect.stringMatching(/^GRANT CREATE ON DATABASE /)],
    });
    expect((await tested(id, 'public')).body.checks.at(-1)).toMatchObject({
      message: 'This user may not create tables in the schema public',
      fix: 'Select another schema, or let the owner of the database run one of the statements.',
    });
    expect(await rowOf(id)).toEqual(before);
  });

  test('200: fails if the destination cannot be reached', async () => {
    const parameters = { ...postgresParameters(warehouse.url), password: 'wrong' };
    const { body } = await create({ connector_type: 'destination', connector_name: 'postgres', parameters });
    expect(body).toMatchObject({ status: 'broken' });
    expect((await tested(body.id, 'shop')).body).toMatchObject({ status: 'failed', checks: [{ title: 'Connection' }] });
  });

  test('400: a source; 404: of another account; 422: without a schema', async () => {
    const { id: source } = await make.source();
    expect(await tested(source, 'shop')).toMatchObject({ status: 400, body: { code: 'not_a_destination' } });
    for (const unknown of [UNKNOWN, foreign.id]) expect((await tested(unknown, 'shop')).status).toBe(404);
    for (const wrong of ['', 'x'.repeat(64)]) expect((await tested(id, wrong)).status).toBe(422);
  });
});
