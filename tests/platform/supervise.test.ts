import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../db/index.ts';
import { environmentOf } from '../../server/platform/config.ts';
import { openLog } from '../../server/platform/log.ts';
import { superviseWorker } from '../../server/process/supervise.ts';
import { createTestDatabase, testConfig, type TestDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { isAlive } from '../support/processes.ts';
import { until } from '../support/until.ts';

const folder = temporaryFolder();
let control: TestDatabase;
let database: Database;

beforeAll(async () => {
  control = await createTestDatabase();
  database = openDatabase(control.url, { max: 1 });
});
afterAll(async () => {
  await database.close();
  await control.drop();
});

/** True when a worker listens for jobs. */
async function workerIsReady(): Promise<boolean> {
  const rows = await database.db.execute(
    sql`select 1 from pg_stat_activity where datname = current_database() and application_name = 'data-pipelines queue'`,
  );
  return rows.length > 0;
}

describe('the supervised worker', () => {
  test('is replaced when it is killed, and ended by a stop', async () => {
    const env = environmentOf(testConfig(folder), control.url);
    const worker = superviseWorker({ env, log: openLog('silent') });
    const first = worker.pid()!;
    await until(workerIsReady);
    process.kill(first, 'SIGKILL');
    await until(() => worker.pid() !== null && worker.pid() !== first);
    const second = worker.pid()!;
    await until(workerIsReady);
    expect(isAlive(first)).toBeFalse();
    expect(isAlive(second)).toBeTrue();
    await worker.stop();
    expect(isAlive(second)).toBeFalse();
    expect(worker.pid()).toBeNull();
  });

  test('ends by itself when its parent was killed', async () => {
    const script = join(import.meta.dir, '../support/hold-worker.ts');
    const parent = Bun.spawn([process.execPath, script, control.url, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    const { value } = await parent.stdout.getReader().read();
    const pid = Number(new TextDecoder().decode(value));
    await until(workerIsReady);
    parent.kill('SIGKILL');
    await parent.exited;
    await until(() => !isAlive(pid));
  });
});
