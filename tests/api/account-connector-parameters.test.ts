import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors } from '../../db/schema/index.ts';
import { openParameters } from '../../server/connector-runtime/connector-secrets.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const sourcesOnly = api.as(await api.keyWith(['sources.update']));
const other = await api.otherAccount();
const foreign = await makerOf(other.call).source();
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
await sql`create schema zebra`;
await sql`create schema "Apple"`;
await sql`create table zebra.things (id int primary key)`;
afterAll(() => sql.end());
const settings = postgresParameters(database.url);
const source = await make.connector('source', 'postgres', settings);
const destination = await make.connector('destination', 'postgres', settings);
const connection = await make.connection({ source_id: source.id, destination_id: destination.id });

/** A PostgreSQL source with other settings, changed directly in the database. */
async function changed(parameters: Record<string, unknown>, password = settings.password) {
  const { body } = await call('POST', '/account_connectors', {
    name: uniqueName('postgres'),
    connector_type: 'source',
    connector_name: 'postgres',
    parameters: { ...settings, password },
    test_connection: false,
  });
  const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, body.id));
  const merged = { ...row!.parameters, ...parameters };
  await deps.db.update(accountConnectors).set({ parameters: merged }).where(eq(accountConnectors.id, body.id));
  return body.id as string;
}

/** A server that accepts connections and never responds, until `stop`. */
function silentServer() {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {}, open() {} } });
  return { port: server.port, stop: () => server.stop(true) };
}

describe('GET /account_connectors/{account_connector_id}/dynamic_possible_values/{parameter_name}', () => {
  const values = (id: string, parameter: string, query = '') =>
    call('GET', `/account_connectors/${id}/dynamic_possible_values/${parameter}${query}`);

  test('200: live values as text, ordered by label', async () => {
    const { status, body } = await values(source.id, 'schemas');
    expect(status).toBe(200);
    expect(body).toEqual({ Apple: 'Apple', public: 'public', zebra: 'zebra' });
    expect(Object.keys(body)).toEqual(['Apple', 'public', 'zebra']);
    expect((await values(destination.id, 'schema')).body).toHaveProperty('zebra');
    expect((await values(source.id, 'database')).body).toHaveProperty(String(settings.database));
  });

  test('200: accepts a connection and one of its streams', async () => {
    const query = `?connection_id=${connection.id}&stream_id=${connection.streams[0].id}`;
    expect((await values(source.id, 'schemas', query)).status).toBe(200);
    expect((await values(source.id, 'schemas', `?stream_id=${connection.streams[0].id}`)).status).toBe(200);
  });

  test('200: cached for a minute, unless the settings change', async () => {
    const { id } = await make.connector('source', 'postgres', settings);
    const before = (await values(id, 'schemas')).body;
    await sql`create schema fresh`;
    expect((await values(id, 'schemas')).body).toEqual(before);
    await call('POST', `/account_connectors/${id}`, { name: uniqueName('renamed') });
    expect((await values(id, 'schemas')).body).toEqual({ ...before, fresh: 'fresh' });
    await sql`drop schema fresh`;
  });

  test('400: parameter_not_dynamic', async () => {
    const { status, body } = await values(source.id, 'host');
    expect([status, body.code]).toEqual([400, 'parameter_not_dynamic']);
  });

  test('400: missing_dependency names the parameter to fill in first', async () => {
    const id = await changed({ host: null });
    const { status, body } = await values(id, 'schemas');
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'missing_dependency', missing_parameters: ['host'] });
  });

  test('400: upstream_auth_failed for rejected credentials, without showing them', async () => {
    const id = await changed({}, 'a-wrong-password');
    const { status, body } = await values(id, 'schemas');
    expect([status, body.code]).toEqual([400, 'upstream_auth_failed']);
    expect(JSON.stringify(body)).not.toContain('a-wrong-password');
  });

  test('400: upstream_error when no server listens; the next request tries again', async () => {
    const { port, stop } = silentServer();
    stop();
    const id = await changed({ port });
    expect((await values(id, 'schemas')).body.code).toBe('upstream_error');
    await deps.db
      .update(accountConnectors)
      .set({ parameters: { ...settings, password: '**********' } })
      .where(eq(accountConnectors.id, id));
    expect((await values(id, 'schemas')).status).toBe(200);
  });

  test('400: upstream_timeout when the server does not respond', async () => {
    const { port, stop } = silentServer();
    const id = await changed({ port, connect_timeout_seconds: 1 });
    const { status, body } = await values(id, 'schemas');
    stop();
    expect([status, body.code]).toEqual([400, 'upstream_timeout']);
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', `/account_connectors/${UNKNOWN}/dynamic_possible_values/x`)).status).toBe(401);
  });

  test('404: unknown account connector, parameter, connection, stream; a connection that does not use it', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) expect((await values(id, 'schemas')).status).toBe(404);
    const elsewhere = await make.connection();
    const detail = async (parameter: string, query = '') => (await values(source.id, parameter, query)).body.detail;
    expect(await detail('nothing')).toBe('Parameter not found');
    expect(await detail('schemas', `?connection_id=${UNKNOWN}`)).toBe('Connection not found');
    expect(await detail('schemas', '?connection_id=nonsense')).toBe('Connection not found');
    expect(await detail('schemas', `?connection_id=${elsewhere.id}`)).toBe('Connection not found');
    expect(await detail('schemas', `?stream_id=${UNKNOWN}`)).toBe('Stream not found');
    expect(await detail('schemas', `?stream_id=${elsewhere.streams[0].id}`)).toBe('Stream not found');
  });

  test('422: a stream_id that is not a UUID', async () => {
    const { status, body } = await values(source.id, 'schemas', '?stream_id=banana');
    expect(status).toBe(422);
    expect(body.detail).toMatchObject([{ loc: ['query', 'stream_id'], type: 'uuid_parsing' }]);
  });
});

describe('POST /account_connectors/{account_connector_id}/validate_parameter', () => {
  const validate = (id: string, body?: object) => call('POST', `/account_connectors/${id}/validate_parameter`, body);
  const ask = async (parameter_name: string, value: unknown, rest: object = {}, id = source.id) => {
    const { status, body } = await validate(id, { parameter_name, value, ...rest });
    expect(status).toBe(200);
    return body;
  };

  test('200: tests the value against the external system', async () => {
    expect(await ask('database', settings.database)).toMatchObject({
      is_valid: true,
      parameter_name: 'database',
      errors: [],
      warnings: [],
      normalized_value: settings.database,
      checked_remotely: true,
      duration_ms: expect.any(Number),
    });
    const wrong = await ask('database', 'no_such_database');
    expect(wrong).toMatchObject({ is_valid: false, checked_remotely: true, normalized_value: null });
    expect(wrong.errors).toMatchObject([{ code: 'database_not_found' }]);
    expect((await ask('schemas', ['zebra'])).is_valid).toBeTrue();
    expect((await ask('schemas', ['nowhere'])).errors).toMatchObject([{ code: 'check_failed' }]);
    expect((await ask('password', 'a-wrong-password')).is_valid).toBeFalse();
  });

  test('200: a value that breaks the rules is invalid without a connection', async () => {
    for (const [name, value] of [
      ['port', 'many'],
      ['port', 70_000],
      ['host', 'a/b'],
      ['ssl_mode', 'sometimes'],
    ] as const) {
      const answer = await ask(name, value);
      expect(answer).toMatchObject({ is_valid: false, checked_remotely: false, normalized_value: null });
      expect(answer.errors).toMatchObject([{ code: 'invalid_parameter' }]);
    }
    expect((await ask('host', null)).errors).toMatchObject([{ code: 'missing_parameter' }]);
  });

  test('200: settings of the connector itself need no connection; null means the default', async () => {
    expect(await ask('connect_timeout_seconds', 5)).toMatchObject({
      is_valid: true,
      checked_remotely: false,
      normalized_value: 5,
    });
    expect(await ask('connect_timeout_seconds', null)).toMatchObject({ is_valid: true, normalized_value: 10 });
  });

  test('200: the mask stands for the stored secret, and no secret is returned', async () => {
    expect(await ask('password', '**********')).toMatchObject({
      is_valid: true,
      checked_remotely: true,
      normalized_value: '**********',
    });
    const answer = await ask('password', String(settings.password));
    expect(answer).toMatchObject({ is_valid: true, normalized_value: '**********' });
    expect(JSON.stringify(await ask('password', 'a-wrong-password'))).not.toContain('a-wrong-password');
  });

  test('200: takes the other form fields into account; their problems are warnings', async () => {
    expect((await ask('schemas', ['zebra'], { parameters: { database: 'no_such_database' } })).is_valid).toBeFalse();
    const answer = await ask('port', 5432, { parameters: { host: null } });
    expect(answer).toMatchObject({
      is_valid: true,
      checked_remotely: false,
      warnings: [{ code: 'missing_parameter' }],
    });
  });

  test('200: stores nothing', async () => {
    const read = async () =>
      (await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, source.id)))[0]!;
    const before = await read();
    await ask('password', 'a-wrong-password');
    await ask('database', 'no_such_database');
    expect(await read()).toEqual(before);
    expect(openParameters(deps, before).password).toBe(settings.password);
  });

  test('200: tests file and sample connectors too', async () => {
    const files = await make.connector('destination', 'file', { path: 'out' });
    expect(await ask('path', 'elsewhere', {}, files.id)).toMatchObject({ is_valid: true, checked_remotely: true });
    expect((await ask('path', '../outside', {}, files.id)).is_valid).toBeFalse();
    const demo = await make.connector('source', 'demo');
    expect((await ask('rows', 10, {}, demo.id)).is_valid).toBeTrue();
    expect((await ask('end_date', '2020-01-01', {}, demo.id)).errors).toMatchObject([{ code: 'invalid_parameter' }]);
  });

  test('400: unknown_parameter, also in the other fields', async () => {
    const one = await validate(source.id, { parameter_name: 'nothing', value: 1 });
    expect([one.status, one.body.code, one.body.field]).toEqual([400, 'unknown_parameter', 'parameter_name']);
    const two = await validate(source.id, { parameter_name: 'port', value: 1, parameters: { nothing: 1 } });
    expect([two.status, two.body.code, two.body.field]).toEqual([400, 'unknown_parameter', 'parameters.nothing']);
  });

  test('400: invalid_reference for a connection or stream that does not use it', async () => {
    const question = { parameter_name: 'port', value: 5432 };
    for (const [field, id] of [
      ['connection_id', UNKNOWN],
      ['stream_id', UNKNOWN],
    ] as const) {
      const { status, body } = await validate(source.id, { ...question, [field]: id });
      expect([status, body.code, body.field]).toEqual([400, 'invalid_reference', field]);
    }
    expect((await validate(source.id, { ...question, connection_id: connection.id })).status).toBe(200);
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/account_connectors/${UNKNOWN}/validate_parameter`, {})).status).toBe(401);
  });

  test('403: without the permission for the connector type', async () => {
    const question = [
      'POST',
      `/account_connectors/${destination.id}/validate_parameter`,
      { parameter_name: 'port', value: 1 },
    ] as const;
    const { status, body } = await sourcesOnly(...question);
    expect([status, body.required_permission]).toEqual([403, 'destinations.update']);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) {
      expect((await validate(id, { parameter_name: 'rows', value: 1 })).status).toBe(404);
    }
  });

  test.each([
    ['no parameter_name', { value: 1 }, 'parameter_name'],
    ['no value', { parameter_name: 'port' }, 'value'],
    ['an unknown key', { parameter_name: 'port', value: 1, extra: 1 }, 'extra'],
  ])('422: %s', async (_, body, name) => {
    const answer = await validate(source.id, body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toMatchObject([{ loc: ['body', name] }]);
  });
});
