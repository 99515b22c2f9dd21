import { afterAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import { MAX_OPENAPI_LENGTH } from '../../client/openapi-document.ts';
import { allConnectors } from '../../server/connectors/registry.ts';
import { DefinitionDraftRequest } from '../../server/resources/account-connectors/trials/draft-definition.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { postgresParameters } from '../support/resources.ts';

const { call, anonymous } = testApi(await testDeps());

describe('GET /connectors', () => {
  test('200: the connector list in a stable order, without test connectors', async () => {
    const { status, body } = await call('GET', '/connectors');
    expect(status).toBe(200);
    const names = body.map((one: { connector_type: string; name: string }) => `${one.connector_type} ${one.name}`);
    const listed = allConnectors().filter(({ hidden }) => !hidden);
    const inOrder = (type: string) =>
      listed.flatMap((one) => (one.type === type ? [`${type} ${one.name}`] : [])).toSorted();
    expect(names).toEqual([...inOrder('source'), ...inOrder('destination')]);
    expect(names).toContain('destination postgres');
    expect(names).not.toContain('source sample');
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', '/connectors')).status).toBe(401);
  });

  test('422: an unknown query parameter', async () => {
    const { status, body } = await call('GET', '/connectors?page=1');
    expect(status).toBe(422);
    expect(body.detail).toMatchObject([{ loc: ['query', 'page'], type: 'extra_forbidden' }]);
  });
});

describe('GET /connectors/{connector_type}/{connector_name}', () => {
  test('200: describes its parameters', async () => {
    const { status, body } = await call('GET', '/connectors/destination/postgres');
    expect(status).toBe(200);
    expect(body).toMatchObject({ connector_type: 'destination', name: 'postgres', category: 'database' });
    expect(body.supported_destination_sync_modes).toContain('append_dedup');
    const password = body.parameters.find((one: { name: string }) => one.name === 'password');
    expect(password).toMatchObject({ secret: true, group: 'authentication', default: null });
    const mode = body.parameters.find((one: { name: string }) => one.name === 'ssl_mode');
    expect(Object.keys(mode.possible_values)).toContain('verify-full');
  });

  test('200: accepts its own id as connector_id', async () => {
    const { body } = await call('GET', '/connectors/source/demo');
    const again = await call('GET', `/connectors/source/demo?connector_id=${body.id}`);
    expect(again.status).toBe(200);
    expect(again.body).toEqual(body);
  });

  test('400: connector_id of another connector', async () => {
    const other = await call('GET', '/connectors/source/postgres');
    const { status, body } = await call('GET', `/connectors/source/demo?connector_id=${other.body.id}`);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'connector_id_mismatch', field: 'connector_id' });
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', '/connectors/source/demo')).status).toBe(401);
  });

  test('404: no connector of this name and type', async () => {
    const { status, body } = await call('GET', '/connectors/destination/demo');
    expect(status).toBe(404);
    expect(body.detail).toBe('Connector not found');
  });

  test('422: an unknown type', async () => {
    const { status, body } = await call('GET', '/connectors/chat/demo');
    expect(status).toBe(422);
    expect(body.detail).toMatchObject([{ loc: ['path', 'connector_type'], type: 'enum' }]);
  });
});

describe('capabilities', () => {
  const ROOT = join(import.meta.dir, '../../server/connectors');
  const of = (type: 'source' | 'destination', name: string) => call('GET', `/connectors/${type}/${name}`);

  test.each([
    ['source', 'postgres', { cdc: true, reverse_etl: false, network_logs: true }],
    ['source', 'mysql', { cdc: true }],
    ['source', 'demo', { cdc: false, network_logs: false }],
    ['destination', 'postgres', { reverse_etl: false, chat: false, network_logs: true }],
    ['destination', 'http', { reverse_etl: true, network_logs: true }],
    ['destination', 'slack', { chat: true }],
  ] as const)('of the %s %s are those of its code', async (type, name, capabilities) => {
    expect((await of(type, name)).body.capabilities).toMatchObject(capabilities);
  });

  /** The files that a connector consists of. */
  function filesOf(file: string, known = new Set<string>()): Set<string> {
    if (known.has(file) || !file.startsWith(ROOT) || file.startsWith(join(ROOT, 'contract'))) return known;
    known.add(file);
    for (const { path } of new Bun.Transpiler({ loader: 'ts' }).scanImports(readFileSync(file, 'utf8'))) {
      if (path.startsWith('.')) filesOf(join(dirname(file), path), known);
    }
    return known;
  }

  test.each(allConnectors().map((one) => [`${one.name} ${one.type}`, one] as const))(
    'the %s has a network log exactly if its code uses the network',
    async (_, { type, name, offline }) => {
      const file = join(ROOT, name.replaceAll('_', '-'), `${type}.ts`);
      const used = [...filesOf(file)].some((one) =>
        /\bctx\.(?:fetch|connect|recorder)\b|\bfetch\b/.test(readFileSync(one, 'utf8')),
      );
      expect([name, !offline]).toEqual([name, used]);
    },
  );
});

describe('POST /connector_rights', () => {
  const rights = async (connector_type: string, parameters: object, connector_name = 'postgres') =>
    (await call('POST', '/connector_rights', { connector_type, connector_name, parameters })).body.statements;

  test('200: with them, a new user can read and write as the connectors do', async () => {
    const database = await createPlainDatabase();
    const owner = postgres(database.url, { max: 1, onnotice: () => {} });
    const { database: name } = postgresParameters(database.url);
    const username = `o'"reader ${String(name)}`;
    const role = `"${username.replaceAll('"', '""')}"`;
    await owner.unsafe(`create role ${role} login password 'p'; create table orders (id int)`);
    afterAll(async () => {
      await owner.unsafe(`drop owned by ${role}; drop role ${role}`);
      await owner.end();
      await database.drop();
    });
    const login = { username, database: name, password: 'never shown' };
    await owner.unsafe(await rights('source', login));
    await owner.unsafe(await rights('destination', { ...login, schema: 'Own "schema"' }));
    await owner.unsafe(
      `set role ${role}; select * from orders; create table "Own ""schema""".copy (id int); reset role`,
    );
    expect(await rights('source', { ...login, replication: 'logical' })).toContain(`ALTER ROLE ${role} REPLICATION;`);
    expect(await rights('source', { ...login, host: 5, username: [] })).not.toContain('never shown');
  });

  test('200: null where nothing is to be granted; 404 for an unknown connector', async () => {
    expect(await rights('source', {}, 'demo')).toBeNull();
    expect(await rights('destination', { username: "o'x", database: 'a`b' }, 'mysql')).toContain(
      "ON `a``b`.* TO 'o''x'@'%';",
    );
    const unknown = { connector_type: 'source', connector_name: 'nothing' };
    expect((await call('POST', '/connector_rights', unknown)).status).toBe(404);
  });
});

describe('POST /definition_drafts', () => {
  const draft = (openapi: object, more: object = {}) =>
    call('POST', '/definition_drafts', { openapi: JSON.stringify(openapi), ...more });
  const schema = { type: 'array', items: { type: 'object', properties: { id: {} } } };
  const paths = { '/orders': { get: { responses: { 200: { content: { 'application/json': { schema } } } } } } };
  const described = { openapi: '3.1.0', servers: [{ url: 'https://shop.example.com' }], paths };

  test('200: a definition with what was guessed', async () => {
    const { status, body } = await draft(described);
    expect([status, body.streams]).toMatchObject([200, [{ name: 'orders', path: '/orders' }]]);
    expect(body.definition).toContain('base_url: https://shop.example.com');
  });

  test('200: from a document of several megabytes; 413 for a larger request, 422 for a larger document', async () => {
    const sized = (length: number) => draft({ ...described, info: { description: 'x'.repeat(length) } });
    const { status, body } = await sized(7_900_000);
    expect([status, body.streams]).toMatchObject([200, [{ name: 'orders' }]]);
    expect((await sized(MAX_OPENAPI_LENGTH)).status).toBe(422);
    expect(await sized(17_000_000)).toMatchObject({ status: 413, body: { limit_bytes: 16 * 1024 * 1024 } });
    expect(DefinitionDraftRequest.shape.openapi.maxLength).toBe(MAX_OPENAPI_LENGTH);
  });

  test.each([
    ['another document', {}, {}, 'invalid_openapi'],
    ['a document without lists', { ...described, paths: {} }, {}, 'no_lists'],
    ['another connector', described, { connector_name: 'postgres' }, 'draft_unsupported'],
  ])('400: %s', async (_what, openapi, more, code) => {
    expect(await draft(openapi, more)).toMatchObject({ status: 400, body: { code } });
  });
});
