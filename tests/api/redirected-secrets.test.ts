import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import { withConnector } from '../../server/connector-runtime/account-connector-calls.ts';
import { allConnectors } from '../../server/connectors/registry.ts';
import { describeParameters } from '../../server/connectors/contract/parameters.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps();
const { call } = testApi(service);

/** A server of somebody else: it counts connections and the bytes that reach it. */
let reached = 0;
const elsewhere = Bun.listen({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open: (socket) => {
      reached += 1;
      socket.end();
    },
    data: () => {},
  },
});
const { port } = elsewhere;
const url = `http://127.0.0.1:${port}`;
beforeAll(() => {
  reached = 0;
});
afterAll(() => elsewhere.stop(true));

const definition = (base_url: string) =>
  JSON.stringify({
    base_url,
    authentication: { type: 'bearer', token: '{{ secrets.token }}' },
    retries: { max_attempts: 1 },
    streams: [{ name: 'items', request: { path: '/items' }, schema: { properties: { id: { type: 'integer' } } } }],
  });
const manifest = (url_base: string) =>
  JSON.stringify({
    version: '6.0.0',
    type: 'DeclarativeSource',
    check: { type: 'CheckStream', stream_names: ['items'] },
    streams: [
      {
        type: 'DeclarativeStream',
        name: 'items',
        retriever: {
          type: 'SimpleRetriever',
          requester: {
            type: 'HttpRequester',
            url_base,
            path: '/items',
            authenticator: { type: 'BearerAuthenticator', api_token: "{{ config['token'] }}" },
          },
          record_selector: { type: 'RecordSelector', extractor: { type: 'DpathExtractor', field_path: [] } },
        },
        schema_loader: { type: 'InlineSchemaLoader', schema: { type: 'object', properties: {} } },
      },
    ],
  });

const server = { host: '127.0.0.1', port: 1, database: 'd', username: 'u', ssl_mode: 'require' };
const serverMoves = { host: 'localhost', port, ssl_mode: 'disable', ssl_ca: 'another authority' };
const bucket = { location: 's3', path: 'x', bucket: 'b', endpoint: 'http://127.0.0.1:1', access_key_id: 'id' };
const bucketMoves = { bucket: 'c', region: 'eu-west-1', endpoint: url, path_style: false };
const httpFile = { location: 'http', urls: ['http://127.0.0.1:1/a.csv'], authentication: 'bearer' };

interface Case {
  stored: Record<string, unknown>;
  secrets: Record<string, unknown>;
  /** For each parameter that decides where the secrets go: another value. */
  moves: Record<string, unknown>;
}

const database: Case = { stored: server, secrets: { password: 'stored' }, moves: serverMoves };
/** Every connector that has secrets. A new one fails the first test until it is listed here. */
const CASES: Record<string, Case[]> = {
  'source postgres': [database],
  'destination postgres': [database],
  'source mysql': [database],
  'destination mysql': [database],
  'source file': [
    { stored: bucket, secrets: { secret_access_key: 'stored' }, moves: bucketMoves },
    {
      stored: httpFile,
      secrets: { token: 'stored', headers: { 'x-key': 'stored' } },
      moves: { urls: [`${url}/a.csv`] },
    },
    {
      stored: { location: 'sftp', path: 'a.csv', host: '127.0.0.1', port: 1, username: 'loader' },
      secrets: { password: 'stored' },
      moves: { host: 'localhost', port, host_key_fingerprint: `SHA256:${'A'.repeat(43)}` },
    },
    {
      stored: { location: 'azure', path: 'a.csv', bucket: 'data', storage_account: 'first' },
      secrets: { account_key: 'stored' },
      moves: { storage_account: 'second' },
    },
    {
      stored: { location: 'ftp', path: 'a.csv', host: '127.0.0.1', port: 1, username: 'loader' },
      secrets: { password: 'stored' },
      moves: { ftp_encryption: 'none', check_certificate: false, ca_certificate: 'another authority' },
    },
  ],
  'destination file': [
    { stored: bucket, secrets: { secret_access_key: 'stored' }, moves: bucketMoves },
    {
      stored: { location: 'azure', path: 'x', bucket: 'data', storage_account: 'first' },
      secrets: { account_key: 'stored' },
      moves: { storage_account: 'second' },
    },
    {
      stored: { location: 'sftp', path: 'x', host: '127.0.0.1', port: 1, username: 'loader' },
      secrets: { password: 'stored' },
      moves: { host: 'localhost', port, host_key_fingerprint: `SHA256:${'A'.repeat(43)}` },
    },
  ],
  'source http_api': [
    {
      stored: { definition: definition('http://127.0.0.1:1') },
      secrets: { secrets: { token: 'stored' } },
      moves: { definition: definition(url), config: { base: url } },
    },
  ],
  'source airbyte_manifest': [
    {
      stored: { manifest: manifest('http://127.0.0.1:1') },
      secrets: { secrets: { token: 'stored' } },
      moves: {
        manifest: manifest(url),
        config: { base: url },
        components: 'class Unused:\n    pass\n',
        files: { 'a.py': '' },
      },
    },
  ],
  'destination http': [
    {
      stored: { url: 'http://127.0.0.1:1/', authentication: 'bearer', oauth_address: 'http://127.0.0.1:1/token' },
      secrets: { token: 'stored', headers: { 'x-key': 'stored' } },
      moves: {
        url: `${url}/`,
        oauth_address: `${url}/token`,
        delete_url: `${url}/deleted`,
        definition: JSON.stringify({ objects: [{ upsert: { path: '/other' } }] }),
      },
    },
  ],
  'destination slack': [
    { stored: { api_url: 'http://127.0.0.1:1/' }, secrets: { bot_token: 'stored' }, moves: { api_url: `${url}/` } },
  ],
};

const rows = Object.entries(CASES).flatMap(([key, cases]) =>
  cases.flatMap((one) => Object.entries(one.moves).map(([name, value]) => ({ key, one, name, value }))),
);

async function stored(key: string, { stored: plain, secrets }: Case): Promise<string> {
  const [connector_type, connector_name] = key.split(' ');
  const { status, body } = await call('POST', '/account_connectors', {
    name: uniqueName(key),
    connector_type,
    connector_name,
    parameters: { ...plain, ...secrets },
    test_connection: false,
  });
  expect({ status, body }).toMatchObject({ status: 201 });
  return body.id;
}

test('every connector states which parameters decide where its secrets go', () => {
  const directing = allConnectors()
    .filter((connector) => !connector.hidden)
    .map((connector) => ({
      key: `${connector.type} ${connector.name}`,
      names: describeParameters(connector)
        .filter((parameter) => parameter.directs_secrets)
        .map(({ name }) => name),
    }))
    .filter(({ names }) => names.length > 0);
  const expected = Object.entries(CASES).map(([key, cases]) => ({
    key,
    names: cases.flatMap(({ moves }) => Object.keys(moves)),
  }));
  const sorted = (all: typeof expected) =>
    all.map(({ key, names }) => `${key}: ${names.toSorted().join(', ')}`).toSorted();
  expect(sorted(directing)).toEqual(sorted(expected));
});

describe('a stored secret does not follow a change of the place it goes to', () => {
  test.each(rows)('$key: $name', async ({ key, one, name, value }) => {
    const id = await stored(key, one);
    const secrets = Object.keys(one.secrets);
    reached = 0;
    const changed = await call('POST', `/account_connectors/${id}`, { parameters: { [name]: value } });
    expect(changed.status).toBe(400);
    expect(changed.body).toMatchObject({ code: 'secrets_required', changed: [name], field: expect.any(String) });
    expect(changed.body.secrets.toSorted()).toEqual(secrets.toSorted());
    const masked = Object.fromEntries(secrets.map((secret) => [secret, '**********']));
    const still = await call('POST', `/account_connectors/${id}`, { parameters: { ...masked, [name]: value } });
    expect(still.body.code).toBe('secrets_required');
    const question = { parameter_name: name, value };
    const asked = await call('POST', `/account_connectors/${id}/validate_parameter`, question);
    expect(asked.body).toMatchObject({ is_valid: false, checked_remotely: false });
    const other = { parameter_name: secrets[0], value: '**********', parameters: { [name]: value } };
    const overlaid = await call('POST', `/account_connectors/${id}/validate_parameter`, other);
    expect(overlaid.body).toMatchObject({ is_valid: false, checked_remotely: false });
    expect([asked, overlaid].map(({ body }) => body.errors.at(-1).code)).toEqual(Array(2).fill('secrets_required'));
    expect(reached).toBe(0);
    const again = { parameters: { ...one.secrets, [name]: value }, test_connection: false };
    expect((await call('POST', `/account_connectors/${id}`, again)).status).toBe(200);
  });
});

test('with the secrets entered again, the new place is tested; other settings need none', async () => {
  const id = await stored('source postgres', database);
  const parameters = { port, ssl_mode: 'disable', password: 'entered again' };
  const asked = await call('POST', `/account_connectors/${id}/validate_parameter`, {
    parameter_name: 'host',
    value: '127.0.0.1',
    parameters,
  });
  expect(asked.body.checked_remotely).toBe(true);
  await until(async () => reached > 0);
  const free = { parameters: { database: 'other', schemas: ['public'], host: '127.0.0.1' }, test_connection: false };
  expect((await call('POST', `/account_connectors/${id}`, free)).status).toBe(200);
  const removed = { parameters: { host: 'localhost', password: null }, test_connection: false };
  expect((await call('POST', `/account_connectors/${id}`, removed)).status).toBe(200);
});

test('GET /account_connectors/{account_connector_id}/secret_uses 200: each use, with its cause and host', async () => {
  const uses = (id: string, query = '') => call('GET', `/account_connectors/${id}/secret_uses${query}`);
  const api = CASES['source http_api']![0]!;
  const id = await stored('source http_api', { ...api, stored: { definition: definition(url) } });
  expect((await uses(id)).body).toEqual([]);
  // Requests of one piece of work count once: a login sends two here, since the server closes connections.
  for (let logins = 0; logins < 2; logins += 1) await call('POST', `/account_connectors/${id}/login`);
  const { body } = await uses(id);
  const user = { actor_type: 'user', actor_id: service.user_id, actor_name: expect.any(String) };
  expect(body).toMatchObject([1, 2].map(() => ({ purpose: 'test', host: `127.0.0.1:${port}`, ...user })));
  expect((await uses(id, `?limit=1&before=${body[0].id}`)).body).toEqual([body[1]]);
  const plain = { stored: { definition: definition(url).replace('{{ secrets.token }}', 'shown') }, secrets: {} };
  const open = await stored('source http_api', { ...plain, moves: {} });
  await call('POST', `/account_connectors/${open}/login`);
  expect((await uses(open)).body).toEqual([]);
});

test('a secret whose use cannot be recorded is not sent', async () => {
  const one = CASES['source http_api']![0]!;
  const id = await stored('source http_api', { ...one, stored: { definition: definition(url) } });
  const [row] = await service.deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
  const use = { purpose: 'test' as const, actor: { type: 'nothing' as 'user', id: null } };
  reached = 0;
  const checked = withConnector(service.deps, row!, { ms: 20_000, use }, ({ connector, ctx }) => connector.check(ctx));
  await expect(checked).rejects.toMatchObject({ code: 'use_not_recorded' });
  expect(reached).toBe(0);
});

test('a tunnel is a place too: added, moved, repinned or switched off', async () => {
  const id = await stored('destination postgres', database);
  const key = (await call('POST', '/account_connectors/generate_ssh_key')).body.encrypted_private_key;
  const update = (ssh_tunnel: object | null, parameters: object = {}) =>
    call('POST', `/account_connectors/${id}`, { ssh_tunnel, parameters, test_connection: false });
  const tunnel = { host: 'bastion.test', port: 22, username: 'u', encrypted_private_key: key };
  const pin = (letter: string) => ({ host_key_fingerprint: `SHA256:${letter.repeat(43)}` });
  const refused = async (change: object | null) => {
    const { status, body } = await update(change);
    expect({ status, ...body }).toMatchObject({ status: 400, code: 'secrets_required', changed: ['ssh_tunnel'] });
    expect(body.field).toBe('parameters.password');
    expect((await update(change, { password: 'again' })).status).toBe(200);
  };
  await refused(tunnel);
  expect((await update(pin('A'))).status).toBe(200);
  expect((await update({ username: 'other' })).status).toBe(200);
  await refused(pin('B'));
  await refused({ host: 'bastion2.test' });
  await refused({ enabled: false });
  expect((await update(null)).status).toBe(200);
});
