import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { accountConnectors, auditEvents } from '../../db/schema/index.ts';
import { withConnector } from '../../server/connector-runtime/account-connector-calls.ts';
import { redactorOf } from '../../server/connector-runtime/connector-secrets.ts';
import { variable } from '../../server/platform/config.ts';
import { readReference } from '../../server/platform/secret-references.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { uniqueName } from '../support/resources.ts';

const folder = mkdtempSync(join(tmpdir(), 'secrets-'));
const vault = startHttpServer();
afterAll(async () => {
  await vault.close();
  rmSync(folder, { recursive: true });
});
const OTHER_ACCOUNT = '0197f000-0000-7000-8000-000000000002';
const VALUE = 'the-secret-value-0123456789';

const service = await testDeps({
  config: {
    SECRET_REFERENCES: [
      'env:TEST_PIPELINE_',
      'env:SECRET_',
      `file:${folder}/{account_id}/`,
      'vault:secret/data/{account_id}/',
    ],
    VAULT_ADDR: vault.url,
    VAULT_TOKEN: `file:${folder}/token`,
  },
});
const { deps, account_id } = service;
const { call } = testApi(service);

const own = join(folder, account_id);
mkdirSync(own);
mkdirSync(join(folder, OTHER_ACCOUNT));
writeFileSync(join(folder, 'token'), 'token-of-the-service\n');
writeFileSync(join(own, 'password'), `${VALUE}\n`);
writeFileSync(join(folder, OTHER_ACCOUNT, 'password'), 'of another account');
symlinkSync(join(folder, OTHER_ACCOUNT, 'password'), join(own, 'link'));
process.env.TEST_PIPELINE_TOKEN = VALUE;
process.env.TEST_OTHER_TOKEN = VALUE;
vault.on(`/v1/secret/data/${account_id}/crm`, ({ headers }) =>
  headers['x-vault-token'] === 'token-of-the-service'
    ? Response.json({ data: { data: { password: VALUE, number: 1 }, metadata: { version: 3 } } })
    : Response.json({ errors: ['permission denied'] }, { status: 403 }),
);
vault.on(`/v1/secret/data/${account_id}/sealed`, () => Response.json({ errors: ['Vault is sealed'] }, { status: 503 }));
vault.on(`/v1/secret/data/${account_id}/denied`, () => Response.json({ errors: [] }, { status: 403 }));

const read = (reference: string, rules: object = {}) =>
  readReference({ ...deps.config, ...rules }, reference, { account_id, variable });

describe('a reference', () => {
  test.each(['env:TEST_PIPELINE_TOKEN', `file:${own}/password`, `vault:secret/data/${account_id}/crm#password`])(
    '%s is read',
    async (reference) => {
      expect(await read(reference)).toBe(VALUE);
    },
  );

  test.each([
    ['env:TEST_OTHER_TOKEN', 'not_allowed'],
    ['env:SECRET_KEY', 'not_allowed'],
    ['env:TEST_PIPELINE_MISSING', 'not_found'],
    [`file:${folder}/token`, 'not_allowed'],
    [`file:${folder}/${OTHER_ACCOUNT}/password`, 'not_allowed'],
    [`file:${own}/../${OTHER_ACCOUNT}/password`, 'not_allowed'],
    [`file:${own}/link`, 'not_allowed'],
    [`file:${own}/missing`, 'not_found'],
    [`file:${own}/.`, 'not_allowed'],
    [`vault:secret/data/${OTHER_ACCOUNT}/crm#password`, 'not_allowed'],
    [`vault:secret/data/${account_id}/../${OTHER_ACCOUNT}/crm#password`, 'not_allowed'],
    [`vault:secret/data/${account_id}/crm#missing`, 'not_found'],
    [`vault:secret/data/${account_id}/crm#number`, 'not_found'],
    [`vault:secret/data/${account_id}/missing#password`, 'not_found'],
    [`vault:secret/data/${account_id}/denied#password`, 'refused'],
    [`vault:secret/data/${account_id}/sealed#password`, 'unreachable'],
  ])('%s is %s', async (reference, reason) => {
    await expect(read(reference)).rejects.toMatchObject({ reason });
  });

  test('needs a server and its token, and never leads into the data of the service', async () => {
    const reference = `vault:secret/data/${account_id}/crm#password`;
    await expect(read(reference, { VAULT_ADDR: null })).rejects.toMatchObject({ reason: 'not_found' });
    await expect(read(reference, { VAULT_ADDR: 'http://127.0.0.1:1' })).rejects.toMatchObject({
      reason: 'unreachable',
    });
    await expect(read(reference, { VAULT_TOKEN: 'wrong' })).rejects.toMatchObject({ reason: 'refused' });
    await expect(read(reference, { VAULT_TOKEN: `file:${folder}/none` })).rejects.toThrow(
      /file:.*none, which holds no/,
    );
    const { DATA_DIR } = deps.config;
    writeFileSync(join(DATA_DIR, 'own-file'), VALUE);
    const listed = { SECRET_REFERENCES: [`file:${DATA_DIR}/`] };
    await expect(read(`file:${DATA_DIR}/own-file`, listed)).rejects.toMatchObject({ reason: 'not_allowed' });
  });
});

describe('a source with a secret by reference', () => {
  const server = startHttpServer();
  afterAll(() => server.close());
  server.on('/items', ({ headers }) =>
    headers.authorization === `Bearer ${VALUE}` ? Response.json([{ id: 1 }]) : new Response('no', { status: 401 }),
  );
  const definition = JSON.stringify({
    base_url: server.url,
    authentication: { type: 'bearer', token: '{{ secrets.token }}' },
    retries: { max_attempts: 1 },
    streams: [{ name: 'items', request: { path: '/items' }, schema: { properties: { id: { type: 'integer' } } } }],
  });
  const create = (token: string) =>
    call('POST', '/account_connectors', {
      name: uniqueName('api'),
      connector_type: 'source',
      connector_name: 'http_api',
      parameters: { definition, secrets: { token } },
      test_connection: false,
    });
  const rowOf = async (id: string) =>
    (await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id)))[0]!;
  deps.egress.allow = [new URL(server.url).host];

  test('sends what it refers to, in checks and in runs, and stores the reference only', async () => {
    const { body: created } = await create('env:TEST_PIPELINE_TOKEN');
    await call('POST', `/account_connectors/${created.id}/login`);
    const row = await rowOf(created.id);
    expect([row.status, row.status_message]).toEqual(['active', null]);
    expect(JSON.parse(deps.secrets.open(row.secrets!, `account_connector:${account_id}:${row.id}`))).toEqual({
      secrets: { token: 'env:TEST_PIPELINE_TOKEN' },
    });
    const redactor = redactorOf(deps, [{ ...row, id: Bun.randomUUIDv7() }]);
    expect(redactor.text(VALUE)).toBe(VALUE);
    const before = redactorOf(deps, [row]);
    const use = { purpose: 'run' as const, actor: { type: 'system' as const, id: null } };
    const check = await withConnector(deps, row, { ms: 20_000, use }, ({ connector, ctx }) => connector.check(ctx));
    expect(check.checks.filter(({ status }) => status === 'failed')).toEqual([]);
    expect(before.text(`token ${VALUE}`)).toBe('token [redacted]');
    const uses = await deps.db.select().from(auditEvents).where(eq(auditEvents.kind, 'secret_use'));
    const hosts = uses.map(({ details }) => details?.host);
    expect(hosts).toEqual(expect.arrayContaining(['env:TEST_PIPELINE_TOKEN', new URL(server.url).host]));
  });

  test('is in the audit log as a use of the token of Vault, too', async () => {
    const { body: created } = await create(`vault:secret/data/${account_id}/crm#password`);
    await call('POST', `/account_connectors/${created.id}/login`);
    expect((await rowOf(created.id)).status).toBe('active');
    const uses = await deps.db.select().from(auditEvents).where(eq(auditEvents.resource_id, 'VAULT_TOKEN'));
    expect(uses).toMatchObject([
      { kind: 'secret_use', action: 'read_secret', details: { host: new URL(vault.url).host } },
    ]);
  });

  test('names what is missing, and is refused when the operator does not allow it', async () => {
    const { body: created } = await create('env:TEST_PIPELINE_MISSING');
    await call('POST', `/account_connectors/${created.id}/login`);
    const row = await rowOf(created.id);
    expect(row.status_reason).toBe('secret_not_found');
    expect(row.status_message).toContain('env:TEST_PIPELINE_MISSING');
    const refused = await create('env:SECRET_KEY');
    expect(refused).toMatchObject({
      status: 400,
      body: { code: 'secret_reference_not_allowed', field: 'parameters.secrets' },
    });
  });
});
