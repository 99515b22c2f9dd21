import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors, triggers } from '../../db/schema/index.ts';
import { openActions } from '../../server/automation/triggers/action-secrets.ts';
import { openParameters, secretsOf } from '../../server/connector-runtime/connector-secrets.ts';
import { maskAddress } from '../../server/platform/keyed-address.ts';
import { sealStoredSecrets } from '../../server/process/seal-stored-secrets.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { uniqueName } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call } = api;
const viewer = api.as(await api.keyWith([]));

const KEY = 's3cr3t-0123456789abcdef';
const MASK = '**********';
const URL_WITH_KEY = `https://hooks.example.test/v1/contacts?format=json&api_key=${KEY}`;
const HEADERS = { 'X-Api-Key': KEY };

describe('an address', () => {
  test.each([
    ['https://api.example.com/v1/contacts/batch', null],
    ['https://api.example.com/{{ table }}?into={{ table }}', null],
    ['http://[::1]:8080/a/b#part', null],
    ['not an address', null],
    ['https://user:pw@example.com/a', `https://${MASK}@example.com/a`],
    ['https://user@example.com', `https://${MASK}@example.com`],
    ['https://example.com/a?key=1&empty=&b=x#f', `https://example.com/a?key=${MASK}&empty=&b=${MASK}#f`],
    ['https://example.com?a1b2c3d4e5f6a7b8', `https://example.com?${MASK}`],
    [
      'https://hooks.example.com/services/T0/B0/XaYbZcXaYbZcXaYbZc12',
      `https://hooks.example.com/services/T0/B0/${MASK}`,
    ],
    ['https://example.com/hook/0199f6a2-1a2b-7c3d-8e4f-5a6b7c8d9e0f/in', `https://example.com/hook/${MASK}/in`],
  ])('%s', (address, masked) => {
    expect(maskAddress(address)).toBe(masked ?? address);
  });
});

const destination = async (parameters: object) => {
  const { body } = await call('POST', '/account_connectors', {
    name: uniqueName('http'),
    connector_type: 'destination',
    connector_name: 'http',
    parameters,
    test_connection: false,
  });
  return body;
};
const rowOf = async (id: string) =>
  (await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id)))[0]!;
const hookOf = async (id: string) => (await deps.db.select().from(triggers).where(eq(triggers.id, id)))[0]!;

describe('headers and keyed addresses of a destination', () => {
  test('are masked in answers, encrypted in the table, and sent back unchanged', async () => {
    const created = await destination({ url: URL_WITH_KEY, headers: HEADERS });
    const masked = `https://hooks.example.test/v1/contacts?format=${MASK}&api_key=${MASK}`;
    expect(created.parameters).toMatchObject({ url: masked, headers: MASK });
    expect(JSON.stringify((await viewer('GET', '/account_connectors')).body)).not.toContain(KEY);
    expect(JSON.stringify(await rowOf(created.id))).not.toContain(KEY);
    expect(openParameters(deps, await rowOf(created.id))).toMatchObject({ url: URL_WITH_KEY, headers: HEADERS });
    const { parameters } = created;
    const sent = await call('POST', `/account_connectors/${created.id}`, { parameters });
    expect([sent.status, sent.body.revision]).toEqual([200, 1]);
    expect(secretsOf(deps, await rowOf(created.id))).toContain(KEY);
    expect(secretsOf(deps, await rowOf(created.id))).not.toContain('json');
  });

  test('an edited address that still contains the mask is refused', async () => {
    const { id } = await destination({ url: URL_WITH_KEY });
    const parameters = { url: `https://elsewhere.example.test/?api_key=${MASK}` };
    const { status, body } = await call('POST', `/account_connectors/${id}`, { parameters });
    expect({ status, ...body }).toMatchObject({ status: 400, code: 'invalid_parameter', field: 'parameters.url' });
    const question = { parameter_name: 'url', value: parameters.url };
    const asked = await call('POST', `/account_connectors/${id}/validate_parameter`, question);
    expect(asked.body).toMatchObject({ is_valid: false, checked_remotely: false });
  });

  test('stored in clear by an earlier version are sealed at the start, once', async () => {
    const { id } = await destination({ url: 'https://example.test/' });
    const clear = { ...(await rowOf(id)).parameters, url: URL_WITH_KEY, headers: HEADERS };
    await deps.db.update(accountConnectors).set({ parameters: clear }).where(eq(accountConnectors.id, id));
    await sealStoredSecrets(deps);
    const sealed = await rowOf(id);
    expect(JSON.stringify(sealed)).not.toContain(KEY);
    expect(openParameters(deps, sealed)).toMatchObject({ url: URL_WITH_KEY, headers: HEADERS });
    await sealStoredSecrets(deps);
    expect(await rowOf(id)).toEqual(sealed);
  });
});

describe('headers and keyed addresses of a webhook', () => {
  const HOOK = { type: 'call_webhook', url: URL_WITH_KEY, headers: HEADERS, secret: 'a secret of enough characters' };
  const create = async () =>
    (await call('POST', '/automation/triggers', { name: uniqueName('hook'), rule: 'true', actions: [HOOK] })).body;
  const update = (id: string, action: object) => call('POST', `/automation/triggers/${id}`, { actions: [action] });

  test('are masked in answers, encrypted in the table, and sent back unchanged', async () => {
    const created = await create();
    expect(created.actions[0]).toMatchObject({ headers: { 'X-Api-Key': MASK }, secret: MASK });
    expect(JSON.stringify((await viewer('GET', `/automation/triggers/${created.id}`)).body)).not.toContain(KEY);
    expect(JSON.stringify(await hookOf(created.id))).not.toContain(KEY);
    expect((await update(created.id, created.actions[0])).body.actions).toEqual(created.actions);
    expect(openActions(deps.secrets, await hookOf(created.id))[0]).toMatchObject(HOOK);
  });

  test.each([
    ['headers.X-Api-Key', { headers: { 'X-Api-Key': MASK }, secret: null }],
    ['secret', { headers: {}, secret: MASK }],
  ])('do not follow the webhook to another address: %s', async (field, masked) => {
    const { id } = await create();
    const moved = { type: 'call_webhook', url: 'https://elsewhere.example.test/', ...masked };
    const { status, body } = await update(id, moved);
    expect({ status, ...body }).toMatchObject({ status: 400, code: 'secrets_required', field: `actions.0.${field}` });
  });

  test('stored in clear by an earlier version are sealed at the start, once', async () => {
    const { id } = await create();
    const before = await hookOf(id);
    const secret = { 0: HOOK.secret };
    const secrets = deps.secrets.seal(JSON.stringify(secret), `trigger:${before.account_id}:${id}`);
    const actions = [{ ...before.actions[0], url: HOOK.url, headers: HEADERS, secret: MASK }];
    await deps.db.update(triggers).set({ actions, secrets }).where(eq(triggers.id, id));
    expect(openActions(deps.secrets, await hookOf(id))[0]).toMatchObject(HOOK);
    await sealStoredSecrets(deps);
    const sealed = await hookOf(id);
    expect(JSON.stringify(sealed)).not.toContain(KEY);
    expect(openActions(deps.secrets, sealed)[0]).toMatchObject(HOOK);
    await sealStoredSecrets(deps);
    expect(await hookOf(id)).toEqual(sealed);
  });
});
