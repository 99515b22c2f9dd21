import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'bun:test';
import { and, eq, sql } from 'drizzle-orm';
import { INSTALLATION_TABLES, ownedTables } from '../../db/accounts/owned-tables.ts';
import type { AccountManifest } from '../../db/accounts/export.ts';
import {
  accounts,
  auditEvents,
  changeReaders,
  connectionRuns,
  connections,
  connectionStreams,
  networkLogSegments,
  sentRows,
  usageLedger,
  users,
} from '../../db/schema/index.ts';
import { deleteOldNetworkLogs } from '../../server/connector-runtime/network-log/retention.ts';
import { requireDisk } from '../../server/connector-runtime/files-root.ts';
import { accountCommand } from '../../server/process/commands/account.ts';
import { fireDue } from '../../server/runs/schedule-tick.ts';
import { stopSuspended } from '../../server/runs/stop.ts';
import { startRun } from '../../server/runs/start.ts';
import { readAccountPlan } from '../../server/billing/account-plan.ts';
import { SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { ledgerEntry } from '../support/ledger.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { makerOf, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const { db } = deps;
const config = { ...deps.config, DATABASE_URL: service.url };
const api = testApi(service);
const folder = temporaryFolder();

/** Runs `account …` as an operator does. */
async function account(...words: string[]) {
  const said: string[] = [];
  const code = await accountCommand(config, words, (line) => said.push(line));
  return { code, said: said.join('\n') };
}

/** The same in a process whose writes to files fail, as on a full disk. @returns the exit code and the error */
async function onFullDisk(...words: string[]) {
  const main = join(import.meta.dir, '../../server/main.ts');
  const limited = ['sh', '-c', 'trap "" XFSZ; ulimit -f 0; exec "$@"', 'sh', process.execPath, main, 'account'];
  const { DATABASE_URL, DATA_DIR, SECRET_KEY, OBJECT_STORE_URL } = config;
  const child = Bun.spawn([...limited, ...words], {
    env: {
      ...process.env,
      DATABASE_URL: 'env:OF_SERVICE',
      OF_SERVICE: DATABASE_URL,
      DATA_DIR,
      SECRET_KEY,
      OBJECT_STORE_URL,
      LOG_LEVEL: 'silent',
    },
    stdout: 'ignore',
    stderr: 'pipe',
  });
  const err = await child.stderr.text();
  return [await child.exited, err.trim()];
}

async function create(name = uniqueName('Tenant')) {
  const { said } = await account('create', name, '--email', 'admin@tenant.example');
  const id = /Account (\S+) was/.exec(said)![1]!;
  const key = /only now: (\S+)/.exec(said)![1]!;
  const call = api.as(key);
  return { id, key, name, call, make: makerOf(call) };
}

/** A connection that is due by its schedule, and a second one with a live run. */
async function withRuns(tenant: Awaited<ReturnType<typeof create>>) {
  const [source, destination] = [await tenant.make.source(), await tenant.make.destination()];
  const sides = { source_id: source.id, destination_id: destination.id };
  const [due, running] = [await tenant.make.connection(sides), await tenant.make.connection(sides)];
  const run = await tenant.call('POST', `/connections/${running.id}/run`);
  expect(run.status).toBe(200);
  const schedule = {
    type: 'interval',
    interval_minutes: 60,
    cron_expression: null,
    timezone: 'UTC',
    time_of_day: null,
  };
  const next_run_at = new Date(Date.now() - 60_000).toISOString();
  await db
    .update(connections)
    .set({ schedule: schedule as never, next_run_at })
    .where(eq(connections.id, due.id));
  return { source, due, running, run_id: run.body as string };
}

const countOf = async (name: string, account_id: string) => {
  const { table, belongsTo } = ownedTables().find((one) => one.name === name)!;
  const [row] = await db.execute<{ n: number }>(
    sql`select count(*)::int as n from ${table} where ${belongsTo(account_id)}`,
  );
  return row!.n;
};
const counts = async (account_id: string) => {
  const found: Record<string, number> = {};
  for (const { name } of ownedTables()) found[name] = await countOf(name, account_id);
  return found;
};

test('each table belongs to accounts or to the installation', async () => {
  const rows = await db.execute<{ name: string }>(
    sql`select c.relname::text as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'`,
  );
  const known = [...ownedTables().map(({ name }) => name), ...INSTALLATION_TABLES];
  expect(rows.map(({ name }) => name).toSorted()).toEqual(known.toSorted());
});

test('a created account has an administrator with a key, and sees nothing of others', async () => {
  await api.call('POST', '/account_connectors', { name: 'own', connector_type: 'source', connector_name: 'sample' });
  const tenant = await create();
  expect((await tenant.call('GET', '/users/me')).body).toMatchObject({
    email: 'admin@tenant.example',
    roles: [{ name: 'Administrator' }],
  });
  expect((await tenant.call('GET', '/account_connectors')).body).toEqual([]);
  expect((await account('list', '--json')).said).toInclude(tenant.id);
  const [entry] = await db.select().from(auditEvents).where(eq(auditEvents.account_id, tenant.id));
  expect(entry).toMatchObject({ action: 'operator.account_create', actor_type: 'system' });
});

test.each([
  [['limit', '00000000-0000-0000-0000-000000000000', '--runs', '1'], 'There is no account'],
  [['limit', service.account_id], 'Name a limit'],
  [['limit', service.account_id, '--log-days', '0'], '--log-days must be a whole number from 1, or none'],
  [['create', 'x'], 'Use: account create'],
  [['delete', service.account_id, '--confirm', 'Default'], 'The first account is that of the operator'],
  [['destroy'], 'Unknown action "destroy"'],
  [['list', '--all'], "Unknown option '--all'"],
])('account %j is refused', async (words, message) => {
  await expect(account(...words)).rejects.toThrow(message);
});

describe('limits', () => {
  test('of rows and of runs refuse a start with the numbers; waiting chunks do not count', async () => {
    const tenant = await create();
    const { due, run_id } = await withRuns(tenant);
    const start = () => tenant.call('POST', `/connections/${due.id}/run`);
    await account('limit', tenant.id, '--runs', '1');
    const refused = await start();
    expect([refused.status, refused.body]).toEqual([
      402,
      {
        detail: 'Account limit reached: 1 of 1 runs at the same time. Ask the operator of the service',
        code: 'account_limit_reached',
        limit: 'max_live_runs',
        limit_value: 1,
        current_value: 1,
        plan: 'self_hosted',
      },
    ]);
    await fireDue(deps);
    const [skipped] = await db.select().from(connectionRuns).where(eq(connectionRuns.connection_id, due.id));
    expect(skipped).toMatchObject({ status: 'skipped', skip_reason: 'plan_limit' });
    await tenant.call('POST', `/connections/${run_id}/stop`);
    await db.insert(usageLedger).values(ledgerEntry(tenant.id, 500));
    await account('limit', tenant.id, '--runs', 'none', '--rows', '500');
    expect((await start()).body).toMatchObject({ limit: 'max_rows_per_period', limit_value: 500, current_value: 500 });
    await account('limit', tenant.id, '--rows', 'none');
    expect((await start()).status).toBe(200);
  });

  test('of disk refuse an attempt, and of logs delete sooner', async () => {
    const tenant = await create();
    const files = join(config.DATA_DIR, 'account-files', tenant.id);
    mkdirSync(join(files, 'below'), { recursive: true });
    writeFileSync(join(files, 'below', 'rows.csv'), 'x'.repeat(1024 * 1024));
    await requireDisk(deps, tenant.id);
    await account('limit', tenant.id, '--disk-mb', '1', '--log-days', '2');
    await expect(requireDisk(deps, tenant.id)).rejects.toThrow('take 1048576 of 1048576 bytes');
    expect(JSON.parse((await account('list', '--json')).said.split('\n').at(-1)!)).toMatchObject({
      disk_bytes: 1024 * 1024,
      limits: { max_disk_bytes: 1024 * 1024, max_log_days: 2 },
    });
    const { run_id } = await withRuns(tenant);
    const old = new Date(Date.now() - 3 * 86_400_000).toISOString();
    await deps.objects.put('network_logs/old', new Uint8Array([1]));
    await db.insert(networkLogSegments).values({
      account_id: tenant.id,
      connection_run_id: run_id,
      connector_type: 'source',
      object_key: 'network_logs/old',
      entries: 1,
      bytes: 1,
      created_at: old,
    });
    expect(await deleteOldNetworkLogs(deps)).toBe(1);
  });
});

test('a suspended account runs nothing and admits no caller; resumed, its due schedule runs once', async () => {
  const tenant = await create();
  const { due, running, run_id } = await withRuns(tenant);
  await account('suspend', tenant.id, '--reason', 'unpaid');
  const [run] = await db.select().from(connectionRuns).where(eq(connectionRuns.id, run_id));
  expect(run).toMatchObject({ status: 'stopped', stop_reason: 'account_suspended' });
  expect((await tenant.call('GET', '/connections')).status).toBe(403);
  expect((await tenant.call('POST', `/connections/${running.id}/run`)).body.code).toBe('account_suspended');
  const signIn = await tenant.call(
    'POST',
    '/console/session',
    { api_key: tenant.key },
    { 'x-requested-by': 'console' },
  );
  expect([signIn.status, signIn.body.code]).toEqual([403, 'account_suspended']);
  await fireDue(deps);
  expect(await db.$count(connectionRuns, eq(connectionRuns.connection_id, due.id))).toBe(0);

  // A start that read the account before it was suspended.
  const [connection] = await db.select().from(connections).where(eq(connections.id, due.id));
  const seen = await readAccountPlan(db, tenant.id, { now: new Date() });
  const stale = { ...seen, account: { ...seen.account, suspended_at: null } };
  const start = { connection: connection!, actor: SYSTEM_ACTOR, trigger_type: 'manual' as const };
  await expect(startRun(db, deps, { ...start, account: seen })).rejects.toMatchObject({ code: 'account_suspended' });
  const late = await db.transaction((tx) => startRun(tx, deps, { ...start, account: stale }));
  await stopSuspended(db, deps.queue);
  const [stopped] = await db.select().from(connectionRuns).where(eq(connectionRuns.id, late));
  expect(stopped?.status).toBe('stopped');

  await account('resume', tenant.id);
  expect((await tenant.call('GET', '/connections')).status).toBe(200);
  await fireDue(deps);
  const queued = and(eq(connectionRuns.connection_id, due.id), eq(connectionRuns.status, 'queued'));
  expect(await db.$count(connectionRuns, queued)).toBe(1);
});

describe('the data of an account', () => {
  const SECRET = 'correct horse battery staple';

  /** An account with rows in most tables, an object and a file. */
  async function filled() {
    const tenant = await create();
    const { source, run_id } = await withRuns(tenant);
    await tenant.make.connector('source', 'postgres', {
      host: '127.0.0.1',
      port: 1,
      database: 'd',
      username: 'u',
      password: SECRET,
      ssl_mode: 'disable',
    });
    const hook = { type: 'call_webhook', url: `https://example.com/${encodeURIComponent(SECRET)}` };
    const trigger = { name: 'hook', rule: 'event == "connection_failed"', actions: [hook] };
    const made = await tenant.call('POST', '/automation/triggers', trigger);
    expect([made.status, made.body]).toEqual([201, expect.anything()]);
    await tenant.call('POST', '/console/session', { api_key: tenant.key }, { 'x-requested-by': 'console' });
    await tenant.call('POST', '/roles', { name: 'Own', permissions: ['connections.read'] });
    await db.insert(usageLedger).values(ledgerEntry(tenant.id, 5));
    const [stream] = await db.select().from(connectionStreams).where(eq(connectionStreams.account_id, tenant.id));
    const stream_id = stream!.id;
    await db.insert(sentRows).values({ stream_id, place: 'p', settled: true, entries: 1, data: Buffer.from('x') });
    await db.insert(changeReaders).values({ stream_id, source_id: source.id, next_look_at: new Date().toISOString() });
    await deps.objects.put(`avatars/${tenant.id}`, new Uint8Array([1, 2, 3]));
    const now = new Date().toISOString();
    await db
      .update(users)
      .set({ avatar_key: `avatars/${tenant.id}`, avatar_updated_at: now })
      .where(eq(users.account_id, tenant.id));
    const files = join(config.DATA_DIR, 'account-files', tenant.id);
    mkdirSync(files, { recursive: true });
    writeFileSync(join(files, 'rows.csv'), 'id\n1\n');
    return { ...tenant, run_id, stream_id, files };
  }

  test('is exported whole, described and without secrets', async () => {
    const tenant = await filled();
    const into = join(folder, 'export');
    await account('export', tenant.id, into);
    const manifest: AccountManifest = JSON.parse(readFileSync(join(into, 'account.json'), 'utf8'));
    const expected = await counts(tenant.id);
    for (const { name, file, rows, sha256, columns, left_out } of manifest.tables) {
      const text = readFileSync(join(into, file), 'utf8');
      expect([name, new Bun.CryptoHasher('sha256').update(text).digest('hex')]).toEqual([name, sha256]);
      const lines = text.split('\n').slice(0, -1);
      expect([name, lines.length]).toEqual([name, rows]);
      if (name !== 'audit_events') expect([name, rows]).toEqual([name, expected[name] ?? -1]);
      const keys = columns.map((column) => column.name).toSorted();
      for (const line of lines) expect(Object.keys(JSON.parse(line)).toSorted()).toEqual(keys);
      for (const hidden of left_out) expect(keys).not.toContain(hidden);
    }
    const names = [...manifest.tables.map(({ name }) => name), ...manifest.left_out];
    expect(names.toSorted()).toEqual([...Object.keys(expected), 'audit_events'].toSorted());
    expect(manifest.objects.map(({ key }) => key)).toEqual([`avatars/${tenant.id}`]);
    expect(readFileSync(join(into, 'files/rows.csv'), 'utf8')).toBe('id\n1\n');
    for (const path of readdirSync(into, { recursive: true, withFileTypes: true })) {
      if (!path.isFile()) continue;
      const text = readFileSync(join(path.parentPath, path.name), 'utf8');
      for (const secret of [SECRET, encodeURIComponent(SECRET), tenant.key, deps.secrets.hmac('api_key', tenant.key)])
        expect([path.name, text.includes(secret)]).toEqual([path.name, false]);
      expect(text).not.toMatch(/v1\.[0-9a-f]{8}\./);
    }
    await expect(account('export', tenant.id, into)).rejects.toThrow('exists');
  });

  test('is deleted whole, with its objects and files; other accounts and the audit log stay', async () => {
    const tenant = await filled();
    const other = await filled();
    const [others, first] = [await counts(other.id), await counts(service.account_id)];
    const remove = (...more: string[]) => account('delete', tenant.id, '--confirm', tenant.name, ...more);
    await expect(remove()).rejects.toThrow('Suspend the account first');
    await account('suspend', tenant.id);
    await expect(account('delete', tenant.id, '--confirm', 'x')).rejects.toThrow('Confirm it by its name');
    expect(await remove()).toMatchObject({ code: 1, said: expect.stringContaining('1 stream keeps a log') });
    const entries = await db.$count(auditEvents, eq(auditEvents.account_id, tenant.id));
    const audit = join(folder, 'audit.jsonl');
    expect(await onFullDisk('delete', tenant.id, '--confirm', tenant.name, '--leave-logs', '--audit', audit)).toEqual([
      1,
      `The audit log was not written to ${audit}, and nothing deleted: EFBIG: file too large, write`,
    ]);
    expect([existsSync(audit), await db.$count(accounts, eq(accounts.id, tenant.id))]).toEqual([false, 1]);
    const { code } = await remove('--leave-logs', '--audit', audit);
    expect(code).toBe(0);
    expect(Object.entries(await counts(tenant.id)).filter(([, rows]) => rows > 0)).toEqual([]);
    expect(await counts(other.id)).toEqual(others);
    expect(await counts(service.account_id)).toEqual(first);
    expect(await db.$count(accounts, eq(accounts.id, tenant.id))).toBe(0);
    expect([existsSync(tenant.files), await deps.objects.get(`avatars/${tenant.id}`)]).toEqual([false, null]);
    expect(existsSync(other.files)).toBeTrue();
    const saved = readFileSync(join(folder, 'audit.jsonl'), 'utf8').split('\n').slice(0, -1);
    expect(saved.length).toBeGreaterThanOrEqual(entries);
    const kept = await db.select().from(auditEvents).where(eq(auditEvents.account_id, tenant.id));
    expect(kept.length).toBeGreaterThan(saved.length);
    expect(kept.some(({ action, kind }) => kind === 'call' && action === 'operator.account_delete')).toBeTrue();
    expect((await tenant.call('GET', '/connections')).status).toBe(401);
  });
});
