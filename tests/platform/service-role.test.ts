import { afterAll, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { parseAllDocuments } from 'yaml';
import { migrateDatabase } from '../../db/migrate.ts';
import { auditEvents } from '../../db/schema/index.ts';
import { sealAudit, verifyAudit } from '../../server/api/audit/chain.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';
import { grantCommand } from '../../server/process/commands/grant.ts';
import { executeStream } from '../../server/queue/jobs.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline, runEnded } from '../support/pipeline.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const config = { ...service.deps.config, DATABASE_URL: service.url };
const name = `service_${randomBytes(6).toString('hex')}`;
const said: string[] = [];
await grantCommand(config, [name], (line) => said.push(line));
const url = /DATABASE_URL=(\S+)/.exec(said.join('\n'))![1]!;
const client = postgres(url, { max: 1, onnotice: () => {} });
const owner = postgres(service.url, { max: 1, onnotice: () => {} });
afterAll(() => Promise.all([client.end(), owner.end()]));

test('the service runs with the role: requests, a run, the audit log', async () => {
  await migrateDatabase(url);
  const deps = await createDeps(config, url, 'worker');
  const worker = await startWorker(deps);
  try {
    const restricted = { ...service, deps };
    const { call } = testApi(restricted);
    await makerOf(call).connection();
    const side = { name: 'sample', parameters: {} };
    const pipeline = await makePipeline(restricted, { source: side, destination: side });
    expect(await runEnded(restricted, await pipeline.start())).toMatchObject({ status: 'succeeded', error: null });
    await sealAudit(deps);
    const { is_intact, entries } = await verifyAudit(deps, null);
    expect([is_intact, entries > 0]).toEqual([true, true]);
    expect(await deps.db.$count(auditEvents, eq(auditEvents.action, 'connections.create'))).toBeGreaterThan(0);
  } finally {
    await worker.stop();
    await closeDeps(deps);
  }
});

describe('the role', () => {
  test('is no superuser and does not bypass row security', async () => {
    const rows = await client`
      select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls from pg_roles where rolname = current_user`;
    expect([...rows]).toEqual([{ rolsuper: false, rolcreaterole: false, rolcreatedb: false, rolbypassrls: false }]);
  });

  test.each([
    'delete from audit_events',
    "update audit_events set action = 'x'",
    'truncate audit_events',
    'delete from audit_seals',
    'alter table audit_events disable trigger all',
    'drop trigger audit_events_append_only on audit_events',
    'set session_replication_role = replica',
    'drop table accounts',
    'create table public.own (id int)',
    'delete from drizzle.__drizzle_migrations',
  ])('cannot %s', async (statement) => {
    await expect(client.unsafe(statement)).rejects.toMatchObject({ code: '42501' });
  });

  test('measures the age of the queue, by which workers are scaled', async () => {
    const file = join(import.meta.dir, '../../server/deploy/kubernetes-queue/queue-age.yaml');
    const [scaled] = parseAllDocuments(readFileSync(file, 'utf8')).map((one) => one.toJS());
    const age = async () =>
      (await client.unsafe(scaled.spec.triggers[0].metadata.query)).map((row) => Object.values(row));
    expect(await age()).toEqual([[0]]);
    await service.deps.queue.send(
      service.deps.db,
      executeStream,
      { stream_run_id: service.account_id },
      { start_after: new Date(Date.now() - 90_000) },
    );
    expect(Number((await age())[0]![0])).toBeGreaterThanOrEqual(89);
  });

  test('waits for the owner to migrate', async () => {
    await owner`create table late (id int)`;
    await client`insert into late values (1)`;
    const [last] = await owner`
      delete from drizzle.__drizzle_migrations where id = (select max(id) from drizzle.__drizzle_migrations) returning *`;
    await expect(migrateDatabase(url)).rejects.toThrow('1 migrations are pending, and the role of DATABASE_URL');
    const waiting = Promise.withResolvers<void>();
    const migrated = migrateDatabase(url, { wait_ms: 60_000, onWait: () => waiting.resolve() });
    await waiting.promise;
    await owner`insert into drizzle.__drizzle_migrations ${owner({ hash: last!.hash, created_at: last!.created_at })}`;
    await migrated;
    await owner`drop table late`;
  });

  test('is granted again without a change, and is not the owner', async () => {
    const again: string[] = [];
    await grantCommand(config, [name], (line) => again.push(line));
    expect(again[0]).toBe(`${name} has these rights already`);
    const { username } = new URL(service.url);
    await expect(grantCommand(config, [username], () => {})).rejects.toThrow('owns the tables');
  });
});
