import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../db/index.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { accounts, apiKeys, roles, userRoles, users } from '../../db/schema/index.ts';
import { bootstrap } from '../../server/process/bootstrap.ts';
import type { Config } from '../../server/platform/config.ts';
import { isMistyped } from '../../server/platform/api-keys.ts';
import { openSecrets } from '../../server/platform/secrets.ts';
import { SYSTEM_ROLES } from '../../server/api/permissions.ts';
import { createPlainDatabase, testConfig } from '../support/database.ts';
import { temporaryFolder } from '../support/postgres.ts';

const folder = temporaryFolder();
const BOOTSTRAP_API_KEY = 'an operator chose this key 0123456789'.replaceAll(' ', '-');
let database: Database;
let drop: () => Promise<void>;

beforeEach(async () => {
  const plain = await createPlainDatabase();
  drop = plain.drop;
  await migrateDatabase(plain.url);
  database = openDatabase(plain.url, { max: 4 });
});

afterEach(async () => {
  await database.close();
  await drop();
});

const config: Config = { ...testConfig(folder), BOOTSTRAP_API_KEY: null, BOOTSTRAP_EMAIL: 'root@example.org' };
const secrets = openSecrets(config.SECRET_KEY);
const start = (settings: Partial<Config> = {}) =>
  bootstrap(database.db, { secrets, config: { ...config, ...settings } });
const keys = () => database.db.select().from(apiKeys);
const keyOf = async (key: string) => (await keys()).find((row) => row.hash === secrets.hmac('api_key', key));

describe('the first start', () => {
  test('creates an account, the system roles, an administrator and a key for 90 days', async () => {
    const { account_id, user_id, api_key } = await start();
    expect(await database.db.$count(accounts)).toBe(1);
    const [user] = await database.db.select().from(users);
    expect(user).toMatchObject({
      id: user_id,
      account_id,
      email: 'root@example.org',
      full_name: 'Administrator',
      status: 'active',
    });
    const all = await database.db.select().from(roles);
    expect(Object.fromEntries(all.map((role) => [role.name, role.permissions]))).toEqual(
      SYSTEM_ROLES as unknown as Record<string, string[]>,
    );
    expect(all.every((role) => role.is_system && role.account_id === null)).toBeTrue();
    const [granted] = await database.db.select().from(userRoles).innerJoin(roles, eq(roles.id, userRoles.role_id));
    expect(granted?.roles.name).toBe('Administrator');
    const [row] = await database.db
      .select({ hash: apiKeys.hash, days: sql<number>`(extract(epoch from expires_at - now()) / 86400)::float8` })
      .from(apiKeys);
    expect(row!.hash).toBe(secrets.hmac('api_key', api_key!));
    expect(Math.round(row!.days * 1000)).toBe(90_000);
    expect(isMistyped(api_key!)).toBeFalse();
  });

  test('prints the key once; later starts change nothing', async () => {
    const first = await start();
    const second = await start();
    expect(second).toEqual({ ...first, api_key: null });
    expect(await keys()).toHaveLength(1);
    expect(await database.db.$count(users)).toBe(1);
    expect(await database.db.$count(roles)).toBe(4);
  });

  test('in several processes at once creates everything once, and one of them prints the key', async () => {
    const made = await Promise.all([start(), start(), start(), start()]);
    expect(made.filter((one) => one.api_key !== null)).toHaveLength(1);
    expect(new Set(made.map((one) => one.user_id)).size).toBe(1);
    expect(await keys()).toHaveLength(1);
    expect(await database.db.$count(accounts)).toBe(1);
    expect(await database.db.$count(roles)).toBe(4);
  });
});

describe('BOOTSTRAP_API_KEY', () => {
  test("is the administrator's key and is not printed", async () => {
    const made = await start({ BOOTSTRAP_API_KEY });
    expect(made.api_key).toBeNull();
    expect(await keyOf(BOOTSTRAP_API_KEY)).toMatchObject({ user_id: made.user_id, revoked_at: null });
    expect(await keys()).toHaveLength(1);
  });

  test('works beside the key of an earlier start', async () => {
    const { api_key, user_id } = await start();
    await start({ BOOTSTRAP_API_KEY });
    expect(await keyOf(BOOTSTRAP_API_KEY)).toMatchObject({ user_id });
    expect(await keyOf(api_key!)).toMatchObject({ user_id, revoked_at: null });
  });

  test('whose time has run out is renewed', async () => {
    await start({ BOOTSTRAP_API_KEY });
    const ago = (days: number) => sql`now() - make_interval(days => ${days})`;
    await database.db.update(apiKeys).set({ created_at: ago(100), expires_at: ago(10) });
    expect((await start({ BOOTSTRAP_API_KEY })).is_key_ended).toBeFalse();
    expect(Date.parse((await keyOf(BOOTSTRAP_API_KEY))!.expires_at)).toBeGreaterThan(Date.now() + 89 * 86_400_000);
  });

  test.each([
    ['revoked', { revoked_at: '2020-01-01T00:00:00.000Z' }],
    ['replaced before its time', { expires_at: sql`now() - interval '1 hour'` }],
  ])('that was %s stays ended, and the start reports it; a new value restores access', async (_, change) => {
    expect((await start({ BOOTSTRAP_API_KEY })).is_key_ended).toBeFalse();
    const [key] = await database.db.update(apiKeys).set(change).returning();
    const newer = { ...key!, id: undefined, hash: 'newer', created_at: sql`now() + interval '1 second'` };
    await database.db.insert(apiKeys).values(newer);
    const before = await keyOf(BOOTSTRAP_API_KEY);
    expect((await start({ BOOTSTRAP_API_KEY })).is_key_ended).toBeTrue();
    expect(await keyOf(BOOTSTRAP_API_KEY)).toEqual(before);
    const restored = await start({ BOOTSTRAP_API_KEY: `${BOOTSTRAP_API_KEY}-2` });
    expect(restored.is_key_ended).toBeFalse();
    expect(await keyOf(`${BOOTSTRAP_API_KEY}-2`)).toMatchObject({ user_id: restored.user_id, revoked_at: null });
  });

  test('stays with its user, also when that user is no longer an administrator', async () => {
    const first = await start({ BOOTSTRAP_API_KEY });
    const [second] = await database.db
      .insert(users)
      .values({ account_id: first.account_id, email: 'second@example.org', full_name: 'Second', status: 'active' })
      .returning();
    await database.db.update(userRoles).set({ user_id: second!.id });
    const later = await start({ BOOTSTRAP_API_KEY });
    expect(later).toMatchObject({ user_id: second!.id, is_key_ended: true });
    expect((await keyOf(BOOTSTRAP_API_KEY))!.user_id).toBe(first.user_id);
  });

  test('that is valid keeps its expiry: a restart does not rotate it', async () => {
    await start({ BOOTSTRAP_API_KEY });
    await database.db.update(apiKeys).set({ expires_at: sql`now() + interval '1 day'` });
    await start({ BOOTSTRAP_API_KEY });
    expect(Date.parse((await keyOf(BOOTSTRAP_API_KEY))!.expires_at)).toBeLessThan(Date.now() + 2 * 86_400_000);
  });
});

describe('a later start', () => {
  test('brings the permissions of system roles up to date', async () => {
    await start();
    await database.db.update(roles).set({ permissions: ['connections.run'] });
    await start();
    const [creator] = await database.db.select().from(roles).where(eq(roles.name, 'Creator'));
    expect(creator!.permissions).toEqual([...SYSTEM_ROLES.Creator]);
  });

  test('creates a key if no administrator has a valid one, to prevent a lockout', async () => {
    const first = await start();
    await database.db.update(apiKeys).set({ expires_at: '2020-01-01T00:00:00.000Z' });
    const second = await start();
    expect(second.api_key).toBeString();
    expect(second.api_key).not.toBe(first.api_key);
    expect(await keyOf(second.api_key!)).toMatchObject({ user_id: first.user_id });
  });

  test('with another BOOTSTRAP_EMAIL creates no second administrator', async () => {
    const first = await start();
    expect((await start({ BOOTSTRAP_EMAIL: 'else@example.org' })).user_id).toBe(first.user_id);
    expect(await database.db.$count(users)).toBe(1);
  });

  test('enables a disabled administrator if there is no other', async () => {
    const first = await start();
    await database.db.update(users).set({ status: 'disabled' });
    expect((await start()).user_id).toBe(first.user_id);
    expect((await database.db.select().from(users))[0]!.status).toBe('active');
  });
});
