import { afterAll, expect, test } from 'bun:test';
import { createVerify, generateKeyPairSync } from 'node:crypto';
import { AuthenticationError, ConfigurationError, RetryableError } from '../../server/connectors/contract/errors.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { startAzure } from '../support/azurite.ts';
import { startHttpServer } from '../support/http-server.ts';
import { readFiles, remoteContext } from './file-support.ts';
import { errorOf } from './unreachable.ts';

const [azure, web] = [await startAzure(), startHttpServer()];
afterAll(() => Promise.all([azure.close(), web.close()]));

const csv = (rows: number) => `id\n${Array.from({ length: rows }, (_, id) => `${id}\n`).join('')}`;

/** The context's clock is not the emulator's. */
function contextFor(settings: object, more: Parameters<typeof remoteContext>[1] = {}) {
  const context = remoteContext(settings, more);
  return { ...context, ctx: { ...context.ctx, now: () => new Date() } };
}

async function failureOf(settings: object) {
  const { ctx, recorded, cleanUp } = contextFor(settings);
  const error = await errorOf(readFiles(ctx));
  cleanUp();
  return { error, log: JSON.stringify(recorded.map(({ request }) => request.url)) };
}

test('Azure: blobs are listed, read in parts and read incrementally, with a key or a signature', async () => {
  await azure.put('in/a b+c(1)!=ü~.csv', csv(60_000));
  await azure.put('in/deep/b.csv', 'id\n7\n');
  await azure.put('out/c.csv', 'id\n8\n');
  const { account_key: _, ...keyless } = azure.settings;
  const sas_token = azure.sas('rl');
  let state = null;
  for (const settings of [azure.settings, { ...keyless, sas_token }]) {
    const { ctx, cleanUp } = contextFor({ ...settings, path: 'in/**/*.csv' });
    const found = await readFiles(ctx, { sync_mode: 'incremental' });
    expect(found.rows).toHaveLength(60_001);
    ({ state } = found);
    cleanUp();
  }
  await azure.put('in/deep/new.csv', 'id\n9\n');
  const { ctx, cleanUp } = contextFor({ ...azure.settings, path: 'in/**/*.csv' });
  expect((await readFiles(ctx, { sync_mode: 'incremental', state })).rows).toEqual([['9']]);
  cleanUp();
});

test('Azure: every failure has its own class and code', async () => {
  await azure.put('x.csv', 'id\n1\n');
  await azure.put('broken.csv', 'id,n\n1,"x"y\n');
  const good: Record<string, unknown> = { ...azure.settings, path: 'x.csv' };
  const { account_key: _, ...keyless } = good;
  web.on('/page/data', () => new Response('<html>Welcome</html>'));
  const cases: [object, new (...given: never[]) => Error, string][] = [
    [{ ...good, account_key: Buffer.from('wrong').toString('base64') }, AuthenticationError, 'account_key_wrong'],
    [{ ...keyless, sas_token: azure.sas('r') }, ConfigurationError, 'access_denied'],
    [{ ...good, bucket: 'none' }, ConfigurationError, 'bucket_not_found'],
    [{ ...good, path: 'none.csv' }, ConfigurationError, 'no_files'],
    [{ ...good, endpoint: `${web.url}/page` }, ConfigurationError, 'endpoint_not_azure'],
    [{ ...good, endpoint: `${web.url}/nothing` }, ConfigurationError, 'endpoint_not_azure'],
    [{ ...good, endpoint: 'http://127.0.0.1:1/x' }, RetryableError, 'connection_failed'],
  ];
  for (const [settings, kind, code] of cases) {
    const { error } = await failureOf(settings);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ code });
  }
  expect((await failureOf({ ...good, path: 'broken.csv' })).error.message).toContain('broken.csv, line 2');
  const guarded = contextFor(good, { allow: [] });
  await expect(fileSource.check(guarded.ctx)).rejects.toMatchObject({ code: 'address_not_allowed' });
  guarded.cleanUp();
});

/** The JSON API and the token endpoint of Google, as far as they are documented for reading. */
const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const stored = new Map<string, { body: string; generation: string; updated: string }>();
let tokens = 0;
web.on('/token', ({ body: sent }) => {
  const form = new URLSearchParams(sent);
  const [head = '', body = '', signature = ''] = (form.get('assertion') ?? '').split('.');
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
  const verified = createVerify('sha256').update(`${head}.${body}`).verify(publicKey, signature, 'base64url');
  const isRight = verified && claims.aud === `${web.url}/token` && claims.exp - claims.iat === 3600;
  if (!isRight || claims.iss !== 'reader@example.com') {
    return Response.json({ error: 'invalid_grant', error_description: 'Invalid JWT Signature.' }, { status: 400 });
  }
  tokens += 1;
  return Response.json({ access_token: `token-${tokens}`, expires_in: 3599, token_type: 'Bearer' });
});
web.on('/storage/v1/b/data/o', ({ query, headers }) => {
  if (headers.authorization !== `Bearer token-${tokens}`) {
    return Response.json({ error: { message: 'Invalid Credentials' } }, { status: 401 });
  }
  const names = [...stored.keys()].filter((name) => name.startsWith(query.prefix ?? '')).toSorted();
  const at = Number(query.pageToken ?? 0);
  const items = names
    .slice(at, at + 1)
    .map((name) => ({ name, size: String(stored.get(name)!.body.length), ...stored.get(name), body: undefined }));
  return Response.json({ items, ...(at + 1 < names.length && { nextPageToken: String(at + 1) }) });
});
const service_account_key = JSON.stringify({
  type: 'service_account',
  client_email: 'reader@example.com',
  private_key: privateKey,
  private_key_id: 'k1',
  token_uri: `${web.url}/token`,
});
const google = { location: 'gcs', bucket: 'data', service_account_key, endpoint: web.url };

function putObject(name: string, body: string, generation = '1'): void {
  stored.set(name, { body, generation, updated: `2026-01-01T00:00:0${generation}.000Z` });
  web.on(`/storage/v1/b/data/o/${encodeURIComponent(name)}`, ({ query }) => {
    const object = stored.get(name)!;
    if (query.ifGenerationMatch !== object.generation) {
      return Response.json({ error: { message: 'conditionNotMet' } }, { status: 412 });
    }
    expect(query.alt).toBe('media');
    return new Response(object.body);
  });
}

test('Google Cloud Storage: pages of objects are read with the token of a service account, which is renewed', async () => {
  putObject('in/a b.csv', 'id\n1\n');
  putObject('in/c.csv', 'id\n2\n');
  const { ctx, recorded, cleanUp } = contextFor({ ...google, path: 'in/*.csv' });
  const { rows, state } = await readFiles(ctx, { sync_mode: 'incremental' });
  expect(rows).toEqual([['1'], ['2']]);
  // The store forgets the token.
  tokens += 1;
  putObject('in/c.csv', 'id\n3\n', '2');
  expect((await readFiles(ctx, { sync_mode: 'incremental', state })).rows).toEqual([['3']]);
  expect(JSON.stringify(recorded)).not.toContain('BEGIN PRIVATE KEY');
  cleanUp();
});

test('Google Cloud Storage: every failure has its own class and code', async () => {
  putObject('x.csv', 'id\n1\n');
  const good = { ...google, path: 'x.csv' };
  const forbidden = () => Response.json({ error: { message: 'no storage.objects.list access' } }, { status: 403 });
  web.on('/storage/v1/b/denied/o', forbidden);
  web.on('/storage/v1/b/busy/o', () => new Response('', { status: 503 }));
  web.on('/storage/v1/b/page/o', () => new Response('<html>Welcome</html>'));
  const other = (more: object) => JSON.stringify({ ...JSON.parse(service_account_key), ...more });
  const cases: [object, new (...given: never[]) => Error, string][] = [
    [{ ...good, service_account_key: 'no JSON' }, ConfigurationError, 'service_account_key_invalid'],
    [{ ...good, service_account_key: '{"type":"authorized_user"}' }, ConfigurationError, 'service_account_key_invalid'],
    [{ ...good, service_account_key: other({ private_key: 'no key' }) }, ConfigurationError, 'invalid_key'],
    [{ ...good, service_account_key: other({ client_email: 'x@example.com' }) }, AuthenticationError, 'unauthorized'],
    [{ ...good, bucket: 'denied' }, ConfigurationError, 'access_denied'],
    [{ ...good, bucket: 'busy' }, RetryableError, 'server_error'],
    [{ ...good, bucket: 'page' }, ConfigurationError, 'endpoint_not_gcs'],
    [{ ...good, bucket: 'none' }, ConfigurationError, 'bucket_not_found'],
    [{ ...good, path: 'none.csv' }, ConfigurationError, 'no_files'],
  ];
  for (const [settings, kind, code] of cases) {
    const { error } = await failureOf(settings);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ code });
  }
});

test('missing settings of a location are reported', () => {
  const problems = (settings: object) => {
    const parsed = parseParameters(fileSource, settings);
    return 'problems' in parsed ? parsed.problems.map(({ parameter, code }) => `${parameter} ${code}`) : [];
  };
  const missing = (...names: string[]) => names.map((name) => `${name} missing_parameter`);
  expect(problems({ location: 'azure' })).toEqual(missing('path', 'bucket', 'storage_account', 'account_key'));
  expect(problems({ location: 'gcs' })).toEqual(missing('path', 'bucket', 'service_account_key'));
  expect(problems({ location: 'sftp' })).toEqual(missing('path', 'host', 'username', 'password'));
});
