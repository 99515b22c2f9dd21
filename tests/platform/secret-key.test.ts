import { describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq, like, sql } from 'drizzle-orm';
import {
  accountConnectors,
  apiKeys,
  auditEvents,
  auditSeals,
  installation,
  keyRing,
  rootKeys,
  triggers,
} from '../../db/schema/index.ts';
import { openRoots, pinSecretKey, retireKeys, retireRoots, rotateKey } from '../../db/pinned-key.ts';
import { sealAudit, verifyAudit } from '../../server/api/audit/chain.ts';
import { authenticate } from '../../server/api/authentication.ts';
import { openActions, triggerContext } from '../../server/automation/triggers/action-secrets.ts';
import { secretsContext } from '../../server/connector-runtime/connector-secrets.ts';
import { openSshKey, sshKeyContext } from '../../server/connector-runtime/tunnel-settings.ts';
import { closeDeps, createDeps, type Deps } from '../../server/deps.ts';
import { apiKeyPrefix, makeApiKey } from '../../server/platform/api-keys.ts';
import { bootstrap } from '../../server/process/bootstrap.ts';
import { rotateRoot } from '../../server/process/commands/rotate-root.ts';
import { openSecrets } from '../../server/platform/secrets.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testDeps } from '../support/database.ts';
import { until } from '../support/until.ts';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';

const service = await testDeps({ role: 'worker' });
const { db, secrets } = service.deps;
const OTHER_KEY = 'another secret key, 0123456789 0123456789';
const other = openSecrets(OTHER_KEY);

const SAMPLE = { name: 'sample', parameters: {} };

test.each(['api', 'worker'])('%s does not start with another SECRET_KEY, and says so in one line', async (mode) => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../server/main.ts'), mode], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: service.url,
      DATA_DIR: service.deps.config.DATA_DIR,
      SECRET_KEY: OTHER_KEY,
      PORT: '0',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said = await new Response(child.stderr).text();
  expect(await child.exited).toBe(1);
  expect(said).toStartWith('SECRET_KEY is not the key of this database');
  expect(said).toContain(`encrypted with ${secrets.key_id}`);
  expect(said.trim().split('\n')).toHaveLength(1);
});

test('a database from before keys were pinned is compared by its secrets', async () => {
  await db.execute(sql`update installation set key_id = null`);
  const { source } = await makePipeline(service, { source: SAMPLE, destination: SAMPLE });
  await expect(pinSecretKey(db, other.key_id)).rejects.toThrow('SECRET_KEY is not the key of this database');
  expect(await db.select().from(installation)).toMatchObject([{ key_id: secrets.key_id }]);
  await pinSecretKey(db, secrets.key_id);
  await db.update(accountConnectors).set({ secrets: null }).where(eq(accountConnectors.id, source.id));
});

test('a run whose secrets do not open fails with the reason, after one attempt', async () => {
  const worker = await startWorker(service.deps);
  const { source, start } = await makePipeline(service, { source: SAMPLE, destination: SAMPLE });
  const sealed = other.seal('{}', secretsContext(source));
  await db.update(accountConnectors).set({ secrets: sealed }).where(eq(accountConnectors.id, source.id));
  const run = await runEnded(service, await start());
  expect(run).toMatchObject({
    status: 'failed',
    attempt: 1,
    error: { code: 'invalid_secret', type: 'config_error', origin: 'source', retryable: false },
  });
  expect((await getStreamRuns(service, run.id)).every(({ status }) => status === 'failed')).toBeTrue();
  await worker.stop();
});

describe('rotate-key', () => {
  const { SECRET_KEY: FIRST, DATA_DIR } = service.deps.config;
  const run = async (words: string[], SECRET_KEY: string) => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../server/main.ts'), ...words], {
      env: { PATH: process.env.PATH, DATABASE_URL: service.url, DATA_DIR, SECRET_KEY },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, out, err };
  };
  const file = join(DATA_DIR, 'new.key');

  test('lets a new key open what the former one sealed, and keeps hashes and masks', async () => {
    await db.execute(sql`update installation set key_id = ${secrets.key_id}`);
    const sealed = secrets.seal('a password', 'a place');
    const said = await run(['rotate-key', file], FIRST);
    expect(said).toMatchObject({ code: 0, err: '' });
    const after = readFileSync(file, 'utf8').trim();
    expect(after.length).toBeGreaterThanOrEqual(32);
    // A process that runs keeps working: it and a new one open what the other seals.
    const renewed = openSecrets(await openRoots(db, after));
    expect(renewed.open(sealed, 'a place')).toBe('a password');
    expect(secrets.open(renewed.seal('another', 'a place'), 'a place')).toBe('another');
    expect(renewed.hmac('api_key', 'x')).toBe(secrets.hmac('api_key', 'x'));
    expect(renewed.maskKeys('account').encrypted('x')).toBe(secrets.maskKeys('account').encrypted('x'));
    // The supervisor may start a worker with the settings that it has.
    expect((await openRoots(db, FIRST)).keys).toEqual([FIRST]);
    expect(await run(['rotate-key', file], FIRST)).toMatchObject({ code: 0 });
    expect(await db.select().from(keyRing)).toHaveLength(2);
    expect(JSON.stringify(await db.select().from(keyRing))).not.toContain(FIRST);
  });

  test('--retire ends the former key, once the new one is in use', async () => {
    const after = readFileSync(file, 'utf8').trim();
    const early = await run(['rotate-key', '--retire'], FIRST);
    expect(early).toMatchObject({ code: 1, err: expect.stringContaining('is not the newest key') });
    expect(await run(['rotate-key', '--retire'], after)).toMatchObject({ code: 0, out: '1 former key was retired\n' });
    await expect(openRoots(db, FIRST)).rejects.toThrow('SECRET_KEY is not the key of this database');
    expect((await openRoots(db, after)).keys).toEqual([FIRST]);
  });

  test('refuses a key that is not one of the database, and one that is too short', async () => {
    expect(await run(['rotate-key', join(DATA_DIR, 'third.key')], OTHER_KEY)).toMatchObject({
      code: 1,
      err: expect.stringContaining('SECRET_KEY is not the key of this database'),
    });
    const short = join(DATA_DIR, 'short.key');
    writeFileSync(short, 'short');
    const after = readFileSync(file, 'utf8').trim();
    expect(await run(['rotate-key', short], after)).toMatchObject({
      code: 1,
      err: expect.stringContaining('must have at least 32 characters'),
    });
    expect((await openRoots(db, after)).keys).toEqual([FIRST]);
  });
});

describe('rotate-key --root', () => {
  const own = async (): Promise<Deps> => {
    const SECRET_KEY = readFileSync(join(service.deps.config.DATA_DIR, 'new.key'), 'utf8').trim();
    return createDeps({ ...service.deps.config, SECRET_KEY }, service.url, 'api');
  };
  const FIRST = service.deps.config.SECRET_KEY;
  /** What a process that runs meanwhile does when it reads the roots. */
  const follow = async (process: Deps) => {
    const { keys, current, oldest } = await openRoots(db, process.config.SECRET_KEY);
    process.roots.wake();
    await until(() => {
      const { version, hmacs } = process.secrets;
      return version === current + 1 && hmacs('any', 'text').length === keys.length - oldest;
    });
  };
  const rotate = (process: Deps, settle: () => Promise<void> = () => follow(process)) =>
    rotateRoot(db, { secret_key: process.config.SECRET_KEY, settle, say: () => {} });
  const version = async () => (await db.select().from(installation))[0]!.root_version;
  const sealedBy = (key_id: string) =>
    db.execute(sql`
      select id from account_connectors where secrets like ${`v1.${key_id}.%`}
      union all select id from account_connectors
        where ssh_tunnel ->> 'encrypted_private_key' like ${`v1.${key_id}.%`}
      union all select id from triggers where secrets like ${`v1.${key_id}.%`}`);
  const interrupted = async () => {
    throw new Error('the machine is switched off');
  };
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const storeKey = async (key: string) => {
    const [stored] = await db
      .insert(apiKeys)
      .values({
        account_id: service.account_id,
        user_id: service.user_id,
        prefix: apiKeyPrefix(key),
        hash: secrets.hmac('api_key', key),
        expires_at: sql`now() + interval '1 day'`,
      })
      .returning();
    return stored!.id;
  };
  const [used, unused] = [makeApiKey(), makeApiKey()];
  const { private_key } = generateSshKey('test');

  test('encrypts everything with a new root while processes run, and repeats what was interrupted', async () => {
    const process = await own();
    try {
      const { source, destination } = await makePipeline(service, { source: SAMPLE, destination: SAMPLE });
      const ssh_tunnel = { encrypted_private_key: secrets.seal(private_key, sshKeyContext(source.account_id)) };
      const sealed = secrets.seal('{"password":"hunter2"}', secretsContext(source));
      await db
        .update(accountConnectors)
        .set({ secrets: sealed, ssh_tunnel })
        .where(eq(accountConnectors.id, source.id));
      await db.update(accountConnectors).set({ secrets: 'v1.damaged' }).where(eq(accountConnectors.id, destination.id));
      const [hook] = await db.select().from(triggers).limit(1);
      await db
        .update(triggers)
        .set({ secrets: secrets.seal('{"0":{"secret":"s"}}', triggerContext(hook!)) })
        .where(eq(triggers.id, hook!.id));
      const ids = [await storeKey(used), await storeKey(unused)];
      await sealAudit(process);
      const all = (await sealedBy(secrets.key_id)).length;
      expect(all).toBeGreaterThanOrEqual(3);

      // Nothing uses the new root before all processes know it.
      await expect(rotate(process, interrupted)).rejects.toThrow('switched off');
      expect([await version(), await db.select().from(rootKeys)]).toMatchObject([1, [{ version: 2 }]]);
      expect(await sealedBy(secrets.key_id)).toHaveLength(all);
      let settled = 0;
      const midway = () => ((settled += 1) === 1 ? follow(process) : interrupted());
      await expect(rotate(process, midway)).rejects.toThrow('switched off');
      expect([await version(), (await db.select().from(rootKeys)).length]).toEqual([2, 1]);
      // The process has not followed yet: what it encrypts is encrypted again in the end.
      const rowOf = async () =>
        (await db.select().from(accountConnectors).where(eq(accountConnectors.id, source.id)))[0]!;
      expect(process.secrets.open((await rowOf()).secrets!, secretsContext(source))).toContain('hunter2');
      const done = await rotate(process);
      expect(done.count).toBe(all);
      expect(done.unreadable).toContain(`source or destination ${destination.id}`);
      expect((await db.select().from(rootKeys)).length).toBe(1);
      expect(await sealedBy(secrets.key_id)).toHaveLength(0);
      expect(process.secrets).toMatchObject({ version: 2 });

      const after = await rowOf();
      expect(process.secrets.open(after.secrets!, secretsContext(source))).toContain('hunter2');
      const blob = after.ssh_tunnel?.encrypted_private_key as string;
      expect(openSshKey(process, source.account_id, blob).private_key).toBe(private_key);
      const [changed] = await db.select().from(triggers).where(eq(triggers.id, hook!.id));
      expect(openActions(process.secrets, { ...changed!, actions: [{ type: 'call_webhook' }] })).toMatchObject([
        { secret: 's' },
      ]);
      expect([after.revision, after.updated_at]).toEqual([source.revision, (await rowOf()).updated_at]);
      // A copy of the database does not open with the key that leaked.
      expect(() => openSecrets(FIRST).open(after.secrets!, secretsContext(source))).toThrow('another SECRET_KEY');
      // Masked values at destinations stay equal.
      const [before, now] = [secrets, process.secrets].map((one) => one.maskKeys('account').encrypted('x'));
      expect(now).toBe(before);

      // Keys are valid under both roots. Their first use renews them.
      expect(await authenticate(process, bearer(used))).toMatchObject({ api_key_id: ids[0] });
      const hashed = process.secrets.hmac('api_key', used);
      await until(async () => (await db.select().from(apiKeys).where(eq(apiKeys.hash, hashed))).length === 1);
      await retireRoots(db);
      await follow(process);
      expect(await authenticate(process, bearer(used))).toMatchObject({ api_key_id: ids[0] });
      await expect(authenticate(process, bearer(unused))).rejects.toThrow('not valid');
    } finally {
      await closeDeps(process);
    }
  });

  test('is in the audit log, whose later seals need the new root', async () => {
    const process = await own();
    try {
      expect(await sealAudit(process)).toBeGreaterThan(0);
      const entries = await db.select().from(auditEvents).where(eq(auditEvents.action, 'operator.rotate_root'));
      expect(new Set(entries.map((one) => one.resource_type))).toEqual(new Set(['account_connector', 'trigger']));
      expect(JSON.stringify(entries)).not.toContain('v1.');
      expect(await verifyAudit(process, null)).toMatchObject({ is_intact: true, problems: [] });
      // A process that still has the former root adds nothing, and a seal made with it is not accepted.
      await db.update(accountConnectors).set({ name: 'renamed' }).where(like(accountConnectors.secrets, 'v1.damaged'));
      expect(await sealAudit({ ...process, secrets: openSecrets(FIRST) })).toBe(0);
      await db.update(installation).set({ root_version: 1, oldest_root_version: 1 });
      expect(await sealAudit({ ...process, secrets: openSecrets(FIRST) })).toBe(1);
      await db.update(installation).set({ root_version: 2 });
      const { problems } = await verifyAudit(process, null);
      expect(problems).toMatchObject([{ problem: 'seal_forged' }]);
      expect(problems[0]!.seal).toBe(await db.$count(auditSeals));
    } finally {
      await closeDeps(process);
    }
  });

  test('keeps a revoked key of the settings revoked', async () => {
    const process = await own();
    try {
      const key = makeApiKey();
      const id = await storeKey(key);
      await db.update(apiKeys).set({ revoked_at: sql`now()` }).where(eq(apiKeys.id, id));
      const config = { ...process.config, BOOTSTRAP_API_KEY: key };
      expect(await bootstrap(db, { secrets: process.secrets, config })).toMatchObject({ is_key_ended: true });
      const stored = await db
        .select()
        .from(apiKeys)
        .where(eq(apiKeys.prefix, apiKeyPrefix(key)));
      expect(stored).toMatchObject([{ id, hash: process.secrets.hmac('api_key', key) }]);
    } finally {
      await closeDeps(process);
    }
  });

  test('comes along with a new SECRET_KEY, needs that former ones are retired, and names a damaged root', async () => {
    const process = await own();
    const { SECRET_KEY } = process.config;
    await closeDeps(process);
    const next = 'the next secret key, 0123456789 0123456789';
    await rotateKey(db, { before: SECRET_KEY, after: next });
    expect((await openRoots(db, next)).keys).toEqual((await openRoots(db, SECRET_KEY)).keys);
    const refused = rotateRoot(db, { secret_key: next, settle: interrupted, say: () => {} });
    await expect(refused).rejects.toThrow('A former SECRET_KEY still opens the database');
    await expect(rotateRoot(db, { secret_key: SECRET_KEY, settle: interrupted, say: () => {} })).rejects.toThrow(
      'is not the newest key',
    );
    await retireKeys(db, next);
    expect(await db.select().from(rootKeys)).toHaveLength(1);
    await db.update(rootKeys).set({ wrapped_root: 'v1.damaged' });
    await expect(openRoots(db, next)).rejects.toThrow('Root key 2 of this database is missing or was changed');
    await db.delete(rootKeys);
    await expect(openRoots(db, next)).rejects.toThrow('Root key 2 of this database is missing or was changed');
  });
});
