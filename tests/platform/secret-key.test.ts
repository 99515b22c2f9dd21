import { describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq, sql } from 'drizzle-orm';
import { accountConnectors, installation, keyRing } from '../../db/schema/index.ts';
import { openRoot, pinSecretKey } from '../../db/pinned-key.ts';
import { secretsContext } from '../../server/connector-runtime/connector-secrets.ts';
import { openSecrets } from '../../server/platform/secrets.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testDeps } from '../support/database.ts';
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
    const renewed = openSecrets(await openRoot(db, after));
    expect(renewed.open(sealed, 'a place')).toBe('a password');
    expect(secrets.open(renewed.seal('another', 'a place'), 'a place')).toBe('another');
    expect(renewed.hmac('api_key', 'x')).toBe(secrets.hmac('api_key', 'x'));
    expect(renewed.maskKeys('account').encrypted('x')).toBe(secrets.maskKeys('account').encrypted('x'));
    // The supervisor may start a worker with the settings that it has.
    expect(await openRoot(db, FIRST)).toBe(FIRST);
    expect(await run(['rotate-key', file], FIRST)).toMatchObject({ code: 0 });
    expect(await db.select().from(keyRing)).toHaveLength(2);
    expect(JSON.stringify(await db.select().from(keyRing))).not.toContain(FIRST);
  });

  test('--retire ends the former key, once the new one is in use', async () => {
    const after = readFileSync(file, 'utf8').trim();
    const early = await run(['rotate-key', '--retire'], FIRST);
    expect(early).toMatchObject({ code: 1, err: expect.stringContaining('is not the newest key') });
    expect(await run(['rotate-key', '--retire'], after)).toMatchObject({ code: 0, out: '1 former key was retired\n' });
    await expect(openRoot(db, FIRST)).rejects.toThrow('SECRET_KEY is not the key of this database');
    expect(await openRoot(db, after)).toBe(FIRST);
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
    expect(await openRoot(db, after)).toBe(FIRST);
  });
});
