import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { utils } from 'ssh2';
import { accountConnectors, accounts } from '../../db/schema/index.ts';
import { tunnelAfter } from '../../server/resources/account-connectors/tunnel.ts';
import { openSshKey, type StoredTunnel } from '../../server/connector-runtime/tunnel-settings.ts';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const { deps, account_id } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const other = await api.otherAccount();
const warehouse = await createPlainDatabase();
const GENERATE = '/account_connectors/generate_ssh_key';
const tunnel = (encrypted_private_key: string) => ({
  host: 'jump.example.test',
  username: 'tunnel',
  encrypted_private_key,
});
const ofAccount = { deps, principal: { account_id } } as Parameters<typeof tunnelAfter>[0];

async function onPlan(plan_id: 'free' | 'self_hosted', work: () => Promise<void>) {
  await deps.db.update(accounts).set({ plan_id }).where(eq(accounts.id, account_id));
  try {
    await work();
  } finally {
    await deps.db.update(accounts).set({ plan_id: 'self_hosted' }).where(eq(accounts.id, account_id));
  }
}

describe('POST /account_connectors/generate_ssh_key', () => {
  test('200: an ed25519 key pair whose private half exists only in the sealed blob', async () => {
    const { status, body } = await call('POST', GENERATE);
    expect(status).toBe(200);
    expect(Object.keys(body).toSorted()).toEqual([
      'created_at',
      'encrypted_private_key',
      'fingerprint',
      'key_type',
      'public_key',
    ]);
    expect(body.key_type).toBe('ed25519');
    expect(body.public_key).toMatch(/^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\S+ dp-[0-9a-f]{8}$/);
    expect(body.public_key).toEndWith(`dp-${account_id.slice(0, 8)}`);
    expect(body.fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
    const { private_key } = openSshKey(deps, account_id, body.encrypted_private_key);
    expect(JSON.stringify(body)).not.toContain(private_key.split('\n')[1]!);
    const [own, returned] = [utils.parseKey(private_key), utils.parseKey(body.public_key)];
    if (own instanceof Error || returned instanceof Error) throw new Error('no key');
    expect(returned.verify('words', own.sign('words'))).toBeTrue();
  });

  test('200: each request generates a different pair', async () => {
    const [one, two] = [await call('POST', GENERATE), await call('POST', GENERATE)];
    expect(one.body.public_key).not.toBe(two.body.public_key);
  });

  test('200: with any one of the four permissions', async () => {
    for (const permission of [
      'sources.create',
      'sources.update',
      'destinations.create',
      'destinations.update',
    ] as const) {
      expect((await api.as(await api.keyWith([permission]))('POST', GENERATE)).status).toBe(200);
    }
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', GENERATE)).status).toBe(401);
  });

  test('402: feature_not_in_plan', async () => {
    await onPlan('free', async () => {
      const { status, body } = await call('POST', GENERATE);
      expect(status).toBe(402);
      expect(body).toMatchObject({ code: 'feature_not_in_plan', limit: 'ssh_tunnel', plan: 'free' });
    });
  });

  test('403: without any of the four permissions', async () => {
    const { status, body } = await api.as(await api.keyWith(['sources.delete']))('POST', GENERATE);
    expect(status).toBe(403);
    expect(body.required_permission).toHaveLength(4);
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('POST', `${GENERATE}?type=rsa`)).status).toBe(422);
  });
});

describe('ssh_tunnel of a source or destination', () => {
  const create = (ssh_tunnel: object, test_connection = true) =>
    call('POST', '/account_connectors', {
      name: uniqueName('postgres'),
      connector_type: 'destination',
      connector_name: 'postgres',
      parameters: postgresParameters(warehouse.url),
      ssh_tunnel,
      test_connection,
    });

  test('400: invalid_ssh_key for a blob that is modified, forged, or sealed for another account', async () => {
    const mine = (await call('POST', GENERATE)).body.encrypted_private_key;
    const theirs = (await other.call('POST', GENERATE)).body.encrypted_private_key;
    const changed = `${mine.slice(0, -5)}${mine.at(-5) === 'A' ? 'B' : 'A'}${mine.slice(-4)}`;
    const sealed = deps.secrets.seal('no key at all', `ssh_key:${account_id}`);
    for (const blob of [theirs, changed, sealed, 'k']) {
      const { status, body } = await create(tunnel(blob));
      expect([status, body.code, body.field]).toEqual([400, 'invalid_ssh_key', 'ssh_tunnel.encrypted_private_key']);
      expect(JSON.stringify(body)).not.toContain(blob.length > 1 ? blob : '"k"');
    }
  });

  test('400: invalid_parameter on create and update where the connector has no tunnel', async () => {
    const key = (await call('POST', GENERATE)).body.encrypted_private_key;
    const created = await call('POST', '/account_connectors', {
      name: uniqueName('sample'),
      connector_type: 'source',
      connector_name: 'sample',
      ssh_tunnel: tunnel(key),
    });
    expect([created.status, created.body.code, created.body.field]).toEqual([400, 'invalid_parameter', 'ssh_tunnel']);
    const { id } = await make.source();
    const { status, body } = await call('POST', `/account_connectors/${id}`, { ssh_tunnel: tunnel(key) });
    expect([status, body.code, body.field]).toEqual([400, 'invalid_parameter', 'ssh_tunnel']);
  });

  test('takes a private key that the user provides, and never shows it', async () => {
    const { private_key, public_key, fingerprint } = generateSshKey('own');
    const own = { host: 'jump.example.test', username: 'tunnel', private_key };
    const { status, body } = await create(own, false);
    expect(status).toBe(201);
    expect(body.ssh_tunnel).toMatchObject({ public_key, fingerprint, enabled: true, port: 22 });
    expect(JSON.stringify(body)).not.toContain(private_key.split('\n')[2]!);
    const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, body.id));
    expect(JSON.stringify(row)).not.toContain(private_key.split('\n')[2]!);
    expect(openSshKey(deps, account_id, (row!.ssh_tunnel as StoredTunnel).encrypted_private_key).public_key).toBe(
      public_key,
    );
  });

  test('400: invalid_ssh_key for an unreadable private key or two keys; 402 on a plan without tunnels', async () => {
    const { private_key } = generateSshKey('own');
    const { encrypted_private_key } = (await call('POST', GENERATE)).body;
    const locked = utils.generateKeyPairSync('ed25519', { passphrase: 'p', cipher: 'aes256-ctr', rounds: 1 }).private;
    const place = { host: 'jump.example.test', username: 'tunnel' };
    for (const keys of [{ private_key: 'no key' }, { private_key: locked }, { private_key, encrypted_private_key }]) {
      const { status, body } = await create({ ...place, ...keys }, false);
      expect([status, body.code, body.field]).toEqual([400, 'invalid_ssh_key', 'ssh_tunnel.private_key']);
    }
    await onPlan('free', async () => {
      expect((await create({ ...place, private_key }, false)).body.code).toBe('feature_not_in_plan');
    });
  });

  test('422: a host with a path, a malformed fingerprint', async () => {
    const { encrypted_private_key } = (await call('POST', GENERATE)).body;
    expect((await create({ ...tunnel(encrypted_private_key), host: '/tmp/socket' }, false)).status).toBe(422);
    const pinned = { ...tunnel(encrypted_private_key), host_key_fingerprint: 'MD5:00' };
    expect((await create(pinned, false)).status).toBe(422);
  });

  test('forgets the host key when the server changes or on request', async () => {
    const { encrypted_private_key } = (await call('POST', GENERATE)).body;
    const host_key_fingerprint = `SHA256:${'A'.repeat(43)}`;
    const known = tunnelAfter(ofAccount, { ...tunnel(encrypted_private_key), host_key_fingerprint }, null)!;
    expect(known.host_key_fingerprint).toBe(host_key_fingerprint);
    const after = (given: object) => tunnelAfter(ofAccount, given, known)!.host_key_fingerprint;
    expect(after({ username: 'other' })).toBe(host_key_fingerprint);
    expect(after({ host_key_fingerprint: null })).toBeNull();
    expect(after({ host: 'other.example.test' })).toBeNull();
    expect(after({ port: 2222 })).toBeNull();
    const replaced = `SHA256:${'B'.repeat(43)}`;
    expect(after({ port: 2222, host_key_fingerprint: replaced })).toBe(replaced);
  });

  test('is stored with its visible settings; omitting the key or sending the mask keeps it', async () => {
    const { encrypted_private_key, public_key, fingerprint } = (await call('POST', GENERATE)).body;
    const stored = tunnelAfter(ofAccount, tunnel(encrypted_private_key), null)!;
    expect(stored).toEqual({
      enabled: true,
      host: 'jump.example.test',
      port: 22,
      username: 'tunnel',
      public_key,
      fingerprint,
      encrypted_private_key,
      host_key_fingerprint: null,
    });
    const masked = { enabled: false, encrypted_private_key: '**********', public_key, fingerprint };
    expect(tunnelAfter(ofAccount, masked, stored)).toEqual({ ...stored, enabled: false });
    expect(tunnelAfter(ofAccount, { host: 'other.example.test' }, stored)).toEqual({
      ...stored,
      host: 'other.example.test',
    });
    expect(tunnelAfter(ofAccount, undefined, stored)).toBe(stored);
    expect(tunnelAfter(ofAccount, null, stored)).toBeNull();
    expect(() => tunnelAfter(ofAccount, { host: 'h', username: 'u' }, null)).toThrow('encrypted_private_key');
    const foreign = (await call('POST', GENERATE)).body.public_key;
    expect(() => tunnelAfter(ofAccount, { public_key: foreign }, stored)).toThrow('does not match');
  });

  test('is shown without its private key', async () => {
    const { id } = await make.source();
    const { encrypted_private_key, public_key, fingerprint } = (await call('POST', GENERATE)).body;
    const ssh_tunnel = tunnelAfter(ofAccount, tunnel(encrypted_private_key), null);
    await deps.db.update(accountConnectors).set({ ssh_tunnel }).where(eq(accountConnectors.id, id));
    const { body } = await call('GET', `/account_connectors/source/${id}`);
    expect(body.ssh_tunnel).toEqual({
      enabled: true,
      host: 'jump.example.test',
      port: 22,
      username: 'tunnel',
      public_key,
      fingerprint,
      host_key_fingerprint: null,
      refused_host_key_fingerprint: null,
    });
  });
});
