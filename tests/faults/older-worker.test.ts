import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../db/migrate.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';
import { bootstrap } from '../../server/process/bootstrap.ts';
import {
  createPlainDatabase,
  testConfig,
  type TestDatabase,
  type TestDeps,
  TEST_API_KEY,
} from '../support/database.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { postgresParameters } from '../support/resources.ts';
import { isThorough } from '../support/thorough.ts';
import { until } from '../support/until.ts';
import { watchOver } from '../support/watchdog.ts';
import { spawnWorker } from '../support/worker-process.ts';

/** The older release is the commit before this many of the last changes of the tables. */
const CHANGES = 3;
const ROOT = join(import.meta.dir, '../..');
const older = temporaryFolder();

/** Output of a command. @throws Error if it fails */
async function run(command: string[], env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(command, { cwd: ROOT, env: { ...process.env, ...env }, stdout: 'pipe', stderr: 'pipe' });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}: ${err}`);
  return out.trim();
}

/** Checks out the service as it was, with the packages of today. */
async function checkOut(): Promise<void> {
  const commits = await run([
    'git',
    'log',
    `--max-count=${CHANGES}`,
    '--format=%H',
    '--',
    'db/migrations/meta/_journal.json',
  ]);
  mkdirSync(older, { recursive: true });
  await run(['sh', '-c', `git archive ${commits.split('\n').at(-1)}^ | tar -x -C ${older}`]);
  symlinkSync(join(ROOT, 'node_modules'), join(older, 'node_modules'));
}

/** About half a minute: `check` runs the rules for migrations and payloads, which keep this true. */
describe.skipIf(!isThorough)('a worker of an older release', () => {
  let databases: TestDatabase[];
  let service: TestDeps;
  let rows: postgres.Sql;
  let worker: Bun.Subprocess;
  const config = testConfig(temporaryFolder());
  const settings = (url: string) => ({
    DATABASE_URL: url,
    DATA_DIR: config.DATA_DIR,
    SECRET_KEY: config.SECRET_KEY,
    OBJECT_STORE_URL: config.OBJECT_STORE_URL,
    RETRY_BACKOFF_SECONDS: '0',
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    TEST_CONNECTORS: '1',
  });
  const startOlder = (...flags: string[]) => {
    const command = [process.execPath, join(older, 'server/main.ts'), 'worker', '--until-stdin-ends', ...flags];
    const env = { ...process.env, ...settings(service.url) };
    const child = Bun.spawn(command, { cwd: older, env, stdin: 'pipe', stdout: 'ignore', stderr: 'pipe' });
    watchOver(child);
    return child;
  };
  const migrations = async (sql: postgres.Sql) =>
    Number((await sql`select count(*) from drizzle.__drizzle_migrations`)[0]!.count);

  beforeAll(async () => {
    databases = [await createPlainDatabase(), await createPlainDatabase(), await createPlainDatabase()];
    const [control, from] = databases.map(({ url }) => url) as [string, string];
    await checkOut();
    await run([process.execPath, join(older, 'server/main.ts'), 'migrate'], settings(control));
    const sql = postgres(control, { max: 1, onnotice: () => {} });
    const before = await migrations(sql);
    rows = postgres(from, { max: 1, onnotice: () => {} });
    await rows`create table items as select id::int, md5(id::text) as note from generate_series(1, 20000) id`;
    await rows`alter table items add primary key (id)`;
    service = { url: control } as TestDeps;
    worker = startOlder();
    // It is past the check of the tables once it listens for jobs.
    const listening = sql`select 1 from pg_stat_activity where query ilike 'listen %' and datname = current_database()`;
    await until(async () => (await sql`${listening}`).length > 0, { timeout_ms: 60_000 });
    await migrateDatabase(control);
    expect((await migrations(sql)) - before).toBeGreaterThan(0);
    await sql.end();
    const deps = await createDeps(config, control, 'api');
    const made = await bootstrap(deps.db, { secrets: deps.secrets, config });
    service = { deps, url: control, ...made, api_key: TEST_API_KEY, close: () => closeDeps(deps) };
  }, 120_000);
  afterAll(async () => {
    worker.kill('SIGKILL');
    await service.close();
    await rows.end();
    await Promise.all(databases.map(({ drop }) => drop()));
  });

  const pipelineOf = (more: object = {}) =>
    makePipeline(service, {
      source: { name: 'postgres', parameters: postgresParameters(databases[1]!.url) },
      destination: { name: 'postgres', parameters: postgresParameters(databases[2]!.url) },
      stream: {
        sync_mode: 'incremental',
        destination_sync_mode: 'append_dedup',
        cursor_field: ['id'],
        primary_key: [['id']],
      },
      ...more,
    });

  test('goes on with the tables of the newer one, and does its runs', async () => {
    const { start } = await pipelineOf();
    for (const added of [20_000, 1]) {
      const id = await start();
      expect(await runEnded(service, id, 60_000)).toMatchObject({ status: 'succeeded' });
      expect((await getStreamRuns(service, id)).map(({ rows_loaded }) => rows_loaded)).toEqual([added]);
      await rows`insert into items select max(id) + 1, 'added' from items`;
    }
  });

  test('is followed by a newer one in the middle of a run, without a row too many or too few', async () => {
    const slow = { rows: 400, value_bytes: 20_000, batch_rows: 4, batch_delay_ms: 50 };
    const { start } = await pipelineOf({
      source: { name: 'sample', parameters: slow },
      stream: { sync_mode: 'incremental', destination_sync_mode: 'append' },
      connection: { table_prefix: 'followed_' },
    });
    const id = await start();
    await until(async () => (await getStreamRuns(service, id)).some(({ rows_loaded }) => (rows_loaded ?? 0) > 0));
    worker.kill('SIGKILL');
    const newer = spawnWorker(service, { TEST_CONNECTORS: '1' });
    expect(await runEnded(service, id, 120_000)).toMatchObject({ status: 'succeeded' });
    newer.kill('SIGKILL');
    const target = postgres(databases[2]!.url, { max: 1, onnotice: () => {} });
    const [found] = await target`select count(*)::int n, count(distinct id)::int ids from followed_stream_1`;
    await target.end();
    expect({ ...found }).toEqual({ n: 400, ids: 400 });
  });

  test('does not start again', async () => {
    const child = startOlder();
    expect([await child.exited, await child.stderr.text()]).toEqual([
      1,
      expect.stringContaining('The database was migrated by a newer version'),
    ]);
  });
});
