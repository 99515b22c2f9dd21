import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors } from '../../db/schema/index.ts';
import { refreshCatalog } from '../../server/catalog/discover.ts';
import { secretsOf } from '../../server/connector-runtime/connector-secrets.ts';
import { openSshKey, pinHostKey, type StoredTunnel } from '../../server/connector-runtime/tunnel-settings.ts';
import { createRedactor } from '../../server/platform/redact.ts';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, networkLog, runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';
import { sshdMissing, startSshd } from '../support/sshd.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

setDefaultTimeout(120_000);

const service = await testDeps();
const { deps, account_id } = service;
const { call } = testApi(service);
const make = makerOf(call);
const sshd = await startSshd();
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const [source, target] = [
  postgres(from.url, { max: 2, onnotice: () => {} }),
  postgres(to.url, { max: 2, onnotice: () => {} }),
];
afterAll(async () => {
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

/** A tunnel to the test's sshd, with a key that the service made. */
async function tunnel(more: object = {}) {
  const { encrypted_private_key, public_key } = (await call('POST', '/account_connectors/generate_ssh_key')).body;
  sshd.authorize(public_key);
  return { host: sshd.host, port: sshd.port, username: sshd.username, encrypted_private_key, ...more };
}

const create = (side: 'source' | 'destination', url: string, ssh_tunnel: object, test_connection = true) =>
  call('POST', '/account_connectors', {
    name: uniqueName('tunnelled'),
    connector_type: side,
    connector_name: 'postgres',
    parameters: postgresParameters(url),
    ssh_tunnel,
    test_connection,
  });
const update = (id: string, body: object) => call('POST', `/account_connectors/${id}`, body);
const login = (id: string) => call('POST', `/account_connectors/${id}/login`);
const show = async (side: string, id: string) => (await call('GET', `/account_connectors/${side}/${id}`)).body;

describe.skipIf(sshdMissing !== null)('a source or destination behind a tunnel', () => {
  test('is tested through it when it is made, which notes the key of the server', async () => {
    const { status, body } = await create('destination', to.url, await tunnel());
    expect(status).toBe(201);
    expect(body).toMatchObject({ status: 'active', last_test: { status: 'passed' } });
    const steps = body.last_test.checks.map((step: { title: string; status: string }) => [step.title, step.status]);
    expect(steps.slice(0, 2)).toEqual([
      ['SSH tunnel', 'passed'],
      ['Connection', 'passed'],
    ]);
    expect(body.ssh_tunnel).toMatchObject({ host: sshd.host, host_key_fingerprint: sshd.fingerprint });
    const values = await call('GET', `/account_connectors/${body.id}/dynamic_possible_values/database`);
    expect(JSON.stringify(values.body)).toContain(new URL(to.url).pathname.slice(1));
    expect(values.status).toBe(200);
    await until(() => sshd.logins() === 0);
  });

  test('is noted by a login too, when it was made without a test', async () => {
    const made = await create('destination', to.url, { ...(await tunnel()), enabled: false });
    expect(made.body.ssh_tunnel.host_key_fingerprint).toBeNull();
    const { body } = await update(made.body.id, { ssh_tunnel: { enabled: true }, test_connection: false });
    expect(body.ssh_tunnel).toMatchObject({ enabled: true, host_key_fingerprint: null });
    expect((await login(made.body.id)).status).toBe(200);
    expect((await show('destination', made.body.id)).ssh_tunnel.host_key_fingerprint).toBe(sshd.fingerprint);
  });

  test('is noted by a discovery, and by whoever comes first', async () => {
    const { body } = await create('source', from.url, await tunnel(), false);
    const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, body.id));
    const noted = async () => (await show('source', body.id)).ssh_tunnel.host_key_fingerprint;
    expect(await noted()).toBeNull();
    await refreshCatalog(deps, row!);
    expect(await noted()).toBe(sshd.fingerprint);
    await pinHostKey(deps, row!, sshd.fingerprint);
    await expect(pinHostKey(deps, row!, `SHA256:${'A'.repeat(43)}`)).rejects.toMatchObject({
      code: 'ssh_host_key_changed',
    });
    expect(await noted()).toBe(sshd.fingerprint);
  });

  test('is not reached by a key or user that the SSH server does not know', async () => {
    const { private_key } = generateSshKey('stranger');
    const { host, port, username } = await tunnel();
    const { body } = await create('destination', to.url, { host, port, username, private_key });
    expect(body).toMatchObject({ status: 'broken', status_reason: 'ssh_login_refused' });
    expect(body.last_test.checks).toMatchObject([
      { title: 'SSH tunnel', status: 'failed' },
      { title: 'Connection', status: 'skipped' },
    ]);
    expect(body.ssh_tunnel.host_key_fingerprint).toBeNull();
    const well = await create('destination', to.url, await tunnel());
    await update(well.body.id, { ssh_tunnel: { private_key } });
    expect(await show('destination', well.body.id)).toMatchObject({ status_reason: 'ssh_login_refused' });
  });

  test('is told apart from the database behind it, which the SSH server does not reach', async () => {
    const nobody = to.url.replace(/:\d+\//, ':1/');
    const { body } = await create('destination', nobody, await tunnel());
    expect(body).toMatchObject({ status: 'broken', status_reason: 'connection_refused' });
    expect(body.last_test.checks).toMatchObject([
      { title: 'SSH tunnel', status: 'passed', message: `Logged in to ${sshd.host}:${sshd.port}` },
      { title: 'Connection', status: 'failed' },
    ]);
    expect(body.ssh_tunnel.host_key_fingerprint).toBe(sshd.fingerprint);
  });

  test('is refused when its SSH server shows another key, until that is forgotten or told', async () => {
    const { body } = await create('destination', to.url, await tunnel());
    const before = sshd.fingerprint;
    await sshd.restart('new');
    expect(sshd.fingerprint).not.toBe(before);
    const refused = await login(body.id);
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({ code: 'upstream_error', upstream_code: 'ssh_host_key_changed' });
    expect(refused.body.detail).toContain(before);
    const shown = async () => (await show('destination', body.id)).ssh_tunnel.refused_host_key_fingerprint;
    expect(await shown()).toBe(sshd.fingerprint);
    const forgotten = await update(body.id, { ssh_tunnel: { host_key_fingerprint: null } });
    expect(forgotten.body).toMatchObject({ status: 'active' });
    expect(forgotten.body.ssh_tunnel.host_key_fingerprint).toBe(sshd.fingerprint);
    expect(await shown()).toBeNull();
    const told = await create('destination', to.url, await tunnel({ host_key_fingerprint: before }));
    expect(told.body).toMatchObject({ status_reason: 'ssh_host_key_changed' });
    expect(told.body.ssh_tunnel).toMatchObject({
      host_key_fingerprint: before,
      refused_host_key_fingerprint: sshd.fingerprint,
    });
    const right = sshd.fingerprint;
    await sshd.restart('new');
    await update(told.body.id, { ssh_tunnel: { host_key_fingerprint: right } });
    expect((await show('destination', told.body.id)).ssh_tunnel.refused_host_key_fingerprint).toBe(sshd.fingerprint);
    await update(told.body.id, { ssh_tunnel: { host_key_fingerprint: sshd.fingerprint } });
    expect((await show('destination', told.body.id)).ssh_tunnel.refused_host_key_fingerprint).toBeNull();
  });
});

describe.skipIf(sshdMissing !== null)('a run through tunnels', () => {
  test('moves rows from one side to the other, tells of both tunnels, and of no key', async () => {
    await source`create table items as select id::int, md5(id::text) note from generate_series(1, 30000) id`;
    const [one, two] = [
      await create('source', from.url, await tunnel()),
      await create('destination', to.url, await tunnel()),
    ];
    const worker = spawnWorker(service);
    const id = one.body.id as string;
    await until(async () => (await show('source', id)).catalog_status === 'ready', { timeout_ms: 60_000 });
    const connection = await make.connection({ source_id: id, destination_id: two.body.id });
    const run_id = (await call('POST', `/connections/${connection.id}/run`)).body as string;
    expect((await runEnded(service, run_id, 60_000)).status).toBe('succeeded');
    // While the worker lives: what the attempt opened is closed by the attempt.
    await until(() => sshd.logins() === 0);
    worker.kill('SIGKILL');
    const [rows] = await target`select count(*)::int n, count(distinct note)::int notes from items`;
    expect({ ...rows }).toEqual({ n: 30_000, notes: 30_000 });
    const log = await networkLog(service, run_id);
    const logins = log.filter(({ request }) => request.url === `ssh://127.0.0.1:${sshd.port}`);
    expect(logins.map(({ connector_type }) => connector_type).toSorted()).toEqual(['destination', 'source']);
    expect(logins[0]!.response).toMatchObject({ status: 200, body: `host key ${sshd.fingerprint}` });
    const stored = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
    const { encrypted_private_key } = stored[0]!.ssh_tunnel as StoredTunnel;
    const { private_key } = openSshKey(deps, account_id, encrypted_private_key);
    const redactor = createRedactor(secretsOf(deps, stored[0]!));
    for (const line of private_key.split('\n').slice(1, -2)) {
      expect(JSON.stringify(log)).not.toContain(line);
      expect(redactor.text(`key: "${line}\\n"`)).not.toContain(line);
    }
  });

  test('goes on when the SSH server dies in the middle, and loses and doubles no row', async () => {
    const slow = await make.source({ rows: 4000, value_bytes: 50_000, batch_rows: 20, batch_delay_ms: 20 });
    const { body } = await create('destination', to.url, await tunnel());
    const worker = spawnWorker(service);
    await until(async () => (await show('source', slow.id)).catalog_status === 'ready', { timeout_ms: 60_000 });
    const connection = await make.connection({
      source_id: slow.id,
      destination_id: body.id,
      table_prefix: 'killed_',
      streams: [{ name: 'stream_1', selected: true, sync_mode: 'incremental', destination_sync_mode: 'append' }],
    });
    const run_id = (await call('POST', `/connections/${connection.id}/run`)).body as string;
    const stream = async () => (await getStreamRuns(service, run_id)).find((one) => one.stream_name === 'stream_1');
    await until(async () => ((await stream())?.rows_loaded ?? 0) > 0, { timeout_ms: 60_000 });
    const committed = (await stream())!.rows_loaded;
    await sshd.restart('same');
    expect((await runEnded(service, run_id, 90_000)).status).toBe('succeeded');
    worker.kill('SIGKILL');
    expect(committed).toBeLessThan(4000);
    expect(await stream()).toMatchObject({ status: 'succeeded', rows_loaded: 4000 });
    expect((await stream())!.attempt).toBeGreaterThan(1);
    const [rows] = await target`select count(*)::int n, count(distinct id)::int ids from killed_stream_1`;
    expect({ ...rows }).toEqual({ n: 4000, ids: 4000 });
  });
});
