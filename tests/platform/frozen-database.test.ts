import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { startEmbeddedPostgres } from '../../db/embedded.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';
import { bootstrap } from '../../server/process/bootstrap.ts';
import { testApi } from '../support/api.ts';
import { TEST_API_KEY, testConfig } from '../support/database.ts';
import { temporaryFolder } from '../support/postgres.ts';

const dataDir = join(temporaryFolder(), 'data');
const server = await startEmbeddedPostgres({ dataDir, ephemeral: true });
const url = server.url('pipelines');
await migrateDatabase(url);
const config = testConfig(dataDir);
const deps = await createDeps(config, url, 'api');
const first = await bootstrap(deps.db, { secrets: deps.secrets, config });
afterAll(async () => {
  await closeDeps(deps);
  await server.stop();
});

const { call } = testApi({ deps, url, ...first, api_key: TEST_API_KEY, close: async () => {} });

/** The server and all its processes. */
async function serverProcesses(): Promise<number[]> {
  const [row] = await deps.db.execute<{ pid: number }>(
    sql`select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int as pid`,
  );
  const children = Bun.spawnSync(['ps', '-o', 'pid=', '--ppid', String(row!.pid)]).stdout.toString();
  return [row!.pid, ...children.trim().split(/\s+/).map(Number)];
}

test('requests to a database that is frozen end with 500, and succeed once it answers again', async () => {
  expect((await call('GET', '/users/me')).status).toBe(200);
  const pids = await serverProcesses();
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    // More requests than the pool has connections, reads and transactions.
    const requests = Array.from({ length: 30 }, (_, n) =>
      n % 2 === 0
        ? call('GET', '/users/me')
        : call('POST', '/roles', { name: `role ${n}`, permissions: ['connections.run'] }),
    );
    for (const answer of await Promise.all(requests)) {
      expect(answer).toMatchObject({ status: 500, body: { code: 'internal_error' } });
    }
    expect((await call('GET', '/readyz')).status).toBe(503);
    expect((await call('GET', '/connections')).status).toBe(500);
    // What ends then gives up the steps that would wait for it.
    await deps.database.untilUnresponsive({ within_ms: 1_000 });
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  }
  expect((await call('GET', '/users/me')).status).toBe(200);
  expect((await call('POST', '/roles', { name: 'later', permissions: ['connections.run'] })).status).toBe(201);
});
