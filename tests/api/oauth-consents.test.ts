import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors, oauthConsents } from '../../db/schema/index.ts';
import { openSecrets } from '../../server/connector-runtime/connector-secrets.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { uniqueName } from '../support/resources.ts';
import { CLIENT, type SignInProvider, startSignInProvider } from '../support/sign-in-provider.ts';

const PUBLIC_URL = 'http://pipelines.test';
const CALLBACK = `${PUBLIC_URL}/oauth/callback`;
const provider: SignInProvider = await startSignInProvider([CALLBACK]);
const host = new URL(provider.issuer).host;
const service = await testDeps({ config: { PUBLIC_URL, EGRESS_ALLOW: [host] } });
const { deps } = service;
const app = createApp(deps);
const api = testApi(service);
const { call } = api;
beforeAll(() => {
  provider.person = { sub: 'ada' };
});
afterAll(() => provider.close());

const DEFINITION = `
base_url: ${provider.issuer}
authentication:
  type: oauth2_refresh_token
  authorization_url: ${provider.issuer}/auth
  authorization_parameters: { prompt: consent }
  token_url: ${provider.issuer}/token
  client_id: "{{ config.client_id }}"
  client_secret: "{{ secrets.client_secret }}"
  scope: openid offline_access
  refresh_token: "{{ secrets.refresh_token }}"
streams:
  - name: me
    request: { path: /me }
    primary_key: [sub]
    records: "[@]"
`;
const HTTP_API = {
  definition: DEFINITION,
  config: { client_id: CLIENT.id },
  secrets: { client_secret: CLIENT.secret },
};
const property = (place: string) => ({ type: 'string', path_in_connector_config: ['credentials', place] });
const MANIFEST = {
  manifest: JSON.stringify({
    version: '6.0.0',
    type: 'DeclarativeSource',
    check: { type: 'CheckStream', stream_names: ['me'] },
    streams: [
      {
        type: 'DeclarativeStream',
        name: 'me',
        primary_key: ['sub'],
        retriever: {
          type: 'SimpleRetriever',
          requester: {
            type: 'HttpRequester',
            url_base: provider.issuer,
            path: '/me',
            authenticator: {
              type: 'OAuthAuthenticator',
              client_id: "{{ config['credentials']['client_id'] }}",
              client_secret: "{{ config['credentials']['client_secret'] }}",
              refresh_token: "{{ config['credentials']['refresh_token'] }}",
              token_refresh_endpoint: `${provider.issuer}/token`,
            },
          },
          record_selector: { type: 'RecordSelector', extractor: { type: 'DpathExtractor', field_path: [] } },
        },
        schema_loader: {
          type: 'InlineSchemaLoader',
          schema: { type: 'object', properties: { sub: { type: 'string' } } },
        },
      },
    ],
    spec: {
      type: 'Spec',
      connection_specification: {
        type: 'object',
        required: ['credentials'],
        properties: { credentials: { type: 'object', required: ['client_id', 'client_secret', 'refresh_token'] } },
      },
      advanced_auth: {
        auth_flow_type: 'oauth2.0',
        predicate_key: ['credentials', 'auth_type'],
        predicate_value: 'Client',
        oauth_config_specification: {
          oauth_connector_input_specification: {
            consent_url: `${provider.issuer}/auth?{{client_id_param}}&{{redirect_uri_param}}&response_type=code&prompt=consent&scope={{ scope_value | urlencode }}&state={{ state_value }}`,
            scope: 'openid offline_access',
            access_token_url: `${provider.issuer}/token`,
          },
          complete_oauth_output_specification: { properties: { refresh_token: property('refresh_token') } },
          complete_oauth_server_output_specification: {
            properties: { client_id: property('client_id'), client_secret: property('client_secret') },
          },
        },
      },
    },
  }),
  config: { credentials: { client_id: CLIENT.id } },
  secrets: { credentials: { client_secret: CLIENT.secret } },
};

/** Follows the provider's pages as a browser does. @returns the address of this service that they lead to */
async function consentAt(url: string): Promise<string> {
  const cookies = new Map<string, string>();
  for (let next = url; ; ) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(next, { headers: { cookie }, redirect: 'manual' });
    for (const one of response.headers.getSetCookie()) {
      const { name, value } = Bun.Cookie.parse(one);
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`${next}: ${response.status} ${await response.text()}`);
    next = new URL(location, next).href;
    if (next.startsWith(PUBLIC_URL)) return next;
  }
}

async function comeBack(url: string, cookie = '') {
  const { pathname, search } = new URL(url);
  const response = await app.handle(new Request(`http://localhost${pathname}${search}`, { headers: { cookie } }));
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const begin = (connector_name: string, parameters: object, more: object = {}, by = call) =>
  by('POST', '/oauth_consents', { connector_name, parameters, ...more });
const statusOf = async (id: string) => (await call('GET', `/oauth_consents/${id}`)).body;
const codeIn = (text: string) => /<p>([A-Z2-9]{10})<\/p>/.exec(text)?.[1];
const create = (connector_name: string, parameters: object, oauth_consent?: object, by = call) =>
  by('POST', '/account_connectors', {
    name: uniqueName(connector_name),
    connector_type: 'source',
    connector_name,
    parameters,
    ...(oauth_consent && { oauth_consent }),
  });

async function completed(connector_name: string, parameters: object, more: object = {}) {
  const { body } = await begin(connector_name, parameters, more);
  const page = await comeBack(await consentAt(body.url));
  expect(page.status).toBe(200);
  return { id: body.id as string, code: codeIn(page.text)! };
}

describe('POST /oauth_consents and GET /oauth_consents/{oauth_consent_id}', () => {
  test.each([
    ['http_api', HTTP_API],
    ['airbyte_manifest', MANIFEST],
  ])('201 and 200: %s gets its tokens by consent, sealed, and reads with them', async (name, parameters) => {
    expect((await create(name, parameters)).status).toBe(400);
    const begun = await begin(name, parameters);
    expect(begun).toMatchObject({ status: 201, body: { needs_code: true } });
    const url = new URL(begun.body.url);
    expect(url.searchParams.get('code_challenge_method')).toBe('S256');
    expect(url.href).not.toContain(CLIENT.secret);
    expect(await statusOf(begun.body.id)).toMatchObject({ status: 'pending', error: null });
    const page = await comeBack(await consentAt(url.href));
    expect(page.headers.get('location')).toBeNull();
    expect(await statusOf(begun.body.id)).toMatchObject({ status: 'completed' });
    const created = await create(name, parameters, { id: begun.body.id, code: codeIn(page.text) });
    expect(created).toMatchObject({ status: 201, body: { status: 'active', parameters: { secrets: '**********' } } });
    const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, created.body.id));
    expect(JSON.stringify(openSecrets(deps, row!))).toContain('refresh_token');
    const [consent] = await deps.db.select().from(oauthConsents).where(eq(oauthConsents.id, begun.body.id));
    expect(consent).toMatchObject({ status: 'used', sealed: '' });
  });

  test('400: settings without a page, stored secrets that would go elsewhere, a connector without consent', async () => {
    const without = DEFINITION.replace(/ {2}authorization_url.*\n/, '');
    expect((await begin('http_api', { ...HTTP_API, definition: without })).body.code).toBe('consent_unsupported');
    expect((await begin('demo', {})).body.code).toBe('consent_unsupported');
    const script = DEFINITION.replace(/authorization_url: .*/, 'authorization_url: javascript:alert(1)');
    expect((await begin('http_api', { ...HTTP_API, definition: script })).body.code).toBe('invalid_address');
    const consent = await completed('http_api', HTTP_API);
    const { body: stored } = await create('http_api', HTTP_API, consent);
    const elsewhere = DEFINITION.replace(/token_url: .*/, 'token_url: https://elsewhere.example.com');
    const moved = await begin('http_api', { definition: elsewhere }, { account_connector_id: stored.id });
    expect(moved.body.code).toBe('secrets_required');
    const again = await completed('http_api', {}, { account_connector_id: stored.id });
    const updated = await call('POST', `/account_connectors/${stored.id}`, { oauth_consent: again });
    expect(updated).toMatchObject({ status: 200, body: { status: 'active' } });
  });

  test('a state works once, in the browser that began, and not after it expired', async () => {
    const { body } = await begin('http_api', HTTP_API);
    const back = await consentAt(body.url);
    const forged = new URL(back);
    forged.searchParams.set('state', 'x'.repeat(43));
    expect((await comeBack(forged.href)).text).toContain('consent_not_started');
    expect((await comeBack(back)).status).toBe(200);
    expect((await comeBack(back)).text).toContain('consent_not_started');
    const late = await begin('http_api', HTTP_API);
    await deps.db
      .update(oauthConsents)
      .set({ expires_at: '2020-01-01T00:00:00.000Z' })
      .where(eq(oauthConsents.id, late.body.id));
    expect((await comeBack(await consentAt(late.body.url))).text).toContain('consent_not_started');
    expect((await statusOf(late.body.id)).status).toBe('expired');
    // As the console begins: the cookie belongs to the browser.
    const session = await app.handle(
      new Request('http://localhost/console/session', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-requested-by': 'console' },
        body: JSON.stringify({ api_key: service.api_key }),
      }),
    );
    const signedIn = session.headers.getSetCookie()[0]!.split(';')[0]!;
    const begun = await app.handle(
      new Request('http://localhost/trpc/account_connectors.beginConsent', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-requested-by': 'console', cookie: signedIn },
        body: JSON.stringify({ connector_name: 'http_api', parameters: HTTP_API }),
      }),
    );
    const cookie = begun.headers.getSetCookie()[0]!;
    expect(cookie).toContain('HttpOnly');
    const { result } = (await begun.json()) as { result: { data: { id: string; url: string } } };
    const own = await consentAt(result.data.url);
    expect((await comeBack(own)).text).toContain('consent_not_started');
    expect((await comeBack(own, 'oauth-consent=another')).text).toContain('consent_not_started');
    const done = await comeBack(own, cookie.split(';')[0]);
    expect(done.status).toBe(200);
    expect(codeIn(done.text)).toBeUndefined();
    expect((await create('http_api', HTTP_API, { id: result.data.id })).status).toBe(201);
  });

  test('a person who declines, and a page that shows no text of a stranger', async () => {
    const { body } = await begin('http_api', HTTP_API);
    provider.person = null;
    const back = await consentAt(body.url);
    provider.person = { sub: 'ada' };
    const page = await comeBack(`${back}&error_description=<script>`);
    expect(page.text).toContain('consent_denied');
    expect(page.text).not.toContain('<script>');
    expect(await statusOf(body.id)).toMatchObject({ status: 'failed', error: { code: 'consent_denied' } });
    const audit = (await call('GET', '/audit_log?limit=100')).body;
    expect(audit.find(({ code }: { code: string }) => code === 'consent_denied')).toMatchObject({
      resource: { type: 'oauth_consent', id: body.id },
    });
  });

  test('tokens are for the caller, the code and the place of the consent, and once', async () => {
    const consent = await completed('http_api', HTTP_API);
    const wrong = await create('http_api', HTTP_API, { id: consent.id, code: 'AAAAAAAAAA' });
    expect(wrong.body.code).toBe('consent_code_wrong');
    const elsewhere = {
      ...HTTP_API,
      definition: DEFINITION.replace(/token_url: .*/, 'token_url: https://other.test/t'),
    };
    expect((await create('http_api', elsewhere, consent)).body.code).toBe('consent_outdated');
    const colleague = api.as(await api.keyWith(['sources.create']));
    expect((await create('http_api', HTTP_API, consent, colleague)).body.code).toBe('consent_not_usable');
    expect((await colleague('GET', `/oauth_consents/${consent.id}`)).status).toBe(404);
    expect((await create('http_api', HTTP_API, consent)).status).toBe(201);
    expect((await create('http_api', HTTP_API, consent)).body.code).toBe('consent_not_usable');
    const guessed = await completed('http_api', HTTP_API);
    for (let tries = 0; tries < 5; tries += 1)
      await create('http_api', HTTP_API, { id: guessed.id, code: 'AAAAAAAAAA' });
    expect((await create('http_api', HTTP_API, guessed)).body.code).toBe('consent_not_usable');
  });
});
