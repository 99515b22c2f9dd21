import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { eq, sql } from 'drizzle-orm';
import { accountConnectors, installation } from '../../db/schema/index.ts';
import { pinSecretKey } from '../../db/pinned-key.ts';
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
