import { Database } from 'bun:sqlite';
import { afterAll } from 'bun:test';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fastFolder } from './fast-folder.ts';
import { freePort } from './free-port.ts';
import { CLIENT } from './sign-in-provider.ts';
import { until } from './until.ts';
import { watchOver } from './watchdog.ts';

/** The OpenID provider of Debian's package glewlwyd on a free loopback port. It ends after the tests of the file. */
export interface Glewlwyd {
  issuer: string;
  /** Creates the person, or changes its groups. Addresses at example.org are verified. */
  setPerson(username: string, groups: string[]): Promise<void>;
  /** What the login page does for a person: password, consent to the client, back to the provider. @returns the next address */
  logIn(send: Send, page: string, username: string): Promise<string>;
  /** Its API for users, and the value of `Authorization` for it. */
  users: { url: string; authorization: string };
  /** What the page for the end of a session does. @returns the address to which it sends the browser back */
  logOut(send: Send, page: string): Promise<string | null>;
}

/** A request of the browser, with its cookies. */
type Send = (url: string, init?: RequestInit) => Promise<Response>;

/** A second client of the provider, which is not this service. */
export const OTHER_CLIENT = 'another-service';
const PROGRAM = Bun.which('glewlwyd');
/** The schema with an administrator. Not from /usr/share/doc, which images without documents lack. */
const SCHEMA = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3';
const MODULES = '/usr/lib/glewlwyd';
const PASSWORD = 'a-password-of-a-person';

/** Why the tests cannot run, or null. */
export const glewlwydMissing = PROGRAM && existsSync(SCHEMA) ? null : 'the Debian package glewlwyd is not installed';
if (glewlwydMissing) {
  if (process.env.CI === 'true') throw new Error(`Tests need a second OpenID provider, but ${glewlwydMissing}`);
  console.warn(`Tests with a second OpenID provider are SKIPPED: ${glewlwydMissing}`);
}

/** Call it at the top level of a file. Without Glewlwyd the result is empty, and the tests are skipped. */
export async function startGlewlwyd(redirect_uri: string): Promise<Glewlwyd> {
  if (glewlwydMissing) return { issuer: 'http://127.0.0.1:3' } as Glewlwyd;
  const home = mkdtempSync(join(fastFolder(), 'data-pipelines-glewlwyd-'));
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  createDatabase(join(home, 'db'));
  writeFileSync(join(home, 'config'), settingsOf({ home, port, origin }));
  const child = Bun.spawn([PROGRAM!, '--config-file', join(home, 'config')], {
    stdio: ['ignore', Bun.file(join(home, 'log')), 'ignore'],
  });
  watchOver(child, home);
  afterAll(async () => {
    child.kill('SIGKILL');
    await child.exited;
    rmSync(home, { recursive: true, force: true });
  });
  const responds = () => {
    if (child.exitCode !== null) throw new Error(`Glewlwyd ended: ${readFileSync(join(home, 'log'), 'utf8')}`);
    return fetch(origin).then(
      () => true,
      () => false,
    );
  };
  await until(responds, { timeout_ms: 30_000, what: 'Glewlwyd responds' });
  return configured(origin, redirect_uri);
}

/** Groups and verified addresses are properties that Glewlwyd does not have at first. */
function createDatabase(path: string): void {
  const database = new Database(path, { create: true });
  database.run('pragma synchronous = off');
  database.run(readFileSync(SCHEMA, 'utf8'));
  for (const [table, column, names] of [
    ['g_user_module_instance', 'gumi_parameters', ['groups', 'is_verified']],
    ['g_client_module_instance', 'gcmi_parameters', ['post_logout_redirect_uris']],
  ] as const) {
    for (const name of names) {
      const multiple = name !== 'is_verified';
      const format = JSON.stringify({ multiple, read: true, write: true });
      database.run(`update ${table} set ${column} = json_set(${column}, '$.data-format.${name}', json(?))`, [format]);
    }
  }
  database.close();
}

const settingsOf = ({ home, port, origin }: { home: string; port: number; origin: string }) => `
port = ${port}
bind_address = "127.0.0.1"
external_url = "${origin}"
login_url = "login.html"
api_prefix = "api"
log_mode = "console"
log_level = "WARNING"
cookie_secure = 0
session_expiration = 3600
session_key = "GLEWLWYD2_SESSION_ID"
admin_session_authentication = "cookie,api_key"
admin_scope = "g_admin"
profile_scope = "g_profile"
user_module_path = "${MODULES}/user"
client_module_path = "${MODULES}/client"
user_auth_scheme_module_path = "${MODULES}/scheme"
plugin_module_path = "${MODULES}/plugin"
hash_algorithm = "SHA512"
database = { type = "sqlite3"; path = "${home}/db"; };
`;

/** Creates the plugin that speaks OpenID Connect, and the clients, as an administrator. */
async function configured(origin: string, redirect_uri: string): Promise<Glewlwyd> {
  const cookie = new Map<string, string>();
  const asAdmin: Send = async (url, init) => {
    const response = await fetch(url, { ...init, headers: { ...init?.headers, cookie: cookie.get('admin') ?? '' } });
    const [set] = response.headers.getSetCookie();
    if (set) cookie.set('admin', set.split(';')[0]!);
    return response;
  };
  const call = async (send: Send, method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' };
    const response = await send(`${origin}/api/${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  const logInAs = (send: Send, username: string, password: string) =>
    call(send, 'POST', 'auth/', { username, password });
  await logInAs(asAdmin, 'admin', 'password');
  await call(asAdmin, 'POST', 'mod/plugin/', pluginOf(origin));
  for (const client_id of [CLIENT.id, OTHER_CLIENT]) {
    await call(asAdmin, 'POST', 'client/', clientOf(client_id, redirect_uri));
  }
  const people = new Set<string>();
  const { key } = (await (await call(asAdmin, 'POST', 'key/')).json()) as { key: string };
  return {
    issuer: `${origin}/api/oidc`,
    users: { url: `${origin}/api/user`, authorization: `token ${key}` },
    setPerson: async (username, groups) => {
      const person = { name: username, email: `${username}@example.org`, is_verified: 'yes', groups };
      const rest = { scope: ['openid'], enabled: true };
      if (people.has(username)) await call(asAdmin, 'PUT', `user/${username}`, { ...person, ...rest });
      else await call(asAdmin, 'POST', 'user/', { ...person, ...rest, username, password: PASSWORD });
      people.add(username);
    },
    logIn: async (send, page, username) => {
      const { searchParams } = new URL(page);
      await logInAs(send, username, PASSWORD);
      await call(send, 'PUT', `auth/grant/${searchParams.get('client_id')}`, { scope: 'openid' });
      return `${searchParams.get('callback_url')}&g_continue`;
    },
    logOut: async (send, page) => {
      const { searchParams } = new URL(page);
      await call(send, 'DELETE', `oidc/session/${searchParams.get('sid')}`);
      await call(send, 'DELETE', 'auth/');
      return searchParams.get('callback_url');
    },
  };
}

function pluginOf(origin: string): object {
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const parameters = {
    iss: `${origin}/api/oidc`,
    'jwt-type': 'rsa',
    'jwt-key-size': '256',
    'jwks-private': JSON.stringify({ keys: [{ ...key, alg: 'RS256', use: 'sig', kid: 'test' }] }),
    'jwks-show': true,
    'access-token-duration': 600,
    'refresh-token-duration': 600,
    'code-duration': 60,
    'refresh-token-rolling': true,
    'allow-non-oidc': false,
    'auth-type-code-enabled': true,
    'auth-type-refresh-enabled': true,
    'subject-type': 'public',
    'pkce-allowed': true,
    'session-management-allowed': true,
    'session-cookie-name': 'GLEWLWYD2_OIDC_SID',
    'session-cookie-expiration': 3600,
    'name-claim': 'mandatory',
    'email-claim': 'mandatory',
    'scope-claim': 'no',
    claims: [
      { name: 'groups', mandatory: true, 'user-property': 'groups' },
      {
        name: 'email_verified',
        mandatory: true,
        'user-property': 'is_verified',
        type: 'boolean',
        'boolean-value-true': 'yes',
        'boolean-value-false': 'no',
      },
    ],
  };
  return { module: 'oidc', name: 'oidc', display_name: 'OpenID Connect', parameters };
}

const clientOf = (client_id: string, redirect_uri: string) => ({
  client_id,
  name: client_id,
  confidential: true,
  client_secret: CLIENT.secret,
  password: CLIENT.secret,
  redirect_uri: [redirect_uri],
  post_logout_redirect_uris: [redirect_uri.replace(/\/console\/.*/, '/console')],
  token_endpoint_auth_method: ['client_secret_post'],
  authorization_type: ['code', 'refresh_token'],
  scope: ['openid'],
  enabled: true,
});
