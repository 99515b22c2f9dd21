import { expect, test } from 'bun:test';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { openDatabase } from '../../db/index.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import journal from '../../db/migrations/meta/_journal.json' with { type: 'json' };
import { createPlainDatabase } from '../support/database.ts';

test('several processes may migrate an empty database at once: each migration is applied once', async () => {
  const { url, drop } = await createPlainDatabase();
  await Promise.all([migrateDatabase(url), migrateDatabase(url), migrateDatabase(url)]);
  await migrateDatabase(url);
  const database = openDatabase(url, { max: 1 });
  const [applied] = await database.db.execute<{ all: number; different: number }>(
    sql`select count(*)::int as all, count(distinct hash)::int as different from drizzle.__drizzle_migrations`,
  );
  const [table] = await database.db.execute<{ name: string | null }>(
    sql`select to_regclass('connection_runs')::text as name`,
  );
  await database.close();
  await drop();
  expect(applied!.all).toBeGreaterThan(0);
  expect(applied!.all).toBe(applied!.different);
  expect(table!.name).toBe('connection_runs');
});

test('a database that a newer version has migrated is refused, and stays as it is', async () => {
  const { url, drop } = await createPlainDatabase();
  await migrateDatabase(url);
  const database = openDatabase(url, { max: 1 });
  const count = async () =>
    (await database.db.execute(sql`select count(*)::int as count from drizzle.__drizzle_migrations`))[0]?.count;
  const before = Number(await count());
  await database.db.execute(
    sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', ${Date.now() + 86_400_000})`,
  );
  await expect(migrateDatabase(url)).rejects.toThrow('The database was migrated by a newer version');
  expect(await count()).toBe(before + 1);
  await database.close();
  await drop();
});

test('a database that does not answer is an error that ends', async () => {
  const { url, drop } = await createPlainDatabase();
  await drop();
  await expect(migrateDatabase(url)).rejects.toThrow('does not exist');
});

const MIGRATIONS = join(import.meta.dir, '../../db/migrations');
/** The last migration from before a release could be replaced while it runs. */
const NOT_ADDING = '0003_custom_run_plan_id';

test('migrations only add, so that processes of the version before go on beside new ones', () => {
  const from = journal.entries.findIndex(({ tag }) => tag === NOT_ADDING) + 1;
  expect(from).toBeGreaterThan(0);
  const removing = [
    /\bDROP (TABLE|COLUMN|TYPE|SCHEMA)\b/i,
    /\bRENAME\b/i,
    /\bSET NOT NULL\b/i,
    /\bSET DATA TYPE\b/i,
    /\bDROP DEFAULT\b/i,
    // Rows of the version before do not have it.
    /\bADD COLUMN (?!.*\bDEFAULT\b).*\bNOT NULL\b/i,
  ];
  const found = journal.entries.slice(from).flatMap(({ tag }) =>
    readFileSync(join(MIGRATIONS, `${tag}.sql`), 'utf8')
      .split('--> statement-breakpoint')
      .filter((statement) => removing.some((form) => form.test(statement)))
      .map((statement) => `${tag}: ${statement.trim()}`),
  );
  expect(found).toEqual([]);
});

test('migrations take no value from a column, which processes of the version before may still write', () => {
  const known = new Map<string, string[]>();
  const taken: string[] = [];
  for (const { tag } of journal.entries) {
    const added = readFileSync(join(MIGRATIONS, `${tag}.sql`), 'utf8').matchAll(
      /CONSTRAINT "(\w+_known)" CHECK \((.*)\)/g,
    );
    for (const [, name, check] of added) {
      const values = [...check!.matchAll(/'([^']*)'/g)].map(([, value]) => value!);
      const gone = (known.get(name!) ?? []).filter((value) => !values.includes(value));
      taken.push(...gone.map((value) => `${tag}: ${name} no longer has ${value}`));
      known.set(name!, values);
    }
  }
  expect(known.size).toBeGreaterThan(20);
  expect(taken).toEqual([]);
});

/** Migrates an empty database with the first migrations alone. */
async function migrateTo(client: postgres.Sql, count: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'));
  const entries = journal.entries.slice(0, count);
  mkdirSync(join(folder, 'meta'));
  writeFileSync(join(folder, 'meta/_journal.json'), JSON.stringify({ ...journal, entries }));
  for (const { tag } of entries) cpSync(join(MIGRATIONS, `${tag}.sql`), join(folder, `${tag}.sql`));
  await migrate(drizzle(client), { migrationsFolder: folder });
  rmSync(folder, { recursive: true });
}

type StoredRow = Record<string, unknown>;
type Tables = Map<string, Map<string, StoredRow>>;

/** All rows, by table and primary key. */
async function allRows(client: postgres.Sql): Promise<Tables> {
  const tables = await client`
    select c.relname as name, array_agg(a.attname::text order by a.attnum) as key
      from pg_class c join pg_index i on i.indrelid = c.oid and i.indisprimary
      join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)
     where c.relnamespace = 'public'::regnamespace group by 1 order by 1`;
  const found: Tables = new Map();
  for (const { name, key } of tables) {
    const rows = await client`select to_jsonb(t) as row from ${client(name)} t`;
    const shortKey = (row: StoredRow) =>
      (key as string[]).map((column) => String(row[column]).replace(/^0{8}-0{4}-7000-8000-0*/, '')).join(' ');
    found.set(name, new Map(rows.map(({ row }) => [shortKey(row), row])));
  }
  return found;
}

/** The changes of the rows: `gone`, or the columns with another value. */
function changes(before: Tables, after: Tables): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [table, rows] of before) {
    for (const [key, row] of rows) {
      const now = after.get(table)?.get(key);
      const names = Object.keys(row).filter((name) => now && !Bun.deepEquals(now[name], row[name]));
      const shown = (value: unknown) =>
        typeof value === 'string' ? value.replace(/^0{8}-0{4}-7000-8000-0*/, '').replace('T00:00:00+00:00', '') : value;
      if (!now) found[`${table} ${key}`] = 'gone';
      else if (names.length > 0) {
        found[`${table} ${key}`] = Object.fromEntries(names.map((name) => [name, shown(now[name])]));
      }
    }
  }
  return found;
}

test('a database of the version before the constraints keeps what can be kept', async () => {
  const { url, drop } = await createPlainDatabase();
  const client = postgres(url, { max: 1, onnotice: () => {} });
  await migrateTo(client, 4);
  await client.unsafe(readFileSync(join(import.meta.dir, 'old-database.sql'), 'utf8'));
  const before = await allRows(client);
  expect([...before].filter(([, rows]) => rows.size === 0)).toEqual([]);
  await migrateDatabase(url);
  expect(changes(before, await allRows(client))).toEqual({
    'account_connectors 2': { created_by: null },
    'account_connectors 3': { catalog_status: 'never' },
    'cases 1': { resolved_by: null },
    'cases 2': { resolution: 'auto', resolved_at: '2026-01-04' },
    'cases 3': { resolution: null, resolved_at: null, resolved_by: null },
    'cases 4': { acknowledged_at: '2026-01-04', last_event_at: '2026-01-03' },
    'catalog_streams 2': { account_id: '1' },
    'change_readers 2': 'gone',
    'chat_channel_slots 97 C1': 'gone',
    'connection_runs 6': { finished_at: '2026-01-03' },
    'connection_runs 7': { finished_at: null },
    'connection_runs 8': { skip_reason: null },
    'connection_runs 9': { skip_reason: 'overlap' },
    'connection_runs 10': { stop_requested_at: '2026-01-03' },
    'connection_runs 11': { window_start: '2026-01-01', window_end: '2026-01-08' },
    'connection_runs 12': { custom_run_plan_id: null, chunk_index: null, chunk_count: null },
    'connection_runs 13': { chunk_index: null, chunk_count: null },
    'connection_runs 14': { chunk_index: 0, chunk_count: 1 },
    'connection_runs 15': { chunk_count: 4 },
    'connection_runs 16': { rerun_of_run_id: null },
    'connection_runs 17': { account_id: '1', rerun_of_run_id: null, triggered_by: null, stop_requested_by: null },
    'connection_streams 2': { account_id: '1' },
    'connections 1': { created_by: null, updated_by: null },
    'connections 2': { locked_from: null },
    'connections 3': { next_run_at: null },
    'custom_run_plans 1': { created_by: null, launch_response: [{ custom_run_plan_id: 'one' }] },
    'custom_run_plans 2': { account_id: '1' },
    'deliveries 2': { account_id: '1', case_id: null, delivered_at: '2026-01-03' },
    'deliveries 3': { delivered_at: null },
    'events 2': 'gone',
    'idempotency_keys 1 idempotency_keys_answer': 'gone',
    'idempotency_keys 98 user is gone': 'gone',
    'network_log_segments 2': { account_id: '1' },
    'plan_limit_notices 99 max_users 2026-01-01 80': 'gone',
    'roles 3': { is_system: false },
    'schema_changes 2': { account_id: '1' },
    'schema_changes 3': 'gone',
    'schema_changes 4': 'gone',
    'sessions 2': 'gone',
    'stream_runs 3': { status: 'retrying' },
    'stream_runs 4': { status: 'stopped', finished_at: '2026-01-03' },
    'stream_runs 5': { finished_at: '2026-01-03' },
    'stream_runs 6': { finished_at: null },
    'stream_runs 7': { account_id: '1', connection_id: '1', estimated_rows: 0 },
    'tasks 2': {
      connection_id: null,
      created_by: null,
      error: { code: 'unexpected_error', message: 'The task failed for an unknown reason. Start it again.' },
      finished_at: '2026-01-03',
    },
    'tasks 3': { account_id: '1', error: null, finished_at: null },
    'tasks 4': 'gone',
    'trigger_matches 1 2': { case_id: null },
    'triggers 1': { created_by: null },
    'triggers 2': { condition: null },
    'triggers 3': { rule: 'true' },
    'triggers 4': { is_system: false },
    'usage_ledger 2': 'gone',
    'users 2': { invited_by: null, invitation_expires_at: '2026-01-03' },
    'users 3': { avatar_updated_at: '2026-01-04' },
  });
  const written = await client`select written_table as name from connection_streams order by name`;
  expect(written.map(({ name }) => name)).toEqual(['items', 'orders']);
  // Today is summed in part only.
  const [partial] = await client`
    select count(*)::int as accounts from accounts where periods_from <= (now() at time zone 'UTC')::date`;
  expect(partial!.accounts).toBe(0);
  await client.end();
  await drop();
});
