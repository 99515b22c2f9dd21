import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'bun:test';
import postgres from 'postgres';
import { openDatabase } from '../../db/index.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { bootstrap } from '../../server/process/bootstrap.ts';
import { type Config, readConfig } from '../../server/platform/config.ts';
import { closeDeps, createDeps, type Deps, type DiscoveryWaits } from '../../server/deps.ts';
import { openLog } from '../../server/platform/log.ts';
import { openSecrets } from '../../server/platform/secrets.ts';
import { openQueue } from '../../server/queue/boss.ts';
import { limitHangs } from './hangs.ts';
import { type OwnServer, testServerUrl } from './postgres.ts';

export const TEST_API_KEY = 'test-administrator-key-0123456789abcdef';
const TEST_SECRET_KEY = 'a secret key that only the tests use, 0123456789';
const LOCK = 7_300_004;

export interface TestDatabase {
  url: string;
  /** Ends its connections and drops it. */
  drop(): Promise<void>;
}

/** A separate migrated and bootstrapped control database, cloned from the run's template. */
export async function createTestDatabase(): Promise<TestDatabase> {
  return createDatabase(`template ${await template()} strategy file_copy`);
}

/** An empty database, for sources and destinations. */
export async function createPlainDatabase(server?: Pick<OwnServer, 'url'>): Promise<TestDatabase> {
  return createDatabase('template template0 strategy file_copy', server);
}

export interface TestDeps {
  deps: Deps;
  url: string;
  account_id: string;
  /** The first administrator, the owner of `api_key`. */
  user_id: string;
  api_key: string;
  close(): Promise<void>;
}

interface TestOptions {
  role?: 'api' | 'worker';
  config?: Partial<Config>;
  /** Default: connections are created with their streams however slow the machine is. */
  discovery_waits?: DiscoveryWaits;
}

const UNTIL_DISCOVERED: DiscoveryWaits = { all_ms: 600_000, named_ms: 600_000 };

/**
 * Real dependencies on a cloned database, with a separate DATA_DIR. Closed after the tests of the file, without a limit
 * of time.
 */
export async function testDeps(options: TestOptions = {}): Promise<TestDeps> {
  limitHangs();
  const opened = await openTestDeps(options);
  afterAll(opened.close);
  return opened;
}

/** The same for a program that is not a test: the caller closes them. */
export async function openTestDeps(options: TestOptions = {}): Promise<TestDeps> {
  const database = await createTestDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), 'data-pipelines-test-'));
  const config = { ...testConfig(dataDir), ...options.config };
  const discovery_waits = options.discovery_waits ?? UNTIL_DISCOVERED;
  const deps = { ...(await createDeps(config, database.url, options.role ?? 'api')), discovery_waits };
  const { account_id, user_id } = await bootstrap(deps.db, { secrets: deps.secrets, config });
  let closing: Promise<void> | null = null;
  const close = async () => {
    await closeDeps(deps);
    await database.drop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  return { deps, url: database.url, account_id, user_id, api_key: TEST_API_KEY, close: () => (closing ??= close()) };
}

/** Settings as `readConfig` gives them, silent and with fixed keys. */
export function testConfig(dataDir: string): Config {
  return readConfig({
    DATA_DIR: dataDir,
    PORT: '0',
    SECRET_KEY: TEST_SECRET_KEY,
    BOOTSTRAP_API_KEY: TEST_API_KEY,
    DEMO: '0',
    TEST_CONNECTORS: '1',
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
  });
}

async function createDatabase(clause: string, server?: Pick<OwnServer, 'url'>): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await (await adminOf(server)).unsafe(`create database ${name} ${clause}`);
  const drop = async () => {
    await (await adminOf(server)).unsafe(`drop database if exists ${name} with (force)`);
  };
  return { url: server ? server.url(name) : await testServerUrl(name), drop };
}

const templates = new Map<string, Promise<string>>();

/** Created once per server by the first process. Other processes wait for it. */
async function template(): Promise<string> {
  const server = await testServerUrl('postgres');
  const made = templates.get(server) ?? makeTemplate();
  templates.set(server, made);
  return made;
}

async function makeTemplate(): Promise<string> {
  const name = `template_${fingerprint()}`;
  // A session of its own, which holds the lock until it ends.
  const admin = openAdmin(await testServerUrl('postgres'));
  try {
    await admin`select pg_advisory_lock(${LOCK})`;
    const [present] = await admin`select 1 from pg_database where datname = ${name}`;
    if (present) return name;
    const draft = `draft_${randomBytes(8).toString('hex')}`;
    await admin.unsafe(`create database ${draft}`);
    await fillTemplate(await testServerUrl(draft));
    await admin.unsafe(`alter database ${draft} rename to ${name}`);
    return name;
  } finally {
    await admin.end({ timeout: 5 });
  }
}

async function fillTemplate(url: string): Promise<void> {
  await migrateDatabase(url);
  const config = testConfig(tmpdir());
  const database = openDatabase(url, { max: 1 });
  await bootstrap(database.db, { secrets: openSecrets(config.SECRET_KEY), config });
  await database.close();
  const queue = await openQueue({ url, db: null, log: openLog('silent'), supervise: false });
  await queue.stop();
}

/** A server that outlives the run (TEST_DATABASE_URL) must not hand out the template of other code. */
function fingerprint(): string {
  const root = join(import.meta.dir, '../..');
  const migrations = join(root, 'db/migrations');
  const files = readdirSync(migrations)
    .filter((file) => file.endsWith('.sql'))
    .toSorted()
    .map((file) => join(migrations, file));
  const made = [
    'server/process/bootstrap.ts',
    'server/api/permissions.ts',
    'server/queue/jobs.ts',
    'server/queue/boss.ts',
  ];
  const hash = createHash('sha256');
  for (const file of [...files, ...made.map((name) => join(root, name))]) hash.update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

/** Sessions that create and drop databases: a new one took half of the processor time of a database. */
const admins = new Map<string, postgres.Sql>();

async function adminOf(server?: Pick<OwnServer, 'url'>): Promise<postgres.Sql> {
  const url = server ? server.url('postgres') : await testServerUrl('postgres');
  const admin = admins.get(url) ?? openAdmin(url, { idle_timeout: 1 });
  admins.set(url, admin);
  return admin;
}

const openAdmin = (url: string, options: { idle_timeout?: number } = {}) =>
  postgres(url, { max: 1, onnotice: () => {}, max_lifetime: null, fetch_types: false, ...options });
