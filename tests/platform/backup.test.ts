import { afterAll, describe, expect, test } from 'bun:test';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { eq, sql } from 'drizzle-orm';
import postgres from 'postgres';
import { connectionRuns, connections, connectionStreams, users } from '../../db/schema/index.ts';
import { type BackupManifest, writeBackup } from '../../db/backup.ts';
import { openDatabase } from '../../db/index.ts';
import { migrateTo, readMigrations } from '../../db/migrate.ts';
import journal from '../../db/migrations/meta/_journal.json' with { type: 'json' };
import { pinSecretKey } from '../../db/pinned-key.ts';
import { restoreBackup } from '../../db/restore.ts';
import { sealAudit, verifyAudit } from '../../server/api/audit/chain.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';
import { openObjectStore } from '../../server/platform/object-store.ts';
import { openSecrets } from '../../server/platform/secrets.ts';
import { holdRestored } from '../../server/runs/hold-restored.ts';
import { startRun } from '../../server/runs/start.ts';
import { readAccountPlan } from '../../server/billing/account-plan.ts';
import { SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps, type TestDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const MAIN = join(import.meta.dir, '../../server/main.ts');
const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { deps, account_id, user_id } = service;
const { config } = deps;
const folder = temporaryFolder();
const [from, to, control] = [await createPlainDatabase(), await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
/** A worker with everything of its own, as another process would have it. */
async function openWorker(url: string) {
  const own = await createDeps(config, url, 'worker');
  const started = await startWorker(own);
  let closing: Promise<void> | null = null;
  const close = async () => {
    await started.stop();
    await closeDeps(own);
  };
  return { deps: own, stop: () => (closing ??= close()) };
}
let worker = await openWorker(service.url);
afterAll(async () => {
  await worker.stop();
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop(), control.drop()]);
});

await source`create table orders (id int primary key, total int)`;
const add = (rows: number) =>
  source`insert into orders select n + i, i from (select coalesce(max(id), 0) n from orders) t, generate_series(1, ${rows}::int) i`;
await add(30);
const pipeline = await makePipeline(service, {
  source: { name: 'postgres', parameters: postgresParameters(from.url) },
  destination: { name: 'postgres', parameters: postgresParameters(to.url) },
  only: ['orders'],
  stream: { sync_mode: 'incremental', destination_sync_mode: 'append', cursor_field: ['id'] },
});
const run = async () => {
  const ended = await runEnded(service, await pipeline.start());
  expect(ended.error).toBeNull();
};
const idsOf = async (side: postgres.Sql, schema = 'public') =>
  (await side`select id from ${side(schema)}.orders order by id`).map(({ id }) => Number(id));
const at = (name: string) => join(folder, name);
const manifestOf = (path: string): BackupManifest => JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8'));
const filesBelow = (path: string) =>
  readdirSync(path, { recursive: true, withFileTypes: true }).flatMap((one) =>
    one.isFile() ? [join(one.parentPath, one.name)] : [],
  );
/** A copy of the first backup, changed. */
const changed = (name: string, change: (path: string) => void) => {
  cpSync(at('first'), at(name), { recursive: true });
  change(at(name));
  return at(name);
};
const countTables = async (url: string) => {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  const [table] = await client`select to_regclass('public.accounts') as found`;
  const [rows] = table?.found ? await client`select count(*)::int as count from accounts` : [{ count: 0 }];
  await client.end();
  return rows?.count;
};

async function command(words: string[], env: Record<string, string> = {}, shell: string[] = []) {
  const { DATA_DIR, SECRET_KEY, OBJECT_STORE_URL } = config;
  const settings = { DATABASE_URL: service.url, DATA_DIR, SECRET_KEY, OBJECT_STORE_URL, LOG_LEVEL: 'silent', ...env };
  const child = Bun.spawn([...shell, process.execPath, MAIN, ...words], {
    env: { ...process.env, ...settings },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
}

describe('a drill', () => {
  test('back up, run three times, lose the database, restore, resume: the destination equals the source', async () => {
    await run();
    await deps.objects.put('avatars/drill.webp', new Uint8Array([1, 2, 3]));
    await deps.db
      .update(users)
      .set({ avatar_key: 'avatars/drill.webp', avatar_updated_at: new Date().toISOString() })
      .where(eq(users.id, user_id));
    await worker.stop();
    // Due in the backup, too.
    const interval = { ...pipeline.connection.schedule, type: 'interval' as const, interval_minutes: 60 };
    await deps.db
      .update(connections)
      .set({ schedule: interval, next_run_at: new Date(Date.now() - 1000).toISOString() })
      .where(eq(connections.id, pipeline.connection.id));
    const live = await pipeline.start();
    const written = await writeBackup({ url: service.url, objects: deps.objects }, at('first'));
    expect(manifestOf(at('first'))).toEqual(written);
    expect(written.objects.map(({ key }) => key)).toContain('avatars/drill.webp');
    await deps.db.update(connections).set({ next_run_at: null });
    worker = await openWorker(service.url);
    await runEnded(service, live);
    for (let round = 0; round < 3; round += 1) {
      await add(10);
      await run();
    }
    await worker.stop();
    const before = await idsOf(target);
    expect(before).toHaveLength(60);

    const objects = openObjectStore(new URL(`file://${at('objects')}`).href);
    let failed = 0;
    await restoreBackup(at('first'), {
      url: control.url,
      objects,
      key_id: deps.secrets.key_id,
      afterwards: async (db) => void (failed = await holdRestored(db)),
    });
    expect(failed).toBe(1);
    expect(await new Response(await objects.get('avatars/drill.webp')).bytes()).toEqual(new Uint8Array([1, 2, 3]));
    worker = await openWorker(control.url);
    const restored = worker.deps;
    const again: TestDeps = { ...service, deps: restored, url: control.url };
    const [run_] = await restored.db.select().from(connectionRuns).where(eq(connectionRuns.id, live));
    expect(run_).toMatchObject({ status: 'failed', error: { code: 'restored' } });
    const start = () =>
      restored.db.transaction(async (tx) => {
        const account = await readAccountPlan(tx, account_id, { now: restored.now() });
        const [connection] = await tx.select().from(connections).where(eq(connections.id, pipeline.connection.id));
        return startRun(tx, restored, { connection: connection!, account, trigger_type: 'api', actor: SYSTEM_ACTOR });
      });
    await add(5);
    const ended = await runEnded(again, await start());
    const streams = await getStreamRuns(again, ended.id);
    expect(ended).toMatchObject({ status: 'succeeded' });
    expect(streams[0]!.rows_loaded).toBe(5);
    expect(await idsOf(target)).toEqual(await idsOf(source));
    // The schedule has been due since before the backup.
    const scheduled = () =>
      restored.db
        .select()
        .from(connectionRuns)
        .where(sql`trigger_type = 'schedule' and created_at > ${ended.created_at}`);
    expect(await scheduled()).toEqual([]);
    const resumed = await command(['resume'], { DATABASE_URL: control.url });
    expect(resumed).toMatchObject({ code: 0, out: 'Schedules start runs again\n' });
    await until(async () => (await scheduled()).some(({ finished_at }) => finished_at !== null));
    expect(await idsOf(target)).toEqual(await idsOf(source));
    const [stream] = await restored.db.select().from(connectionStreams);
    expect(stream!.state).not.toBeNull();
    // Entries from before and after the restore.
    await sealAudit(restored);
    const { entries, problems } = await verifyAudit(restored, null);
    expect(problems).toEqual([]);
    expect(entries).toBeGreaterThan(10);
    const checked = await command(['verify-audit'], { DATABASE_URL: control.url });
    expect(checked).toMatchObject({ code: 0, out: expect.stringContaining(`${entries} entries`) });
    expect((await command(['verify-audit', `1:${'0'.repeat(64)}`], { DATABASE_URL: control.url })).code).toBe(1);
    await worker.stop();
  });
});

describe('a backup', () => {
  test('never contains the key, and only its owner may read it', () => {
    for (const file of filesBelow(at('first'))) {
      const bytes = readFileSync(file);
      const text = file.endsWith('.gz') ? Bun.gunzipSync(bytes) : bytes;
      expect(Buffer.from(text).includes(config.SECRET_KEY)).toBeFalse();
    }
    expect(manifestOf(at('first')).key_id).toBe(deps.secrets.key_id);
  });

  test.each([
    [['backup'], 'The backup was not written: EFBIG: file too large'],
    [['account', 'export', account_id], 'The account was not exported: EFBIG: file too large'],
    [['rotate-key'], 'EFBIG: file too large'],
  ])('that cannot be written leaves nothing, and names the reason: %p', async (words, reason) => {
    // The kernel ends writes, as it does on a full disk.
    const limited = ['sh', '-c', 'trap "" XFSZ; ulimit -f 0; exec "$@"', 'sh'];
    const ended = await command([...words, at('full')], {}, limited);
    expect(ended.code).toBe(1);
    expect(ended.err).toStartWith(reason);
    expect(ended.err.trim().split('\n')).toHaveLength(1);
    expect(readdirSync(folder).filter((name) => name.startsWith('full'))).toEqual([]);
  });

  test('is not written over another one', async () => {
    await expect(writeBackup({ url: service.url, objects: deps.objects }, at('first'))).rejects.toThrow('exists');
  });
});

describe('a restore leaves the target as it was', () => {
  const recorded = (path: string, name: string, content: Uint8Array) => {
    const file = join(path, `tables/${name}.copy.gz`);
    writeFileSync(file, content);
    const manifest = manifestOf(path);
    const table = manifest.tables.find((one) => one.name === name)!;
    Object.assign(table, { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') });
    writeFileSync(join(path, 'manifest.json'), JSON.stringify(manifest));
  };

  test.each([
    [
      'a damaged file',
      (path: string) => writeFileSync(join(path, 'tables/users.copy.gz'), 'x'),
      'users.copy.gz is not as it was written',
    ],
    [
      'a missing object',
      (path: string) => writeFileSync(join(path, 'objects/avatars/drill.webp'), 'x'),
      'drill.webp is not as it was',
    ],
    [
      'a damaged manifest',
      (path: string) => writeFileSync(join(path, 'manifest.json'), '{"format":'),
      'manifest.json cannot be read',
    ],
    [
      'a newer version',
      (path: string) =>
        writeFileSync(
          join(path, 'manifest.json'),
          JSON.stringify({ ...manifestOf(path), last_migration: '9999_later' }),
        ),
      'written by a newer version (9999_later)',
    ],
    [
      'a table that cannot be loaded',
      (path: string) => recorded(path, 'stream_runs', gzipSync('not a row\n')),
      'The backup was not restored: ',
    ],
  ] as const)('by %s', async (name, change, message) => {
    const path = changed(name.replaceAll(' ', '-'), change);
    const { url, drop } = await createPlainDatabase();
    const objects = openObjectStore(new URL(`file://${at(`store-${name.replaceAll(' ', '-')}`)}`).href);
    const afterwards = async () => {};
    const { key_id } = deps.secrets;
    await expect(restoreBackup(path, { url, objects, key_id, afterwards })).rejects.toThrow(message);
    expect(await countTables(url)).toBe(0);
    expect(await objects.get('avatars/drill.webp')).toBeNull();
    await drop();
  });

  test('by a disk that is full after some objects, and keeps those that were there before', async () => {
    const path = changed('full-store', (copy) => {
      const manifest = manifestOf(copy);
      const bytes = Buffer.alloc(4_000_000, 'x');
      for (const key of ['last/small', 'last/large']) {
        const content = key === 'last/small' ? bytes.subarray(0, 10) : bytes;
        mkdirSync(join(copy, 'objects/last'), { recursive: true });
        writeFileSync(join(copy, 'objects', key), content);
        const sha256 = createHash('sha256').update(content).digest('hex');
        manifest.objects.push({ key, bytes: content.length, sha256 });
      }
      writeFileSync(join(copy, 'manifest.json'), JSON.stringify(manifest));
    });
    const { url, drop } = await createPlainDatabase();
    const store = at('store-full');
    const objects = openObjectStore(new URL(`file://${store}`).href);
    await objects.put('avatars/drill.webp', new Uint8Array([1, 2, 3]));
    const limited = ['sh', '-c', 'trap "" XFSZ; ulimit -f 2000; exec "$@"', 'sh'];
    const env = { DATABASE_URL: url, OBJECT_STORE_URL: new URL(`file://${store}`).href };
    const ended = await command(['restore', path], env, limited);
    expect(ended.code).toBe(1);
    expect(ended.err).toInclude('not restored: EFBIG: file too large');
    expect(ended.err.trim().split('\n')).toHaveLength(1);
    expect(await countTables(url)).toBe(0);
    expect(filesBelow(store)).toEqual([join(store, 'avatars/drill.webp')]);
    await drop();
  });

  test('by another key, and into a database that is in use', async () => {
    const { url, drop } = await createPlainDatabase();
    const other = openSecrets('another key of the service, 0123456789').key_id;
    const into = { objects: deps.objects, afterwards: async () => {} };
    await expect(restoreBackup(at('first'), { ...into, url, key_id: other })).rejects.toThrow(
      'not the key of the backup',
    );
    expect(await countTables(url)).toBe(0);
    await drop();
    const { key_id } = deps.secrets;
    await expect(restoreBackup(at('first'), { ...into, url: service.url, key_id })).rejects.toThrow('is not empty');
    expect(existsSync(at('first'))).toBeTrue();
  });
});

describe('a backup of an older version', () => {
  test('is loaded with its tables and migrated; no process starts on a restore that did not finish', async () => {
    const [old, fresh, unfinished] = [
      await createPlainDatabase(),
      await createPlainDatabase(),
      await createPlainDatabase(),
    ];
    await migrateTo(old.url, journal.entries.length - 1);
    const client = postgres(old.url, { max: 1 });
    await client`insert into accounts (id, name) values (gen_random_uuid(), 'Older')`;
    await client.end();
    const { key_id } = deps.secrets;
    await writeBackup({ url: old.url, objects: deps.objects }, at('older'));
    const into = { objects: deps.objects, key_id };
    await restoreBackup(at('older'), {
      ...into,
      url: fresh.url,
      afterwards: async (db) => void (await holdRestored(db)),
    });
    expect(await countTables(fresh.url)).toBe(1);
    expect((await readMigrations(fresh.url)).pending).toEqual([]);
    const afterwards = () => Promise.reject(new Error('the machine is gone'));
    await expect(restoreBackup(at('older'), { ...into, url: unfinished.url, afterwards })).rejects.toThrow('is gone');
    const database = openDatabase(unfinished.url, { max: 1 });
    await expect(pinSecretKey(database.db, key_id)).rejects.toThrow('The restore of this database did not finish');
    await database.close();
    await Promise.all([old.drop(), fresh.drop(), unfinished.drop()]);
  });
});

describe('commands', () => {
  test('migrate --check says what is pending by its exit code, and changes nothing', async () => {
    const { url, drop } = await createPlainDatabase();
    const env = { DATABASE_URL: url };
    const pending = await command(['migrate', '--check'], env);
    expect(pending).toMatchObject({ code: 2, out: expect.stringContaining('Pending: 0000_initial') });
    expect(await command(['migrate'], env)).toMatchObject({ code: 0 });
    expect(await command(['migrate', '--check'], env)).toMatchObject({ code: 0, out: 'The database is up to date\n' });
    const client = postgres(url, { max: 1 });
    // As if a branch with an older migration had been merged after a later one was applied.
    await client`delete from drizzle.__drizzle_migrations where id = 3`;
    await client.end();
    const skipped = await command(['migrate', '--check'], env);
    expect(skipped).toMatchObject({ code: 1, out: expect.stringContaining('Not applied, although later ones are') });
    await drop();
  });

  test('doctor finds nothing in a healthy installation, and names each problem of a sick one', async () => {
    const healthy = await command(['doctor'], { DATABASE_URL: control.url });
    expect(healthy.out).toContain('ok       secret key\nok       root key\n');
    const sick = postgres(control.url, { max: 1 });
    await sick`update installation set held_at = now()`;
    await sick`insert into root_keys (key_id, version, wrapped_root) values ('a key', 2, 'a root that is not used')`;
    await sick`update account_connectors set status = 'broken' where connector_type = 'source'`;
    await sick`insert into pgboss.job (name, data, start_after) values ('execute_task', '{}', now() - interval '1 hour')`;
    await sick.end();
    const found = await command(['doctor'], {
      DATABASE_URL: control.url,
      SECRET_KEY: 'another key of the service, 0123456789',
      OBJECT_STORE_URL: 'file:///proc/nothing',
    });
    expect(found.code).toBe(1);
    for (const problem of [
      /^problem {2}object store: it cannot be written/m,
      /^problem {2}secret key: SECRET_KEY has the id/m,
      /^problem {2}root key: its rotation was interrupted\. Complete it by: rotate-key --root$/m,
      /^problem {2}queue: 1 jobs of execute_task wait, the oldest for 60 minutes/m,
      /^problem {2}schedules: they are held since a restore/m,
      /^problem {2}sources: the source ".*" is broken/m,
    ])
      expect(found.out).toMatch(problem);
  });
});
