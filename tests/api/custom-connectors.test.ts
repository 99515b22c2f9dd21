import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors, connectionRuns, tasks } from '../../db/schema/index.ts';
import { refreshCatalog } from '../../server/catalog/discover.ts';
import { SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { inTurn, startHttpServer } from '../support/http-server.ts';
import { makerOf, uniqueName } from '../support/resources.ts';

const server = startHttpServer();
const { url } = server;
const { host } = new URL(url);
const service = await testDeps({ config: { EGRESS_ALLOW: [host] } });
const api = testApi(service);
const { call } = api;
const make = makerOf(call);
afterAll(() => server.close());
beforeEach(() => {
  server.on('/orders', () => Response.json([{ id: 1, total: 2 }]));
  server.on('/customers', () => Response.json([{ id: 1 }]));
  server.seen.length = 0;
});

const bearer = { type: 'BearerAuthenticator', api_token: "{{ config['token'] }}" };
const properties = (...names: string[]) => Object.fromEntries(names.map((name) => [name, { type: 'integer' }]));
const stream = (name: string, fields: string[], more: object = {}) =>
  streamOf(name, {
    url,
    properties: properties(...fields),
    primary_key: ['id'],
    requester: { authenticator: bearer },
    ...more,
  });
const spec = (names: object, required: string[] = []) => ({
  spec: {
    type: 'Spec',
    documentation_url: 'https://docs.example.com/shop',
    connection_specification: {
      type: 'object',
      required: ['token', ...required],
      properties: { token: { type: 'string', airbyte_secret: true }, ...names },
    },
  },
});
const ORDERS = stream('orders', ['id', 'total']);
const CUSTOMERS = stream('customers', ['id']);
const FIRST = manifestOf([ORDERS, CUSTOMERS], spec({}));
const text = (manifest: object) => JSON.stringify(manifest);
const ICON = 'data:image/svg+xml;base64,PHN2Zy8+';

let number = 0;
/** A connector of its own name, with the manifest of the address `/NAME.yaml`. */
async function added(manifest: object = FIRST) {
  number += 1;
  const name = `shop_${number}`;
  const path = `/${name}.yaml`;
  server.on(path, () => new Response(text(manifest)));
  const { status, body } = await call('POST', '/custom_connectors', { name, manifest_url: `${url}${path}` });
  expect([status, body.code]).toEqual([201, undefined]);
  return { name: body.name as string, path, body };
}

const sourceOf = (connector_name: string) =>
  make.connector('source', connector_name, { secrets: { token: 'the-secret-token' } });

/** A source with a connection that loads all its streams. */
async function loaded(connector_name: string) {
  const source = await sourceOf(connector_name);
  const [row] = await service.deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, source.id));
  await refreshCatalog(service.deps, row!, { actor: SYSTEM_ACTOR });
  const connection = await make.connection({ source_id: source.id });
  return { source, connection };
}

describe('POST /custom_connectors', () => {
  test('201: from an address, in the catalog under its own name, with icon and documentation', async () => {
    server.on('/shop.yaml', () => new Response(text(FIRST), { headers: { etag: '"one"' } }));
    const about = { name: 'shop', display_name: 'Our shop', icon: ICON, manifest_url: `${url}/shop.yaml` };
    const { status, body } = await call('POST', '/custom_connectors', about);
    expect([status, body]).toMatchObject([
      201,
      { name: 'custom.shop', version: 1, streams: ['orders', 'customers'], sources_count: 0, unsupported: [] },
    ]);
    const shown = (await call('GET', '/connectors/source/custom.shop')).body;
    expect(shown).toMatchObject({
      display_name: 'Our shop',
      icon_url: ICON,
      documentation_url: 'https://docs.example.com/shop',
      version: '1',
    });
    const names = shown.parameters.map((one: { name: string }) => one.name);
    expect(names).toContain('secrets');
    expect(names).not.toContain('manifest');
    expect((await call('GET', '/connectors')).body).toContainEqual(shown);
    expect((await call('GET', '/custom_connectors')).body).toContainEqual(body);
    const other = await api.otherAccount();
    expect((await other.call('GET', '/connectors/source/custom.shop')).status).toBe(404);
    expect((await other.call('GET', '/custom_connectors/custom.shop')).status).toBe(404);
    const foreign = { name: 'x', connector_type: 'source', connector_name: 'custom.shop', parameters: {} };
    expect((await other.call('POST', '/account_connectors', foreign)).body.code).toBe('unknown_connector');
    const again = await call('POST', '/custom_connectors', about);
    expect([again.status, again.body.code]).toEqual([400, 'duplicate_name']);
  });

  test('201: uploaded, and its sources read with its manifest', async () => {
    const body = { name: 'uploaded', manifest: text(FIRST) };
    expect((await call('POST', '/custom_connectors', body)).status).toBe(201);
    const source = await sourceOf('custom.uploaded');
    expect(source).toMatchObject({
      status: 'active',
      connector_name: 'custom.uploaded',
      connector_display_name: 'Uploaded',
      connector_version: '1',
    });
    expect(server.seen.find(({ path }) => path === '/orders')?.headers.authorization).toBe('Bearer the-secret-token');
  });

  test.each([
    ['no manifest', {}, 'manifest_missing'],
    ['not a manifest', { manifest: 'streams: 1' }, 'invalid_manifest'],
    [
      'nothing of it supported',
      { manifest: text(manifestOf([{ type: 'Unknown', name: 'x' }])) },
      'unsupported_manifest',
    ],
    ['a name that no column holds', { manifest: text(manifestOf([streamOf('a\u0000b')])) }, 'invalid_manifest'],
    ['a web page', { manifest_url: '/page' }, 'document_not_text'],
    ['bytes that are no text', { manifest_url: '/binary' }, 'document_not_text'],
    ['a missing file', { manifest_url: '/nothing' }, 'document_refused'],
    ['too large a file', { manifest_url: '/large' }, 'document_too_large'],
    ['endless redirects', { manifest_url: '/loop' }, 'document_refused'],
    ['a redirect to a private address', { manifest_url: '/inside' }, 'address_not_allowed'],
    ['another scheme', { manifest_url: 'ftp://example.com/manifest.yaml' }, 'unsupported_scheme'],
    ['not an address', { manifest_url: 'manifest.yaml' }, 'invalid_address'],
  ])('400: %s', async (_what, given: { manifest?: string; manifest_url?: string }, code) => {
    server.on('/page', () => new Response('<!DOCTYPE html><html></html>'));
    server.on('/binary', () => new Response(new Uint8Array([0xff, 0xfe, 0x00])));
    server.on('/large', () => new Response('x'.repeat(4_000_001)));
    server.on('/loop', () => new Response(null, { status: 302, headers: { location: '/loop' } }));
    server.on('/inside', () => new Response(null, { status: 302, headers: { location: 'https://10.0.0.1/x' } }));
    const place = given.manifest_url?.startsWith('/') ? { manifest_url: `${url}${given.manifest_url}` } : {};
    const { status, body } = await call('POST', '/custom_connectors', { name: 'refused', ...given, ...place });
    expect([status, body.code]).toEqual([400, code]);
    expect((await call('GET', '/custom_connectors/custom.refused')).status).toBe(404);
  });

  test('a redirect is followed', async () => {
    server.on('/moved', () => new Response(null, { status: 301, headers: { location: '/there' } }));
    server.on('/there', () => new Response(text(FIRST)));
    const { status } = await call('POST', '/custom_connectors', { name: 'moved', manifest_url: `${url}/moved` });
    expect(status).toBe(201);
  });
});

describe('GET /custom_connectors and GET /custom_connectors/{connector_name}', () => {
  test('200: with the number of sources; 404: a built-in connector', async () => {
    const { name, body } = await added();
    expect(body.sources_count).toBe(0);
    await sourceOf(name);
    const shown = await call('GET', `/custom_connectors/${name}`);
    expect([shown.status, shown.body]).toEqual([200, { ...body, sources_count: 1 }]);
    const listed = await call('GET', '/custom_connectors');
    expect(listed.body).toContainEqual(shown.body);
    expect((await call('GET', '/custom_connectors/airbyte_manifest')).status).toBe(404);
  });
});

describe('sources of a custom connector', () => {
  test('take no other manifest than that of the connector', async () => {
    const { name } = await added();
    const source = await sourceOf(name);
    const parameters = { manifest: text(manifestOf([CUSTOMERS])) };
    const changed = await call('POST', `/account_connectors/${source.id}`, { parameters });
    expect([changed.status, changed.body]).toMatchObject([
      400,
      { code: 'defined_by_connector', field: 'parameters.manifest' },
    ]);
    const created = { name: uniqueName('x'), connector_type: 'source', connector_name: name, parameters };
    expect((await call('POST', '/account_connectors', created)).body.code).toBe('defined_by_connector');
    const { parameters: own } = (await call('GET', `/account_connectors/source/${source.id}`)).body;
    expect((await call('POST', `/account_connectors/${source.id}`, { parameters: own })).status).toBe(200);
  });
});

describe('POST /custom_connectors/{connector_name}/previews', () => {
  test('200: nothing changed, by the ETag of the address', async () => {
    const answer = inTurn(
      () => new Response(text(FIRST), { headers: { etag: '"one"' } }),
      ({ headers }) => new Response(null, { status: headers['if-none-match'] === '"one"' ? 304 : 500 }),
    );
    server.on('/tagged.yaml', answer);
    await call('POST', '/custom_connectors', { name: 'tagged', manifest_url: `${url}/tagged.yaml` });
    const { status, body } = await call('POST', '/custom_connectors/custom.tagged/previews', {});
    expect([status, body]).toMatchObject([200, { is_changed: false, changes: [], sources: [] }]);
  });

  test('400: one that was uploaded has no address', async () => {
    await call('POST', '/custom_connectors', { name: 'at_hand', manifest: text(FIRST) });
    const { status, body } = await call('POST', '/custom_connectors/custom.at_hand/previews', {});
    expect([status, body.code]).toEqual([400, 'manifest_missing']);
  });

  test('200: streams, keys, fields and parameters that change, and the sources that would break', async () => {
    const { name, path } = await added();
    const { source, connection } = await loaded(name);
    const next = manifestOf(
      [stream('orders', ['id', 'note'], { primary_key: ['id', 'note'] }), stream('refunds', ['id'])],
      spec({ shop: { type: 'string' } }, ['shop']),
    );
    server.on(path, () => new Response(text(next)));
    const { status, body } = await call('POST', `/custom_connectors/${name}/previews`, {});
    const change = (subject: string, more: object) => ({
      subject,
      name: null,
      stream: null,
      before: null,
      after: null,
      ...more,
    });
    expect([status, body]).toMatchObject([200, { is_changed: true, sources_count: 1 }]);
    expect(body.changes).toEqual([
      change('primary_key', { stream: 'orders', before: 'id', after: 'id, note', is_breaking: true }),
      change('field', { stream: 'orders', name: 'note', after: 'integer', is_breaking: false }),
      change('field', { stream: 'orders', name: 'total', before: 'integer', is_breaking: true }),
      change('stream', { stream: 'refunds', after: 'refunds', is_breaking: false }),
      change('stream', { stream: 'customers', before: 'customers', is_breaking: true }),
      change('parameter', { name: 'shop', after: 'string, required', is_breaking: false }),
    ]);
    const place = { connection_id: connection.id, connection_name: connection.name };
    expect(body.sources).toEqual([
      {
        id: source.id,
        name: source.name,
        problems: ['"shop" is missing'],
        needs_secrets: false,
        streams: [
          { ...place, stream: 'customers' },
          { ...place, stream: 'orders' },
        ],
      },
    ]);
    expect((await call('GET', `/custom_connectors/${name}`)).body.version).toBe(1);
  });
});

describe('POST /custom_connectors/{connector_name}', () => {
  const preview = async (name: string, body: object = {}) =>
    (await call('POST', `/custom_connectors/${name}/previews`, body)).body;
  const row = async (id: string) =>
    (await service.deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id)))[0]!;

  test('200: the previewed manifest, for all sources at once, which are discovered again', async () => {
    const { name, path } = await added();
    const sources = [await sourceOf(name), await sourceOf(name)];
    const next = text(manifestOf([ORDERS, CUSTOMERS, stream('refunds', ['id'])], spec({})));
    server.on(path, () => new Response(next));
    const { digest, sources: broken } = await preview(name);
    expect(broken).toEqual([]);
    await service.deps.db.delete(tasks);
    const { status, body } = await call('POST', `/custom_connectors/${name}`, { digest, display_name: 'Shop 2' });
    expect([status, body]).toMatchObject([
      200,
      { version: 2, digest, display_name: 'Shop 2', streams: ['orders', 'customers', 'refunds'], sources_count: 2 },
    ]);
    for (const { id } of sources) {
      const stored = await row(id);
      expect(stored).toMatchObject({ status: 'active', revision: 2, parameters: { manifest: next } });
      expect(stored.secrets).not.toBeNull();
      expect((await call('POST', `/account_connectors/${id}/login`)).body).toBe('active');
      const { task } = (await call('GET', `/account_connectors/${id}/discovery`)).body;
      expect(task).toMatchObject({ status: 'queued' });
    }
  });

  test('400: a manifest that is not the previewed one, and none without a preview', async () => {
    const { name, path } = await added();
    const manifest = text(manifestOf([ORDERS], spec({})));
    const { digest } = await preview(name, { manifest });
    server.on(path, () => new Response(text(manifestOf([CUSTOMERS], spec({})))));
    const other = await call('POST', `/custom_connectors/${name}`, { digest });
    expect([other.status, other.body.code]).toEqual([400, 'connector_changed']);
    const none = await call('POST', `/custom_connectors/${name}`, { manifest });
    expect([none.status, none.body.code]).toEqual([400, 'digest_missing']);
    const late = await call('POST', `/custom_connectors/${name}`, { description: 'x', revision: 7 });
    expect([late.status, late.body.code]).toEqual([400, 'stale_revision']);
    expect((await call('POST', `/custom_connectors/${name}`, { digest, manifest })).body.version).toBe(2);
  });

  test('400 breaking_update, unless it is accepted: sources whose settings do not fit are broken', async () => {
    const { name } = await added();
    const source = await sourceOf(name);
    const given = { manifest: text(manifestOf([ORDERS, CUSTOMERS], spec({ shop: { type: 'string' } }, ['shop']))) };
    const { digest } = await preview(name, given);
    const refused = await call('POST', `/custom_connectors/${name}`, { digest, ...given });
    expect([refused.status, refused.body]).toMatchObject([
      400,
      { code: 'breaking_update', sources: [{ id: source.id, problems: ['"shop" is missing'] }] },
    ]);
    expect((await row(source.id)).revision).toBe(1);
    const accepted = await call('POST', `/custom_connectors/${name}`, { digest, ...given, accept_breaking: true });
    expect(accepted.status).toBe(200);
    expect(await row(source.id)).toMatchObject({ status: 'broken', status_message: '"shop" is missing' });
  });

  test('requests to another place take the secrets of no source along', async () => {
    const { name } = await added();
    const source = await sourceOf(name);
    const elsewhere = streamOf('orders', { url: 'https://other.example.com', requester: { authenticator: bearer } });
    const given = { manifest: text(manifestOf([elsewhere, CUSTOMERS], spec({}))) };
    const { digest, sources } = await preview(name, given);
    expect(sources).toMatchObject([{ id: source.id, needs_secrets: true }]);
    const update = { digest, ...given, accept_breaking: true };
    expect((await call('POST', `/custom_connectors/${name}`, update)).status).toBe(200);
    const stored = await row(source.id);
    expect(stored).toMatchObject({ status: 'pending_auth', secrets: null });
    expect(stored.parameters).not.toHaveProperty('secrets');
  });

  test('400 run_active: during a run of a source', async () => {
    const { name } = await added();
    const { connection } = await loaded(name);
    const { body: run_id } = await call('POST', `/connections/${connection.id}/run`);
    const given = { manifest: text(manifestOf([ORDERS, CUSTOMERS, stream('refunds', ['id'])], spec({}))) };
    const { digest } = await preview(name, given);
    const { status, body } = await call('POST', `/custom_connectors/${name}`, { digest, ...given });
    expect([status, body]).toMatchObject([400, { code: 'run_active', connection_run_ids: [run_id] }]);
    expect((await call('GET', `/custom_connectors/${name}`)).body.version).toBe(1);
    await service.deps.db.delete(connectionRuns).where(eq(connectionRuns.id, run_id));
  });
});

describe('DELETE /custom_connectors/{connector_name}', () => {
  test('204 without sources; 400 connector_in_use with one; 404 for another', async () => {
    const { name } = await added();
    const source = await sourceOf(name);
    const used = await call('DELETE', `/custom_connectors/${name}`);
    expect([used.status, used.body]).toMatchObject([
      400,
      { code: 'connector_in_use', account_connector_ids: [source.id] },
    ]);
    expect((await call('DELETE', `/account_connectors/${source.id}`)).status).toBe(204);
    expect((await call('DELETE', `/custom_connectors/${name}`)).status).toBe(204);
    expect((await call('GET', `/custom_connectors/${name}`)).status).toBe(404);
    expect((await call('DELETE', '/custom_connectors/postgres')).status).toBe(404);
  });
});
